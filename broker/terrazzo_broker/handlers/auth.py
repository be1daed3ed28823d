"""Handles AUTH: the steps of enhanced authentication, and re-authentication. [MQTT-4.12]"""

from __future__ import annotations

import mqtt5
from mqtt5 import AuthReasonCode
from msgspec.structs import replace

from ..codec.errors import protocol_error
from ..connection import Connection
from ..connection_state import ConnectionState
from .authentication import ask, proceed


def handle_auth(connection: Connection, packet: mqtt5.AuthPacket) -> None:
    """Passes the client's authentication data to the challenge that waits, or starts a re-authentication.

    Raises:
        PacketError: 0x82 for another method than CONNECT's, or a step out of turn.
    """
    request = connection.request
    if request is None or request.auth_method is None or packet.authentication_method != request.auth_method:
        # [MQTT-4.12.0-5] [MQTT-4.12.0-7] [MQTT-4.12.1-1]
        raise protocol_error("AUTH without the authentication method of CONNECT")
    data = packet.authentication_data or b""
    if packet.reason_code == AuthReasonCode.CONTINUE_AUTHENTICATION and connection.challenge is not None:
        challenge, connection.challenge = connection.challenge, None  # [MQTT-4.12.0-3]
        proceed(connection, challenge, data)
    elif packet.reason_code == AuthReasonCode.RE_AUTHENTICATE and connection.state is ConnectionState.OPEN:
        if connection.is_deciding or connection.challenge is not None:
            raise protocol_error("a second re-authentication before the first has ended")
        ask(connection, replace(request, auth_data=data, reauthentication=True))
    else:
        raise protocol_error(f"AUTH {packet.reason_code.name} out of turn")  # [MQTT-3.15.2-1]
    if connection.state is ConnectionState.CHALLENGED:
        connection.state = ConnectionState.DECIDING
