"""Makes the ``Connection`` of an accepted transport."""

from __future__ import annotations

from ..admission.half_open import Peer
from ..admission.limits import ListenerAdmission
from ..connection import Connection
from ..core import BrokerCore
from ..packet_loop import handle_packets


def new_connection(core: BrokerCore, listener: ListenerAdmission) -> Connection:
    """The connection of a socket that has just been accepted."""
    return Connection(core, listener, handle_packets)


def admitted_connection(
    core: BrokerCore, listener: ListenerAdmission, peer: Peer, address: tuple[str, int]
) -> Connection:
    """The connection of a socket that ``Admission`` has counted already, with its client's address and port."""
    connection = Connection(core, listener, handle_packets)
    connection.address, connection.port = address
    connection.peer = peer
    return connection
