"""Turns of the event loop: work over what peers send has a slice of it, owner by owner, and goes on in the next turn.

Nobody has the loop for longer than two slices and one step: of each owner one as its bytes arrive, and of all together
one for what waits. Whoever works asks ``is_over`` between its steps, and waits when it is.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TypeVar

from ..limited_log import limited_logger
from ..stats import Stats

log = limited_logger("terrazzo_broker.faults")

SLICE_S = 0.002
SHORT_STEPS = 256  # of work that is done at once, however much of the slice is left

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields where it may be interrupted, at least once in 0.2 ms, and returns its result."""


def finish(steps: Steps[T]) -> T:
    """Does all steps at once; what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Turns:
    """Shares the loop among owners. ``clock``: seconds, of the loop's thread or of the wall."""

    __slots__ = (
        "_clock",
        "_ends_s",
        "_is_due",
        "_loop",
        "_owner",
        "_stats",
        "_streams",
        "_used_s",
        "_waiting",
        "is_inside",
    )

    def __init__(self, stats: Stats, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._stats = stats
        self._clock = clock
        self._ends_s = 0.0  # of the present slice
        self.is_inside = False  # somebody's slice
        self._owner = ""  # whose, if it is one's
        self._used_s: dict[str, float] = {}  # of their slices, by owner, in this turn of the loop
        self._waiting: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()  # by owner, the next one's first
        self._is_due = False
        self._loop: asyncio.AbstractEventLoop | None = None  # asked for once: the answer is a call of the system
        self._streams: dict[str, deque[Steps[None]]] = {}  # the broker's own work for an owner, in its order

    @property
    def is_over(self) -> bool:
        """Whether the present slice is used up: what is left has to wait for another turn."""
        return self._clock() >= self._ends_s

    def enter(self, owner: str) -> None:
        """Begins what is left of the owner's slice in this turn of the loop; within another slice nothing happens."""
        if self.is_inside:
            return
        used_s = self._used_s.get(owner)
        if used_s is None:
            if not self._used_s:
                if self._loop is None:
                    self._loop = asyncio.get_running_loop()
                self._loop.call_soon(self._used_s.clear)
            used_s = self._used_s[owner] = 0.0
        self.is_inside, self._owner = True, owner
        self._ends_s = self._clock() + SLICE_S - used_s

    def is_over_for(self, owner: str) -> bool:
        """``enter``, and whether nothing of the slice is left."""
        if not self.is_inside:
            self.enter(owner)
        return self._clock() >= self._ends_s

    def leave(self) -> None:
        """Ends the owner's slice."""
        self.is_inside = False
        self._used_s[self._owner] = SLICE_S + self._clock() - self._ends_s

    @contextmanager
    def slice(self, owner: str) -> Iterator[None]:
        """``enter`` and ``leave``, unless it is within another slice."""
        is_mine = not self.is_inside
        self.enter(owner)
        try:
            yield
        finally:
            if is_mine:
                self.leave()

    def start(self, owner: str, steps: Steps[None]) -> None:
        """Does work of the broker's own for an owner: after what was started for it before; at once if short."""
        stream = self._streams.get(owner)
        if stream is not None:
            stream.append(steps)
        elif len(list(islice(steps, SHORT_STEPS))) == SHORT_STEPS:
            self._streams[owner] = deque((steps,))
            with self.slice(owner):
                self._go_on_with(owner)

    def _go_on_with(self, owner: str) -> None:
        stream = self._streams[owner]
        while stream:
            try:
                for _ in stream[0]:
                    if self.is_over:
                        return self.later(owner, partial(self._go_on_with, owner))
            except Exception:  # a fault of ours ends this piece of work alone
                self._stats.internal_errors += 1
                log.exception("internal error in work of the broker's own")
            stream.popleft()
        del self._streams[owner]
        return None

    def later(self, owner: str, go_on: Callable[[], None]) -> None:
        """Calls ``go_on`` within a slice in one of the next turns of the loop, after the other owners'."""
        self._stats.work_deferred += 1
        calls = self._waiting.get(owner)
        if calls is None:
            calls = self._waiting[owner] = deque()
        calls.append(go_on)
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        if not self._is_due and self._waiting:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        self.is_inside, self._ends_s = True, self._clock() + SLICE_S
        try:
            while self._waiting:
                self._call_next()
                if self.is_over:
                    break
        finally:
            self.is_inside = False
            self._go_on_soon()

    def _call_next(self) -> None:
        owner, calls = self._waiting.popitem(last=False)
        go_on = calls.popleft()
        if calls:
            self._waiting[owner] = calls
        try:
            go_on()
        except Exception:  # a fault of ours ends this piece of work alone
            self._stats.internal_errors += 1
            log.exception("internal error in what waited for its turn")
