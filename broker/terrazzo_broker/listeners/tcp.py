"""Listeners on TCP, plain or with TLS, with the PROXY protocol or without.

An ordered, lossless stream of bytes each way. [MQTT-4.2-1]; [MQTT-7.1.1-1] of 3.1.1
What is listened for here is MQTT and nothing that would have to be agreed on besides. [MQTT-7.0.0-2] of 3.1.1
"""

from __future__ import annotations

import asyncio
import select

from ..admission.half_open import Peer
from ..admission.limits import ListenerAdmission
from ..connection import Connection
from ..core import BrokerCore
from ..peer_address import TrustedProxies
from ..tasks import Tasks
from .accepted import admitted_connection, new_connection
from .acceptor import BACKLOG, Acceptor, bind
from .certificates import Certificates
from .handshake import Handshakes
from .listener import OpenListener, ServerListener
from .proxy_protocol import Address


async def listen_tcp(core: BrokerCore, host: str, port: int) -> tuple[OpenListener, int]:
    """A listener for plain TCP and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    loop, admission = asyncio.get_running_loop(), core.admission.listener("tcp")
    if hasattr(select, "epoll") and type(loop).add_reader is not asyncio.AbstractEventLoop.add_reader:
        from .polled_listener import PolledListener  # on Linux, on a loop that looks at descriptors

        sockets = bind(host, port)
        return PolledListener(core, admission, sockets), int(sockets[0].getsockname()[1])
    server = await loop.create_server(lambda: new_connection(core, admission), host, port, backlog=BACKLOG)
    return ServerListener(server), int(server.sockets[0].getsockname()[1])


class _Connections:
    """The ``Protocols`` of MQTT without anything around it."""

    def __init__(self, core: BrokerCore, listener: ListenerAdmission) -> None:
        self._core = core
        self._listener = listener

    def make(self, peer: Peer, source: Address) -> Connection:
        """A connection."""
        return admitted_connection(self._core, self._listener, peer, source)

    def discard(self, protocol: asyncio.Protocol) -> None:
        """Does nothing: nobody knows of it yet."""


def listen_with_handshake(
    core: BrokerCore, tasks: Tasks, host: str, port: int, *, certificates: Certificates | None, proxies: TrustedProxies
) -> tuple[OpenListener, int]:
    """A listener for TCP with TLS, a PROXY header from ``proxies``, or both, and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    admission = core.admission.listener("tcp" if certificates is None else "tls")
    handshakes = Handshakes(core, admission, _Connections(core, admission), certificates=certificates, proxies=proxies)
    sockets = bind(host, port)
    acceptor = Acceptor(admission.name, sockets, handshakes.perform, tasks, core)
    return acceptor, int(sockets[0].getsockname()[1])
