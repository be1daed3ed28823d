"""TCP, plain or with TLS, with the PROXY protocol or without.

An ordered, lossless stream of bytes each way. [MQTT-4.2-1]; [MQTT-7.1.1-1] of 3.1.1
What is listened for here is MQTT and nothing that would have to be agreed on besides. [MQTT-7.0.0-2] of 3.1.1
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..admission import Gate
from ..connection import Connection
from .acceptor import BACKLOG, Acceptor, bind
from .certificates import Certificates
from .listener import Listener, ServerListener
from .reception import Reception

if TYPE_CHECKING:
    from ..broker import Broker


async def listen_tcp(broker: Broker, host: str, port: int) -> tuple[Listener, int]:
    """A listener for plain TCP and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    loop, gate = asyncio.get_running_loop(), Gate("tcp")
    server = await loop.create_server(lambda: Connection(broker, gate), host, port, backlog=BACKLOG)
    return ServerListener(server), int(server.sockets[0].getsockname()[1])


def listen_received(
    broker: Broker, host: str, port: int, *, certificates: Certificates | None, proxy_protocol: bool
) -> tuple[Listener, int]:
    """A listener for TCP with TLS, a PROXY header, or both, and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    gate = Gate("tcp" if certificates is None else "tls")

    def connection(address: str, port: int) -> Connection:
        made = Connection(broker, gate)
        made.address, made.port = address, port
        made.is_half_open = True  # the reception has counted it
        return made

    reception = Reception(broker, gate, connection, certificates=certificates, proxy_protocol=proxy_protocol)
    sockets = bind(host, port)
    return Acceptor(sockets, reception.receive), int(sockets[0].getsockname()[1])
