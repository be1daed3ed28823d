"""The handlers of clients' packets: one file for each kind or family, chosen by the tables below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mqtt5

from ..codec.errors import protocol_error
from ..codec.publish import parse_publish, read_publish
from ..codec.reader import CONNECT, PUBLISH, Packet, parse_packet, read_packet
from ..codec.subscribe import SubscribePacket, UnsubscribePacket
from ..codec.wire import Cursor
from ..codec.writer import PUBACK, PUBCOMP, PUBREC, PUBREL
from ..connection import Connection
from ..connection_state import ConnectionState
from ..scheduling.turns import Steps
from .acks import handle_acks
from .auth import handle_auth
from .connect import handle_connect
from .disconnect import handle_disconnect
from .ping import handle_pingreq
from .publish import handle_publish
from .subscribe import handle_subscribe
from .unsubscribe import handle_unsubscribe

ACKS = (PUBACK, PUBREC, PUBREL, PUBCOMP)
_ACK_PACKETS = (mqtt5.PubAckPacket, mqtt5.PubRecPacket, mqtt5.PubRelPacket, mqtt5.PubCompPacket)

_LARGE_BYTES = 2_048  # of a packet whose reading alone may take long

_IN_STEPS: dict[type, Callable[[Connection, Any], Steps[None]]] = {
    SubscribePacket: handle_subscribe,
    UnsubscribePacket: handle_unsubscribe,
}
_HANDLERS: dict[type, Callable[[Connection, Any], None]] = {
    mqtt5.PingReqPacket: handle_pingreq,
    mqtt5.DisconnectPacket: handle_disconnect,
    mqtt5.AuthPacket: handle_auth,
}


def handle_packet(connection: Connection, header: int, data: bytes, start: int, end: int, now_us: int) -> None:
    """Handles the packet with the first byte ``header`` and the body ``data[start:end]``."""
    if connection.state is ConnectionState.OPEN:
        if header >> 4 == PUBLISH:
            cursor = Cursor(data, start, end)
            if end - start > _LARGE_BYTES and connection.version == 5:
                return connection.work(_publish_in_steps(connection, header, cursor, now_us))
            steps = handle_publish(connection, parse_publish(header, cursor, connection.version), now_us)
            return None if steps is None else connection.work(steps)
        return _handle_open(connection, header, Cursor(data, start, end))
    if connection.state is ConnectionState.NEW:
        return handle_connect(connection, header, Cursor(data, start, end))
    return _handle_challenged(connection, header, Cursor(data, start, end))


def _publish_in_steps(connection: Connection, header: int, cursor: Cursor, now_us: int) -> Steps[None]:
    publish = yield from read_publish(header, cursor, connection.version)
    steps = handle_publish(connection, publish, now_us)
    if steps is not None:
        yield from steps


def _handle_open(connection: Connection, header: int, cursor: Cursor) -> None:
    if header >> 4 == CONNECT:
        raise protocol_error("a second CONNECT")  # [MQTT-3.1.0-2] of both
    if cursor.end - cursor.position > _LARGE_BYTES:
        return connection.work(_handle_in_steps(connection, header, cursor))
    return _handle_packet(connection, header, parse_packet(header, cursor, connection.level))


def _handle_in_steps(connection: Connection, header: int, cursor: Cursor) -> Steps[None]:
    packet = yield from read_packet(header, cursor, connection.level)
    if type(packet) in _IN_STEPS:
        yield from _IN_STEPS[type(packet)](connection, packet)
    else:
        _handle_packet(connection, header, packet)


def _handle_packet(connection: Connection, header: int, packet: Packet) -> None:
    if isinstance(packet, _ACK_PACKETS):
        return handle_acks(connection, ACKS[(header >> 4) - 4], (packet.packet_id,), int(packet.reason_code))
    handle_in_steps = _IN_STEPS.get(type(packet))
    if handle_in_steps is not None:
        return connection.work(handle_in_steps(connection, packet))
    return _HANDLERS[type(packet)](connection, packet)


def _handle_challenged(connection: Connection, header: int, cursor: Cursor) -> None:
    packet = parse_packet(header, cursor, connection.level) if header >> 4 != CONNECT else None
    if isinstance(packet, mqtt5.DisconnectPacket):
        return handle_disconnect(connection, packet)
    if not isinstance(packet, mqtt5.AuthPacket):
        raise protocol_error("another packet than AUTH during authentication")  # [MQTT-3.1.2-30]
    return handle_auth(connection, packet)
