"""The pace of CONNECTs on one listener: those that come faster wait for their turn, addresses one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from ..limited_log import limited_logger

log = limited_logger("terrazzo_broker.faults")

_BURST_S = 0.05  # as many as in this time go at full speed after a pause
_LEAST_WAIT_S = 0.002  # for the next ones: uvloop takes less than half a millisecond for none, and goes round and round
_AT_ONCE = 5  # in one turn of the loop: what they cost holds the others up no longer than some milliseconds


class Turn(Enum):
    """What becomes of a CONNECT."""

    NOW = "it goes on"
    LATER = "it waits"
    NEVER = "its address has more waiting than can have their turn in time"


class ConnectPace:
    """Lets CONNECTs through at ``per_second`` (0: as they come).

    Each share of addresses waits in a queue of its own, at most ``timeout_s`` of the pace long; the queues are served
    in turn, so that one that is full delays the others by one CONNECT each.
    """

    def __init__(self, per_second: int, timeout_s: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._most_waiting = max(1, int(per_second * timeout_s))
        self._clock = clock
        self._burst = max(1.0, per_second * _BURST_S)
        self._tokens = self._burst
        self._filled_s = clock()
        self._in_turn = 0  # let through in this turn of the loop
        self._waiting: dict[str, dict[object, Callable[[], None]]] = {}  # by share, the next one's first
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, share: str, who: object, proceed: Callable[[], None]) -> Turn:
        """Lets a CONNECT go on now, or has ``proceed`` called when it is its turn, unless it leaves before."""
        if not self._per_second:
            return Turn.NOW
        if not self._waiting:
            self._fill()
            if self._take_token():
                return Turn.NOW
        queue = self._waiting.setdefault(share, {})
        if len(queue) >= self._most_waiting:
            return Turn.NEVER
        queue[who] = proceed
        self._start_timer()
        return Turn.LATER

    def leave(self, share: str, who: object) -> None:
        """Takes one that waits out of its queue; nothing happens where it doesn't wait."""
        queue = self._waiting.get(share)
        if queue is not None and queue.pop(who, None) is not None and not queue:
            del self._waiting[share]

    def is_waiting(self, share: str, who: object) -> bool:
        """Whether it waits for its turn."""
        return who in self._waiting.get(share, ())

    def _fill(self) -> None:
        now_s = self._clock()
        self._tokens = min(self._burst, self._tokens + (now_s - self._filled_s) * self._per_second)
        self._filled_s = now_s

    def _take_token(self) -> bool:
        if self._tokens < 1 or self._in_turn >= _AT_ONCE:
            return False
        if not self._in_turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._in_turn += 1
        self._tokens -= 1
        return True

    def _end_turn(self) -> None:
        self._in_turn = 0

    def _start_timer(self) -> None:
        if self._timer is None:
            wait_s = 0.0 if self._tokens >= 1 else max(_LEAST_WAIT_S, (1 - self._tokens) / self._per_second)
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._serve)

    def _serve(self) -> None:
        self._timer = None
        self._fill()
        while self._waiting and self._take_token():
            proceed = self._next()
            try:
                proceed()
            except Exception:  # a fault of ours keeps the others waiting no longer
                log.exception("a CONNECT whose turn it was: internal error")
        if self._waiting:
            self._start_timer()

    def _next(self) -> Callable[[], None]:
        share = next(iter(self._waiting))
        queue = self._waiting.pop(share)
        proceed = queue.pop(next(iter(queue)))
        if queue:
            self._waiting[share] = queue  # behind the others
        return proceed
