"""Whose turn it is to have credentials checked where a check costs: each address has its share of the slots.

Of two slots one address has one at a time, however much it asks, and what it asks beyond that waits in its own line.
So do all together who come from where they are not known (``KnownPlaces``), by address in turn: the other slot is kept
for those who are known.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from terrazzo.errors import Throttled, Unavailable
from terrazzo.reasons import say
from terrazzo_broker.peer_address import share_of

WAITING_OF_ADDRESS = 16
WAITING = 256  # of those who are known where they come from, and of those who are not

_BUSY_S = 1.0

_Line = deque[asyncio.Future[None]]


class _Lines:
    """Who waits, by address; the address that had its turn goes to the end."""

    def __init__(self) -> None:
        self.count = 0
        self.by_share: OrderedDict[str, _Line] = OrderedDict()

    def add(self, share: str) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self.by_share.setdefault(share, deque()).append(future)
        self.count += 1
        return future

    def remove(self, share: str, future: asyncio.Future[None]) -> None:
        """Takes out one that doesn't wait any longer, if it is still there."""
        line = self.by_share.get(share, deque())
        if future in line:
            line.remove(future)
            self.count -= 1
            if not line:
                del self.by_share[share]

    def grant_next(self, running: Counter[str], most: int) -> str | None:
        """Lets the next one through whose address has less than ``most`` slots; its address."""
        while True:
            share = next((each for each in self.by_share if running[each] < most), None)
            if share is None:
                return None
            future = self.by_share[share][0]
            self.remove(share, future)
            if not future.done():  # else it was cancelled a moment ago
                future.set_result(None)
                if share in self.by_share:
                    self.by_share.move_to_end(share)
                return share


class CheckTurns:
    """Slots for costly checks.

    Args:
        slots: how many checks run at a time; an address, and all strangers, have one less of them, and one at least.

    Attributes:
        refused: how many found too many waiting.
    """

    def __init__(self, slots: int) -> None:
        self.refused = 0
        self._free = slots
        self._most = max(1, slots - 1)
        self._running: Counter[str] = Counter()  # by share
        self._of_strangers = 0  # those that run
        self._known, self._strangers = _Lines(), _Lines()

    @asynccontextmanager
    async def turn(self, address: str, *, is_known: bool) -> AsyncIterator[None]:
        """Waits for a slot, and has it until the end of the block.

        Raises:
            Throttled: too many of that address wait.
            Unavailable: too many wait.
        """
        share, lines = share_of(address), self._known if is_known else self._strangers
        await self._wait(share, lines)
        try:
            yield
        finally:
            self._release(share, lines)

    async def _wait(self, share: str, lines: _Lines) -> None:
        if self._free and self._running[share] < self._most and self._has_slot(lines):
            return self._occupy(share, lines)
        if len(lines.by_share.get(share, ())) >= WAITING_OF_ADDRESS:
            self.refused += 1
            raise Throttled(say("too_many_logins_waiting", most=WAITING_OF_ADDRESS), _BUSY_S)
        if lines.count >= WAITING:
            self.refused += 1
            raise Unavailable(say("too_many_logins"))
        future = lines.add(share)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._release(share, lines)
            else:
                lines.remove(share, future)
            raise
        return None

    def _has_slot(self, lines: _Lines) -> bool:
        """Whether one of these lines may have a free slot."""
        return lines is self._known or self._of_strangers < self._most

    def _occupy(self, share: str, lines: _Lines) -> None:
        self._free -= 1
        self._running[share] += 1
        self._of_strangers += lines is self._strangers

    def _release(self, share: str, lines: _Lines) -> None:
        self._free += 1
        self._of_strangers -= lines is self._strangers
        self._running[share] -= 1
        if not self._running[share]:
            del self._running[share]
        for waiting in (self._known, self._strangers):
            while self._free and self._has_slot(waiting):
                granted = waiting.grant_next(self._running, self._most)
                if granted is None:
                    break
                self._occupy(granted, waiting)
