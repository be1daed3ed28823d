"""``LoopPauses``: lets long work on the event loop yield to other tasks; work in steps, which others may drive."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work in steps of less than a millisecond or two, with a result at the end. Raises what the work raises."""

_AT_A_STRETCH_S = 0.005


class LoopPauses:
    """Yields to the event loop when the work has run for ``_AT_A_STRETCH_S`` without a pause."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def pause(self) -> None:
        """Yields if it is time to; otherwise only reads the clock. To be awaited once for each item of the work."""
        if perf_counter() - self._since > _AT_A_STRETCH_S:
            await asyncio.sleep(0)
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
