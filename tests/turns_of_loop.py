"""How long the loop's thread works in one turn: processor time, which a busy machine does not lengthen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LongestTurn:
    """``cpu_s``: the most that the thread of the loop worked between two turns of a task that sleeps a millisecond."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    async def watch(self) -> None:
        """Looks until it is cancelled; leaves the loop idle where nobody else works."""
        while True:
            began_s = time.thread_time()
            await asyncio.sleep(0.001)
            self.cpu_s = max(self.cpu_s, time.thread_time() - began_s)


@asynccontextmanager
async def longest_turn() -> AsyncIterator[LongestTurn]:
    """Watches the loop while the context lasts."""
    found = LongestTurn()
    task = asyncio.create_task(found.watch(), name="longest turn")
    try:
        yield found
        await asyncio.sleep(0.002)
    finally:
        task.cancel()
