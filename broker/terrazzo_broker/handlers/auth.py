"""AUTH: the steps of an enhanced authentication, and its repetition. [MQTT-4.12]"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import mqtt5
from mqtt5 import AuthReasonCode

from ..codec.errors import protocol_error
from ..codec.reasons import disconnect_reason
from ..hooks import Accept, Challenge, Refuse, Verdict
from ..state import State

if TYPE_CHECKING:
    from ..connection import Connection


def handle_auth(connection: Connection, packet: mqtt5.AuthPacket) -> None:
    """Takes the client's next word to the hooks.

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
        connection.broker.decide(connection, challenge.proceed(data))
    elif packet.reason_code == AuthReasonCode.RE_AUTHENTICATE and connection.state is State.OPEN:
        if connection.is_deciding or connection.challenge is not None:
            raise protocol_error("a second re-authentication before the first has ended")
        request = replace(request, auth_data=data, reauthentication=True)
        connection.broker.decide(connection, connection.broker.hooks.authenticate(request))
    else:
        raise protocol_error(f"AUTH {packet.reason_code.name} out of turn")  # [MQTT-3.15.2-1]
    if connection.state is State.CHALLENGED:
        connection.state = State.DECIDING


def challenge_client(connection: Connection, verdict: Challenge) -> None:
    """Sends one more AUTH and waits for the answer."""
    connection.challenge = verdict
    if connection.state is State.DECIDING:
        connection.state = State.CHALLENGED
    _send(connection, AuthReasonCode.CONTINUE_AUTHENTICATION, verdict.data)  # [MQTT-4.12.0-2]


def conclude_reauthentication(connection: Connection, verdict: Verdict) -> None:
    """The end of a re-authentication: the connection goes on, or it closes. [MQTT-4.12.1-2]"""
    if isinstance(verdict, Refuse):
        connection.fail(disconnect_reason(verdict.reason), verdict.message or "re-authentication failed")
    elif isinstance(verdict, Accept) and connection.client is not None:
        connection.client.identity = verdict.identity
        connection.forget_grants()
        _send(connection, AuthReasonCode.SUCCESS, verdict.auth_data)


def _send(connection: Connection, reason: AuthReasonCode, data: bytes | None) -> None:
    assert connection.request is not None
    connection.send_packet(  # neither a reason string nor user properties [MQTT-3.15.2-2] [MQTT-3.15.2-3]
        mqtt5.AuthPacket(
            reason_code=reason, authentication_method=connection.request.auth_method, authentication_data=data
        )
    )
