"""CONNECT: who it is, whether it may, which session it gets."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import mqtt5
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from ..codec.errors import PacketError, UnsupportedProtocol
from ..codec.publish import PublishEncoder
from ..codec.reader import parse_connect
from ..codec.reasons import connack_reason
from ..codec.wire import Cursor
from ..hooks import Accept, Challenge, Client, ConnectRequest, Refuse, Verdict
from ..state import State
from .auth import challenge_client, conclude_reauthentication

if TYPE_CHECKING:
    from ..connection import Connection

_REFUSED_LEVEL_3 = b"\x20\x02\x00\x01"
_REFUSED_LEVEL_5 = b"\x20\x03\x00\x84\x00"


def handle_connect(connection: Connection, header: int, cursor: Cursor) -> None:
    """Reads a CONNECT and asks the hooks; the answer comes back through ``conclude``."""
    connection.version = _announced_version(cursor)
    try:
        packet, connection.version = parse_connect(header, cursor)
    except UnsupportedProtocol as error:  # [MQTT-3.1.2-2] of both
        connection.version = 0
        is_older = error.level < 5 or _has_form_of_3_1_1(cursor)
        connection.write(_REFUSED_LEVEL_3 if is_older else _REFUSED_LEVEL_5)
        return connection.refuse(ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION, str(error))
    connection.connect_packet = packet
    refusal = connection.broker.admit(connection, packet.client_id)
    if refusal is not None:
        return connection.refuse(*refusal)
    if not packet.client_id and connection.version == 4 and not packet.clean_start:  # [MQTT-3.1.3-8] of 3.1.1
        return connection.refuse(ConnAckReasonCode.CLIENT_ID_NOT_VALID, "an empty client id needs a clean session")
    _check_will(packet.will)
    _remember(connection, packet)
    connection.state = State.DECIDING
    assert connection.request is not None
    return connection.broker.decide(connection, connection.broker.hooks.authenticate(connection.request))


def _has_form_of_3_1_1(cursor: Cursor) -> bool:
    """Whether what follows the protocol level has no properties, so that its sender may know only 3.1.1."""
    try:
        flags, _ = cursor.integer(1), cursor.integer(2)
        for is_there in (True, flags & 0x04, flags & 0x04, flags & 0x80, flags & 0x40):
            if is_there:
                cursor.binary()
        cursor.finish()
    except PacketError:
        return False
    return True


def _announced_version(cursor: Cursor) -> int:
    """The version that an error in this CONNECT is answered in; 0 where it can't be told."""
    level = cursor.buffer[cursor.position + 6 : cursor.position + 7]
    is_mqtt = cursor.buffer[cursor.position : cursor.position + 6] == b"\x00\x04MQTT"
    return level[0] if is_mqtt and level in (b"\x04", b"\x05") else 0


def _check_will(will: mqtt5.Will | None) -> None:
    if will is None:
        return
    if will.payload_format_indicator:
        try:
            (will.payload or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise PacketError(DisconnectReasonCode.PAYLOAD_FORMAT_INVALID, "the will is not UTF-8") from None


def _remember(connection: Connection, packet: mqtt5.ConnectPacket) -> None:
    connection.will = packet.will
    connection.request = ConnectRequest(
        # Any text will do [MQTT-3.1.3-5] of both. An empty one: [MQTT-3.1.3-6] [MQTT-3.2.2-16]; [MQTT-3.1.3-6] of 3.1.1
        client_id=packet.client_id or uuid.uuid4().hex,
        username=packet.username,
        password=packet.password,
        protocol=connection.version,
        address=connection.address,
        listener=connection.gate.name,
        clean_start=packet.clean_start,
        keep_alive_s=packet.keep_alive,
        session_expiry_s=packet.session_expiry_interval,
        auth_method=packet.authentication_method,
        auth_data=packet.authentication_data,
        certificate_name=connection.certificate_name,
    )


def conclude(connection: Connection, verdict: Verdict) -> None:
    """The hooks have decided on a CONNECT, on one step of AUTH, or on a re-authentication."""
    if connection.state is State.CLOSED:
        return
    if isinstance(verdict, Challenge):
        challenge_client(connection, verdict)
    elif connection.state is State.OPEN:
        conclude_reauthentication(connection, verdict)
    elif isinstance(verdict, Refuse):
        connection.will = None  # there never was a session that it could belong to
        connection.refuse(connack_reason(verdict.reason), verdict.message)  # 0x85 among them [MQTT-3.1.3-8]
    elif connection.broker.storage.is_failing and _expiry(connection, verdict):
        connection.will = None
        connection.refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, "sessions can't be stored at the moment")
    elif not _is_takeable(connection, verdict):
        connection.will = None
        connection.refuse(ConnAckReasonCode.PACKET_TOO_LARGE, "")
    else:
        _accept(connection, verdict)
    connection.proceed()


def _is_takeable(connection: Connection, verdict: Accept) -> bool:
    """Whether the client takes a packet as large as its CONNACK has to be. [MQTT-3.1.2-24]"""
    largest = connection.largest_packet_bytes
    return largest is None or len(_connack(connection, verdict, session_present=False).write()) <= largest


def _accept(connection: Connection, verdict: Accept) -> None:
    broker, packet, request = connection.broker, connection.connect_packet, connection.request
    assert packet is not None
    assert request is not None
    expiry_s, keep_alive_s = _expiry(connection, verdict), _keep_alive(connection, packet, verdict)
    session, present = broker.open_session(request.client_id, clean_start=packet.clean_start, outlives=expiry_s > 0)
    session.set_expiry(expiry_s)
    connection.keep_alive_s = keep_alive_s
    connection.encoder = _encoder(connection, packet)
    connection.client = Client(
        client_id=request.client_id,
        username=request.username,
        protocol=connection.version,
        address=connection.address,
        port=connection.port,
        listener=connection.gate.name,
        connected_us=broker.now_us(),
        last_packet_us=broker.now_us(),
        keep_alive_s=keep_alive_s,
        identity=verdict.identity,
        filters=set(session.subscriptions),
    )
    connection.session, session.connection = session, connection
    # [MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.2.2-2] [MQTT-3.2.2-3]
    # [MQTT-3.1.4-4] [MQTT-3.2.0-1] [MQTT-3.2.2-1] [MQTT-3.2.2-2] [MQTT-3.2.2-3] of 3.1.1
    connection.send_packet(_connack(connection, verdict, session_present=present))
    connection.state = State.OPEN
    connection.connect_packet = None
    connection.request = replace(request, password=None, auth_data=None)
    session.open(min(packet.receive_max, broker.settings.inflight_to_client))  # [MQTT-3.3.4-9]
    if connection.will is not None:  # [MQTT-3.1.2-7]
        broker.storage.note_will(connection.will, connection.client)
    broker.on_connected(connection)
    connection.pump()


def _expiry(connection: Connection, verdict: Accept) -> int:
    """Server's word before client's; a clean session of 3.1.1 ends with its connection. [MQTT-3.1.2-6] of 3.1.1"""
    request, longest_s = connection.request, connection.broker.settings.max_session_expiry_s
    assert request is not None
    if verdict.session_expiry_s is None or (request.protocol == 4 and request.clean_start):
        return min(request.session_expiry_s, longest_s)
    return min(verdict.session_expiry_s, longest_s)


def _keep_alive(connection: Connection, packet: mqtt5.ConnectPacket, verdict: Accept) -> int:
    """Server Keep Alive where there is one, else the client's. [MQTT-3.1.2-21] [MQTT-3.2.2-22]"""
    keep_alive_s = packet.keep_alive if not verdict.keep_alive_s else verdict.keep_alive_s
    longest_s = connection.broker.settings.max_keepalive_s
    if longest_s and connection.version == 5 and not 0 < keep_alive_s <= longest_s:
        return longest_s
    return keep_alive_s


def _encoder(connection: Connection, packet: mqtt5.ConnectPacket) -> PublishEncoder:
    aliases = min(packet.topic_alias_max, connection.broker.settings.outbound_alias_maximum)
    mark = connection.broker.mark_for(packet.user_properties)
    if connection.version == 5 and (aliases or mark or packet.max_packet_size is not None):
        return PublishEncoder(5, alias_maximum=aliases, packet_bytes=packet.max_packet_size, mark=mark)
    return connection.broker.plain_encoder(connection.version)


def _connack(connection: Connection, verdict: Accept, *, session_present: bool) -> mqtt5.ConnAckPacket:
    packet, request, settings = connection.connect_packet, connection.request, connection.broker.settings
    assert packet is not None
    assert request is not None
    expiry_s, keep_alive_s = _expiry(connection, verdict), _keep_alive(connection, packet, verdict)
    # What isn't said is supported: QoS 2 and retaining, in wills too. [MQTT-3.2.2-9] [MQTT-3.2.2-12] [MQTT-3.2.2-13]
    # Response Information and user properties are never sent. [MQTT-3.1.2-28] [MQTT-3.2.2-20]
    return mqtt5.ConnAckPacket(
        session_present=session_present,  # the only flag there is [MQTT-3.2.2-1]
        session_expiry_interval=expiry_s if expiry_s != packet.session_expiry_interval else None,
        receive_max=settings.inflight_from_client,
        topic_alias_max=settings.topic_alias_maximum,
        max_packet_size=settings.packet_bytes,
        assigned_client_id=None if packet.client_id else request.client_id,  # [MQTT-3.1.3-7]
        server_keep_alive=keep_alive_s if keep_alive_s != packet.keep_alive else None,
        authentication_method=request.auth_method,  # [MQTT-4.12.0-5] [MQTT-4.12.0-6]
        authentication_data=verdict.auth_data,
    )
