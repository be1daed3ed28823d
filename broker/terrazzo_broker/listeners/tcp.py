"""Plain TCP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..admission import Gate
from ..connection import Connection
from .listener import Listener, ServerListener

if TYPE_CHECKING:
    from ..broker import Broker

BACKLOG = 1024


async def listen_tcp(broker: Broker, host: str, port: int) -> tuple[Listener, int]:
    """A listener and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    loop, gate = asyncio.get_running_loop(), Gate("tcp")
    server = await loop.create_server(lambda: Connection(broker, gate), host, port, backlog=BACKLOG)
    return ServerListener(server), int(server.sockets[0].getsockname()[1])
