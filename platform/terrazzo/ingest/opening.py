"""Opens payloads that are sealed with RSA in a thread: the interpreter's lock is released there, and the loop is free.

Companies take turns, a piece at a time. A connection whose payloads don't open at all waits longer from piece to piece.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.turns import Lane

_PIECE = 64  # payloads
_PIECE_S = 0.02
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 1.0  # of a lane of which nothing opens

Opened = dict[int, bytes | Exception]
"""Payloads, or why they don't open, by index."""


class Opener:
    """The arrivals that wait for a piece of theirs to be opened, and the thread that does it.

    ``on_opened`` is called with each lane whose first arrival can be decoded on.
    """

    def __init__(self, on_opened: Callable[[Lane], None]) -> None:
        self._on_opened = on_opened
        self._waiting: OrderedDict[str, deque[Lane]] = OrderedDict()  # by company, whose turn it is first
        self._thread: ThreadPoolExecutor | None = None
        self._running: asyncio.Future[Opened] | None = None

    def submit(self, lane: Lane) -> None:
        """Has the next piece of the lane's first arrival opened."""
        self._waiting.setdefault(lane.owner, deque()).append(lane)
        self._open_next()

    def close(self) -> None:
        """Ends the thread; what it opens now is not asked for any more."""
        self._waiting.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _open_next(self) -> None:
        if self._running is not None or not self._waiting:
            return
        owner, lanes = self._waiting.popitem(last=False)
        lane = lanes.popleft()
        if lanes:
            self._waiting[owner] = lanes  # at the end
        if not lane.arrivals:  # it was given up
            self._on_opened(lane)
            self._open_next()
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="sealed payloads")
        arrival = lane.arrivals[0]
        self._running = asyncio.wrap_future(self._thread.submit(open_piece, arrival, arrival.next))
        self._running.add_done_callback(lambda done: self._finish(lane, arrival, done))

    def _finish(self, lane: Lane, arrival: Arrival, done: asyncio.Future[Opened]) -> None:
        self._running = None
        if done.cancelled():
            return
        opened = done.result()
        arrival.add_opened(opened)
        self._open_next()
        let_go(lane, self._on_opened, is_any_good=any(isinstance(each, bytes) for each in opened.values()))


def let_go(lane: Lane, on_ready: Callable[[Lane], None], *, is_any_good: bool) -> None:
    """Lets a lane go on whose piece is done; the later, the more pieces in a row had nothing that is good."""
    lane.refused = 0 if is_any_good else lane.refused + 1
    if lane.refused < 2:
        on_ready(lane)
        return
    wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(lane.refused, 10))
    asyncio.get_running_loop().call_later(wait_s, on_ready, lane)


def open_piece(arrival: Arrival, first: int) -> Opened:
    """Opens payloads of an arrival from ``first`` on, as many as one piece takes. In a thread."""
    opened: Opened = {}
    until_s = time.perf_counter() + _PIECE_S
    messages = arrival.batch.messages
    for index in range(first, min(first + _PIECE, len(messages))):
        message = messages[index]
        seal = message.tag.seal
        if seal is None or not seal.is_slow:
            continue
        try:
            opened[index] = seal.open(message.payload)
        except Exception as error:  # noqa: BLE001 - raised again where the message is decoded
            opened[index] = error
        if time.perf_counter() > until_s:
            break
    return opened
