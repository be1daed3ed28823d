"""Makes the ``Connection`` of an accepted transport."""

from __future__ import annotations

from ..admission import ListenerAdmission
from ..connection import Connection
from ..core import BrokerCore
from ..packet_loop import handle_packets


def new_connection(core: BrokerCore, listener: ListenerAdmission) -> Connection:
    """The connection of a socket that has just been accepted."""
    return Connection(core, listener, handle_packets)


def admitted_connection(core: BrokerCore, listener: ListenerAdmission, address: str, port: int) -> Connection:
    """The connection of a peer with this address that ``Admission`` has counted as not logged in already."""
    connection = Connection(core, listener, handle_packets)
    connection.address, connection.port = address, port
    connection.is_half_open = True
    return connection
