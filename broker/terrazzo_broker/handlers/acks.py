"""Handles PUBACK, PUBREC, PUBREL and PUBCOMP, by the tables in ``delivery/qos.py``. [MQTT-4.3]"""

from __future__ import annotations

from collections.abc import Sequence

from ..codec.errors import protocol_error
from ..codec.writer import PUBCOMP, PUBREC, PUBREL, ack
from ..connection import Connection
from ..delivery.qos import RECEIVER, ReceiverStep, steps_of
from ..delivery.session import Session

_PUBREL = b"\x62\x02"
_NOT_FOUND = 0x92  # the one reason besides success [MQTT-3.6.2-1] [MQTT-3.7.2-1]


def handle_acks(connection: Connection, kind: int, packet_ids: Sequence[int], reason: int = 0) -> None:
    """Handles one acknowledgement, or several consecutive ones of one kind (the first byte) without a reason.

    Their answers are sent together, in their order. [MQTT-4.6.0-4] of both
    """
    session = connection.session
    assert session is not None
    if kind == PUBREL:
        connection.write(b"".join([_complete(session, each, connection.version) for each in packet_ids]))
        return
    not_found, wrong = session.acknowledge(steps_of(kind, reason), packet_ids, reason)
    if wrong:  # [MQTT-4.13.1-1]
        raise protocol_error(f"packet type {kind >> 4} for {wrong}, for which another one is due")
    if kind == PUBREC and reason < 0x80:
        connection.write(_release(packet_ids, not_found, connection.version))
    else:
        connection.pump()


def _release(packet_ids: Sequence[int], not_found: set[int], version: int) -> bytes:
    """The PUBRELs that answer PUBRECs. [MQTT-4.3.3-4]; [MQTT-4.3.3-1] of 3.1.1"""
    if not not_found:
        return b"".join([_PUBREL + each.to_bytes(2, "big") for each in packet_ids])
    return b"".join([ack(PUBREL, each, _NOT_FOUND if each in not_found else 0, version) for each in packet_ids])


def _complete(session: Session, packet_id: int, version: int) -> bytes:
    """The PUBCOMP that answers a PUBREL; it frees the identifier. [MQTT-4.3.3-11] [MQTT-4.3.3-12]"""
    answer = RECEIVER[PUBREL][session.received(packet_id)]
    session.release(packet_id)
    return ack(PUBCOMP, packet_id, _NOT_FOUND if answer is ReceiverStep.NOT_FOUND else 0, version)
