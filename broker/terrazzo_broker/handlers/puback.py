"""PUBACK: a QoS 1 message has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..connection import Connection


def handle_puback(connection: Connection, packet_id: int, reason: int) -> None:
    """The message is done, whatever the reason; an identifier that isn't known changes nothing. [MQTT-4.3.2-5]"""
    assert connection.session is not None
    connection.session.acknowledge(packet_id, reason)
    connection.pump()
