"""``FrontDrain``: has a front become empty, so that it can be ended without any terminal being refused."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.terminals.presence import PresenceRegister

_AT_ONCE = 200  # terminals that are sent away together: all others have to log in elsewhere meanwhile
_PAUSE_S = 0.2
_SETTLE_S = 3.0  # for the log to acknowledge what was read
_HOLDER = "drain"


class FrontDrain:
    """Lets no terminal in any more; ends the sessions of those that are there, some at a time, each when all that was
    read of it is acknowledged: what a terminal hasn't had a PUBACK for was not read, and it sends that elsewhere.

    Args:
        stop_listening: of the broker.
    """

    def __init__(
        self,
        stop_listening: Callable[[], Awaitable[None]],
        *,
        bus: EmbeddedBus,
        ingest: IngestPipeline,
        presence: PresenceRegister,
    ) -> None:
        self._stop_listening = stop_listening
        self._bus = bus
        self._ingest = ingest
        self._presence = presence
        self._begun = asyncio.Event()

    @property
    def is_begun(self) -> bool:
        """Whether somebody has asked for it; it is never undone."""
        return self._begun.is_set()

    @property
    def clients(self) -> int:
        """How many terminals are connected."""
        return len(self._presence)

    def begin(self) -> None:
        """Has ``work`` begin; again changes nothing."""
        self._begun.set()

    async def work(self) -> None:
        """Waits for ``begin``; then goes on until it is cancelled, as a login that had begun may take as long as the
        lease of another front: who is let in by then is sent away, too."""
        await self._begun.wait()
        await self._stop_listening()
        while True:
            if self.clients:
                await self._send_some_away()
            await asyncio.sleep(_PAUSE_S)

    async def _send_some_away(self) -> None:
        self._bus.pause_intake(_HOLDER)
        try:
            if await self._ingest.is_idle(_SETTLE_S):  # else the log doesn't answer: they stay until it does
                self._bus.send_away(
                    [client.client_id for client in itertools.islice(self._presence.clients(), _AT_ONCE)]
                )
        finally:
            self._bus.resume_intake(_HOLDER)
