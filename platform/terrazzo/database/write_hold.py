"""``WriteHold``: for a moment nobody writes, so that a copy of the database and of other files says the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from terrazzo.errors import Unavailable
from terrazzo.reasons import say

WAIT_S = 15.0  # for the transactions that are under way


class WriteHold:
    """A gate that writing transactions pass, and that can be shut."""

    def __init__(self) -> None:
        self._writing = 0
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Around a transaction that writes; waits while the gate is shut."""
        while not self._open.is_set():
            await self._open.wait()
        self._writing += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()

    @asynccontextmanager
    async def held(self, wait_s: float = WAIT_S) -> AsyncIterator[None]:
        """Shuts the gate, waits until nobody writes, and opens it at the end of the block.

        Raises:
            Unavailable: a transaction took longer than ``wait_s``, or somebody holds already.
        """
        if not self._open.is_set():
            raise Unavailable(say("writes_held_already"))
        self._open.clear()
        try:
            try:
                async with asyncio.timeout(wait_s):
                    await self._idle.wait()
            except TimeoutError:
                raise Unavailable(say("change_took_too_long", seconds=wait_s)) from None
            yield
        finally:
            self._open.set()
