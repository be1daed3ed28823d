"""The port of a listener, and the listener that asyncio serves."""

from __future__ import annotations

import asyncio
from typing import Protocol


class OpenListener(Protocol):
    """Something that accepts connections until it is closed."""

    def is_serving(self) -> bool:
        """Whether it accepts connections."""

    async def close(self) -> None:
        """Stops accepting; open connections are closed by the broker."""

    async def finish(self) -> None:
        """Ends what else the listener has; called when the broker's connections are closed."""


class ServerListener:
    """A listener over an ``asyncio.Server``, which accepts by itself."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._server.is_serving()

    async def close(self) -> None:
        """Stops accepting."""
        self._server.close()

    async def finish(self) -> None:
        """Does nothing: the server has nothing else."""
