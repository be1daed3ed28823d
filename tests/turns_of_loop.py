"""How long the loop's thread works in one turn: processor time, which a busy machine does not lengthen."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WorkClock:
    """Processor time of its maker's thread without that of the collector, which goes by all the tests before."""

    def __init__(self) -> None:
        self._collecting_s = 0.0
        self._thread = threading.get_ident()
        gc.callbacks.append(self._on_collection)

    def now_s(self) -> float:
        """Seconds."""
        return time.thread_time() - self._collecting_s

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() == self._thread:
            self._collecting_s += time.thread_time() * (1 if phase == "stop" else -1)

    def stop(self) -> None:
        """Hears of collections no more."""
        gc.callbacks.remove(self._on_collection)


class LongestTurn:
    """``cpu_s``: the most that the thread of the loop worked between two turns of a task that sleeps a millisecond."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.clock = WorkClock()

    async def watch(self) -> None:
        """Looks until it is cancelled; leaves the loop idle where nobody else works."""
        while True:
            began_s = self.clock.now_s()
            await asyncio.sleep(0.001)
            self.cpu_s = max(self.cpu_s, self.clock.now_s() - began_s)


@asynccontextmanager
async def longest_turn() -> AsyncIterator[LongestTurn]:
    """Watches the loop while the context lasts."""
    found = LongestTurn()
    task = asyncio.create_task(found.watch(), name="longest turn")
    try:
        await asyncio.sleep(0)  # it looks from here on, so that the very first turn counts
        yield found
        await asyncio.sleep(0.002)
    finally:
        task.cancel()
        found.clock.stop()
