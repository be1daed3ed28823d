"""Asks the hooks to authenticate a client, and applies their verdict to its connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import mqtt5
from mqtt5 import AuthReasonCode, ConnAckReasonCode, DisconnectReasonCode

from ..asked_hooks import UNAVAILABLE
from ..codec.reasons import connack_reason, disconnect_reason
from ..connection import Connection
from ..connection_state import ConnectionState
from ..hooks import Accept, Challenge, ConnectRequest, Refuse, Verdict
from ..refusals import Cause
from .accept import accept, is_takeable, session_expiry_s


def ask(connection: Connection, request: ConnectRequest) -> None:
    """Asks the hooks about a CONNECT or a re-authentication, in a task; the connection waits."""
    _wait(connection, lambda: connection.core.hooks.authenticate(request))


def proceed(connection: Connection, challenge: Challenge, data: bytes) -> None:
    """Passes the client's answer to the challenge, in a task; the connection waits."""
    assert connection.request is not None
    client_id = connection.request.client_id
    _wait(connection, lambda: connection.core.hooks.conclude(client_id, lambda: challenge.proceed(data)))


def _wait(connection: Connection, question: Callable[[], Awaitable[Verdict]]) -> None:
    connection.is_deciding = True

    async def decide() -> None:
        verdict = await question()
        connection.is_deciding = False
        _conclude(connection, verdict)

    def give_up() -> None:
        connection.tell_refused(Cause.INTERNAL_ERROR, DisconnectReasonCode.UNSPECIFIED_ERROR)
        connection.close("internal error", reason=DisconnectReasonCode.UNSPECIFIED_ERROR)

    connection.core.peer_tasks.start(f"authenticate {connection}", decide, give_up)


def _conclude(connection: Connection, verdict: Verdict) -> None:
    """Applies the verdict on a CONNECT, on one step of AUTH, or on a re-authentication."""
    if connection.state is ConnectionState.CLOSED:
        return
    if verdict is UNAVAILABLE:
        connection.tell_refused(Cause.LOGIN_UNAVAILABLE, UNAVAILABLE.reason)
    if isinstance(verdict, Challenge):
        _challenge(connection, verdict)
    elif connection.state is ConnectionState.OPEN:
        _conclude_reauthentication(connection, verdict)
    elif isinstance(verdict, Refuse):
        connection.will = None  # there never was a session that it could belong to
        connection.refuse(connack_reason(verdict.reason), verdict.message)  # 0x85 among them [MQTT-3.1.3-8]
    elif connection.core.storage.is_failing and session_expiry_s(connection, verdict):
        connection.will = None
        text = "sessions can't be stored at the moment"
        connection.refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, text, Cause.STORAGE_UNAVAILABLE)
    elif not is_takeable(connection, verdict):
        connection.will = None
        connection.refuse(ConnAckReasonCode.PACKET_TOO_LARGE, "", Cause.CONNACK_TOO_LARGE)
    else:
        accept(connection, verdict)
    connection.proceed()


def _challenge(connection: Connection, verdict: Challenge) -> None:
    """Sends an AUTH with the challenge; the connection waits for the client's."""
    connection.challenge = verdict
    if connection.state is ConnectionState.DECIDING:
        connection.state = ConnectionState.CHALLENGED
    _send(connection, AuthReasonCode.CONTINUE_AUTHENTICATION, verdict.data)  # [MQTT-4.12.0-2]


def _conclude_reauthentication(connection: Connection, verdict: Verdict) -> None:
    """Ends a re-authentication: the connection goes on with the new identity, or closes. [MQTT-4.12.1-2]"""
    if isinstance(verdict, Refuse):
        connection.fail(disconnect_reason(verdict.reason), verdict.message or "re-authentication failed")
    elif isinstance(verdict, Accept) and connection.client is not None:
        if verdict.owner != connection.client.owner:  # the session is the former owner's
            text = "the client belongs to another owner by now"
            connection.tell_refused(Cause.ENDED_BY_SERVER, DisconnectReasonCode.NOT_AUTHORIZED, text)
            connection.fail(DisconnectReasonCode.NOT_AUTHORIZED, text)
            return
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
