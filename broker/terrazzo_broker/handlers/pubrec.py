"""PUBREC: a QoS 2 message has arrived, or was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..codec.errors import protocol_error
from ..codec.writer import PUBACK, PUBREL, ack

if TYPE_CHECKING:
    from ..connection import Connection

_PUBREL = b"\x62\x02"
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


def take_pubrecs(connection: Connection, packet_ids: Sequence[int]) -> None:
    """Takes several that refuse nothing; their PUBRELs leave together, in their order. [MQTT-4.6.0-4] of both"""
    session = connection.session
    assert session is not None
    unknown, wrong = session.mark_all_received(packet_ids)
    if wrong:  # [MQTT-4.13.1-1]
        raise protocol_error(f"PUBREC for {wrong}, which is a QoS 1 message")
    if unknown:
        reasons = [_NOT_FOUND if each in unknown else 0 for each in packet_ids]
        pairs = zip(packet_ids, reasons, strict=True)
        connection.write(b"".join([ack(PUBREL, each, reason, connection.version) for each, reason in pairs]))
    else:
        connection.write(b"".join([_PUBREL + each.to_bytes(2, "big") for each in packet_ids]))
