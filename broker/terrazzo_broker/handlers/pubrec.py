"""PUBREC: a QoS 2 message has arrived, or was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codec.errors import protocol_error
from ..codec.writer import PUBACK, PUBREL, ack

if TYPE_CHECKING:
    from ..connection import Connection

_NOT_FOUND = 0x92  # the one reason besides success [MQTT-3.6.2-1]


def handle_pubrec(connection: Connection, packet_id: int, reason: int) -> None:
    """Releases the identifier, unless the client refused the message. PUBRELs leave in the order of the PUBRECs.

    [MQTT-4.3.3-4] [MQTT-4.6.0-4]; [MQTT-4.3.3-1] [MQTT-4.6.0-4] of 3.1.1
    """
    session = connection.session
    assert session is not None
    if session.due(packet_id) == PUBACK:  # [MQTT-4.13.1-1]
        raise protocol_error(f"PUBREC for {packet_id}, which is a QoS 1 message")
    if reason >= 0x80:
        session.acknowledge(packet_id, reason)
        connection.pump()
    elif session.mark_received(packet_id):
        connection.write(ack(PUBREL, packet_id, 0, connection.version))
    else:
        connection.write(ack(PUBREL, packet_id, _NOT_FOUND, connection.version))
