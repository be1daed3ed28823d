"""PUBCOMP: the end of a QoS 2 exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codec.errors import protocol_error
from ..codec.writer import PUBCOMP

if TYPE_CHECKING:
    from ..connection import Connection


def handle_pubcomp(connection: Connection, packet_id: int, reason: int) -> None:
    """The identifier is free again. [MQTT-4.3.3-5]"""
    session = connection.session
    assert session is not None
    if session.due(packet_id) not in (PUBCOMP, 0):  # [MQTT-4.13.1-1]
        raise protocol_error(f"PUBCOMP for {packet_id}, for which no PUBREL was sent")
    session.acknowledge(packet_id, reason)
    connection.pump()
