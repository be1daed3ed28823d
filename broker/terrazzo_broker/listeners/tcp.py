"""Plain TCP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..connection import Connection

if TYPE_CHECKING:
    from ..broker import Broker

BACKLOG = 1024


async def listen_tcp(broker: Broker, host: str, port: int) -> tuple[asyncio.Server, int]:
    """A listening socket and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(broker, "tcp"), host, port, backlog=BACKLOG)
    return server, int(server.sockets[0].getsockname()[1])
