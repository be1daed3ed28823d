"""``LoopPauses``: lets long work on the event loop yield to other tasks; work in steps, which others may drive.

Of all who compute at a time one goes on in each turn of the loop, companies in turn. If each did, a report, which needs
some five turns from its arrival to its acknowledgement, would wait in each of them for as many stretches as there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from terrazzo.company_queue import CompanyQueue
from terrazzo.ports import at_work

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work in steps of less than a millisecond or two, with a result at the end. Raises what the work raises."""

_AT_A_STRETCH_S = 0.005


class _Turns:
    """Those who wait to compute on one loop: by the company that their task works for, each in the order they came."""

    def __init__(self) -> None:
        self._waiting: CompanyQueue[asyncio.Future[None]] = CompanyQueue()

    def join(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when it is this one's turn."""
        turn = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._next, loop)
        self._waiting.put(at_work.company_id(), turn)
        return turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._waiting.take()
        while turn is not None and turn.done():  # whose task was cancelled
            turn = self._waiting.take()
        if turn is not None:
            turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._next, loop)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def next_turn() -> None:
    """Lets all others have their turn; of those who compute, one goes on in each turn of the loop."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = _Turns()
    await turns.join(loop)


class LoopPauses:
    """Yields to the event loop when the work has run for ``_AT_A_STRETCH_S`` without a pause."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def pause(self) -> None:
        """Yields if it is time to; otherwise only reads the clock. To be awaited once for each item of the work."""
        if perf_counter() - self._since > _AT_A_STRETCH_S:
            await next_turn()
            self._since = perf_counter()


def at_once(steps: Steps[T]) -> T:
    """Does all the steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def in_turns(steps: Steps[T]) -> T:
    """Does the steps, and lets others have their turn in between."""
    pauses = LoopPauses()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await pauses.pause()
