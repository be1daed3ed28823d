"""DISCONNECT from the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mqtt5
from mqtt5 import DisconnectReasonCode

from ..codec.errors import protocol_error

if TYPE_CHECKING:
    from ..connection import Connection


def handle_disconnect(connection: Connection, packet: mqtt5.DisconnectPacket) -> None:
    """Closes; a normal disconnection takes the will with it. [MQTT-3.14.4-3] of both"""
    session = connection.session
    expiry_s = packet.session_expiry_interval
    if session is not None and expiry_s is not None:
        if expiry_s and not session.expiry_s:
            raise protocol_error(
                "a session that ends with its connection can't be given an expiry"
            )  # section 3.14.2.2.2
        session.set_expiry(expiry_s)
    is_normal = packet.reason_code == DisconnectReasonCode.NORMAL_DISCONNECTION
    if is_normal:
        connection.will = None
    connection.close("disconnected" if is_normal else f"disconnected: {packet.reason_code.name.lower()}")
