"""PUBACK: a QoS 1 message has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codec.errors import protocol_error
from ..codec.writer import PUBACK

if TYPE_CHECKING:
    from ..connection import Connection
    from ..session import Session


def handle_puback(connection: Connection, packet_id: int, reason: int) -> None:
    """The message is done, whatever the reason; an identifier that isn't known changes nothing. [MQTT-4.3.2-3]"""
    assert connection.session is not None
    take_puback(connection.session, packet_id, reason)
    connection.pump()


def take_puback(session: Session, packet_id: int, reason: int = 0) -> None:
    """Takes one of several; what may be sent next is left to the caller."""
    if session.due(packet_id) not in (PUBACK, 0):  # [MQTT-4.13.1-1]
        raise protocol_error(f"PUBACK for {packet_id}, which is a QoS 2 message")
    session.acknowledge(packet_id, reason)
