"""Handles DISCONNECT from the client. MQTT, section 3.14."""

from __future__ import annotations

import mqtt5
from mqtt5 import DisconnectReasonCode

from ..codec.errors import protocol_error
from ..connection import Connection


def handle_disconnect(connection: Connection, packet: mqtt5.DisconnectPacket) -> None:
    """Closes the connection; a normal disconnection (0x00) deletes the will. [MQTT-3.14.4-3] of both

    Raises:
        PacketError: 0x82 for an expiry of a session that was to end with its connection.
    """
    session = connection.session
    expiry_s = packet.session_expiry_interval
    if session is not None and expiry_s is not None:
        if expiry_s and not session.expiry_s:
            # section 3.14.2.2.2
            raise protocol_error("a session that ends with its connection can't be given an expiry")
        session.set_expiry(expiry_s, connection)
    is_normal = packet.reason_code == DisconnectReasonCode.NORMAL_DISCONNECTION
    if is_normal:
        connection.will = None
    connection.close("disconnected" if is_normal else f"disconnected: {packet.reason_code.name.lower()}")
