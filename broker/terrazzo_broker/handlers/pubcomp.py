"""PUBCOMP: the end of a QoS 2 exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..connection import Connection


def handle_pubcomp(connection: Connection, packet_id: int, reason: int) -> None:
    """The identifier is free again. [MQTT-4.3.3-5]"""
    assert connection.session is not None
    connection.session.acknowledge(packet_id, reason)
    connection.pump()
