"""PUBREL: the client lets go of a QoS 2 identifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..codec.writer import PUBCOMP, ack

if TYPE_CHECKING:
    from ..connection import Connection

_NOT_FOUND = 0x92  # the one reason besides success [MQTT-3.7.2-1]


def handle_pubrel(connection: Connection, packet_id: int, reason: int) -> None:
    """Completes the exchange; the next publish with this identifier is a new one. [MQTT-4.3.3-11] [MQTT-4.3.3-12]"""
    assert connection.session is not None
    known = connection.session.release(packet_id)
    connection.write(ack(PUBCOMP, packet_id, 0 if known else _NOT_FOUND, connection.version))


def take_pubrels(connection: Connection, packet_ids: Sequence[int]) -> None:
    """Takes several; their PUBCOMPs leave together."""
    session, version = connection.session, connection.version
    assert session is not None
    connection.write(
        b"".join([ack(PUBCOMP, each, 0 if session.release(each) else _NOT_FOUND, version) for each in packet_ids])
    )
