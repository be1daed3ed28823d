"""What every listener is to the broker."""

from __future__ import annotations

import asyncio
from typing import Protocol


class OpenListener(Protocol):
    """Something that accepts connections until it is closed."""

    def is_serving(self) -> bool:
        """Whether it accepts connections."""

    async def close(self) -> None:
        """Accepts no more; connections that stand are the broker's to close."""

    async def finish(self) -> None:
        """The broker's connections are gone: ends what else there is."""


class ServerListener:
    """A listener that the event loop serves by itself."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._server.is_serving()

    async def close(self) -> None:
        """Accepts no more."""
        self._server.close()

    async def finish(self) -> None:
        """Nothing else there is."""
