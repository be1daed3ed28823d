"""Handles CONNECT: decodes it, and refuses it at once or asks the hooks about it. MQTT, section 3.1."""

from __future__ import annotations

import uuid
from functools import partial

import mqtt5
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from ..admission.connect_pace import Turn
from ..codec.errors import PacketError, UnsupportedProtocol
from ..codec.reader import find_level, parse_connect
from ..codec.wire import Cursor
from ..connection import Connection
from ..connection_state import ConnectionState
from ..hooks import ConnectRequest
from ..refusals import Cause
from .authentication import ask

_REFUSED_LEVEL_3 = b"\x20\x02\x00\x01"
_REFUSED_LEVEL_5 = b"\x20\x03\x00\x84\x00"


def handle_connect(connection: Connection, header: int, cursor: Cursor) -> None:
    """Handles a CONNECT as far as the question to the hooks; ``authentication.py`` applies their verdict."""
    found = find_level(cursor)
    connection.speak(found.level if found is not None else 0)  # for answering an error in this CONNECT
    try:
        packet, protocol = parse_connect(header, cursor)
    except UnsupportedProtocol as error:  # [MQTT-3.1.2-2] of both
        is_older = error.level < 5 or _has_form_of_3_1_1(cursor)
        connection.write(_REFUSED_LEVEL_3 if is_older else _REFUSED_LEVEL_5)
        cause = Cause.UNSUPPORTED_PROTOCOL
        return connection.refuse(ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION, str(error), cause)
    connection.is_bridge = protocol.is_bridge
    connection.connect_packet = packet
    if not packet.client_id and connection.level == 3:  # 1 to 23 characters; longer ones do no harm
        return _refuse_id(connection, "MQTT 3.1 has no empty client id")
    if not packet.client_id and connection.level == 4 and not packet.clean_start:  # [MQTT-3.1.3-8] of 3.1.1
        return _refuse_id(connection, "an empty client id needs a clean session")
    _check_will(packet.will)
    if packet.will is not None and packet.will.retain and connection.level == 5:
        _check_retains(connection)
    _remember(connection, packet)
    connection.state = ConnectionState.DECIDING
    return _wait_for_turn(connection)


def _refuse_id(connection: Connection, text: str) -> None:
    connection.refuse(ConnAckReasonCode.CLIENT_ID_NOT_VALID, text, Cause.CLIENT_ID_NOT_VALID)


def _wait_for_turn(connection: Connection) -> None:
    """Lets a CONNECT go on to the hooks at the listener's pace, or refuses it."""
    core, listener, peer = connection.core, connection.listener, connection.peer
    assert peer is not None
    core.admission.on_connect(peer)
    turn = listener.pace.enter(peer.share, connection, partial(_ask, connection))
    if turn is Turn.NOW:
        return _ask(connection)
    if turn is Turn.NEVER:
        return connection.refuse(*core.admission.refuse_pace(listener, connection.address))
    core.stats.connects_delayed += 1
    return None


def _ask(connection: Connection) -> None:
    core, request = connection.core, connection.request
    assert request is not None
    takes_over = core.client(request.client_id) is not None
    refusal = core.admission.refusal(connection.listener, takes_over=takes_over)
    if refusal is not None:
        return connection.refuse(*refusal)
    return ask(connection, request)


def _has_form_of_3_1_1(cursor: Cursor) -> bool:
    """Whether what follows the protocol level has the form of 3.1.1, without properties, so that 3.1.1 answers it."""
    try:
        flags, _ = cursor.integer(1), cursor.integer(2)
        for is_there in (True, flags & 0x04, flags & 0x04, flags & 0x80, flags & 0x40):
            if is_there:
                cursor.binary()
        cursor.finish()
    except PacketError:
        return False
    return True


def _check_retains(connection: Connection) -> None:
    if not connection.core.settings.retain_available:  # [MQTT-3.2.2-13]
        raise PacketError(DisconnectReasonCode.RETAIN_NOT_SUPPORTED, "nothing is retained here, nor wills")


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
        protocol=connection.level,
        address=connection.address,
        listener=connection.listener.name,
        clean_start=packet.clean_start,
        keep_alive_s=packet.keep_alive,
        session_expiry_s=packet.session_expiry_interval,
        auth_method=packet.authentication_method,
        auth_data=packet.authentication_data,
        certificate_name=connection.certificate_name,
        certificate=connection.certificate(),
    )
