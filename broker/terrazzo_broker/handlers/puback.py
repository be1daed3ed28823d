"""PUBACK: a QoS 1 message has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..codec.errors import protocol_error
from ..codec.writer import PUBACK

if TYPE_CHECKING:
    from ..connection import Connection
    from ..session import Session


def handle_puback(connection: Connection, packet_id: int, reason: int) -> None:
    """The message is done, whatever the reason; an identifier that isn't known changes nothing. [MQTT-4.3.2-3]"""
    session = connection.session
    assert session is not None
    if session.due(packet_id) not in (PUBACK, 0):  # [MQTT-4.13.1-1]
        raise protocol_error(f"PUBACK for {packet_id}, which is a QoS 2 message")
    session.acknowledge(packet_id, reason)
    connection.pump()


def take_done(session: Session, kind: int, packet_ids: Sequence[int]) -> None:
    """Takes several PUBACKs, or several PUBCOMPs; what may be sent next is left to the caller. [MQTT-4.3.2-3]"""
    wrong = session.acknowledge_all(kind, packet_ids)
    if wrong:  # [MQTT-4.13.1-1]
        raise protocol_error(f"packet type {kind >> 4} for {wrong}, for which another one is due")
