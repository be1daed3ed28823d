"""Accepts a client after its login: its session, its settings, its CONNACK. MQTT, section 3.2."""

from __future__ import annotations

import mqtt5
from mqtt5 import DisconnectReasonCode
from msgspec.structs import replace

from ..connection import Connection
from ..connection_state import ConnectionState
from ..delivery.encoder import PublishEncoder, plain_encoder
from ..hooks import Accept, Client, ConnectRequest
from ..refusals import Cause, Refusal


def is_takeable(connection: Connection, verdict: Accept) -> bool:
    """Whether the CONNACK fits the client's Maximum Packet Size. [MQTT-3.1.2-24]"""
    largest = connection.largest_packet_bytes
    return largest is None or len(_connack(connection, verdict, session_present=False).write()) <= largest


def accept(connection: Connection, verdict: Accept) -> None:
    """Attaches the session to the connection, sends CONNACK, then the queued messages."""
    core, packet, request = connection.core, connection.connect_packet, connection.request
    assert packet is not None
    assert request is not None
    expiry_s, keep_alive_s = session_expiry_s(connection, verdict), _keep_alive(connection, packet, verdict)
    _tell_taken_over(connection, core.client(request.client_id))
    session, present = core.open_session(
        request.client_id, clean_start=packet.clean_start, outlives=expiry_s > 0, owner=verdict.owner, origin=connection
    )
    session.set_expiry(expiry_s, connection)
    connection.keep_alive_s = keep_alive_s
    connection.encoder = _encoder(connection, packet)
    now_us = core.now_us()
    connection.client = Client(
        client_id=request.client_id,
        username=request.username,
        protocol=connection.level,
        address=connection.address,
        port=connection.port,
        listener=connection.listener.name,
        connected_us=now_us,
        last_packet_us=now_us,
        keep_alive_s=keep_alive_s,
        identity=verdict.identity,
        owner=verdict.owner,
        subscriber=session,
    )
    connection.session, session.connection = session, connection
    connection.subscriptions = core.tree.of(verdict.owner)
    # [MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.2.2-2] [MQTT-3.2.2-3]
    # [MQTT-3.1.4-4] [MQTT-3.2.0-1] [MQTT-3.2.2-1] [MQTT-3.2.2-2] [MQTT-3.2.2-3] of 3.1.1
    connection.send_packet(_connack(connection, verdict, session_present=present))
    connection.state = ConnectionState.OPEN
    connection.packet_limit = core.settings.packet_bytes
    connection.tells_why = connection.version == 5 and packet.request_problem_info
    connection.connect_packet = None
    connection.request = _for_reauthentication(request)
    session.open(min(packet.receive_max, core.settings.inflight_to_client))  # [MQTT-3.3.4-9]
    if connection.will is not None:  # [MQTT-3.1.2-7]
        core.storage.note_will(connection.will, connection.client, connection)
    _announce(connection, connection.client)
    core.drop_forbidden(session)
    connection.pump()


def _for_reauthentication(request: ConnectRequest) -> ConnectRequest | None:
    """What a later AUTH starts from, without secrets. None: it may not. [MQTT-4.12.1-1]"""
    return None if request.auth_method is None else replace(request, password=None, auth_data=None)


def _tell_taken_over(connection: Connection, former: Client | None) -> None:
    """Tells of a client whose connection ends because another one has logged in with its client id."""
    if former is not None:
        connection.core.hooks.tell_refused(
            Refusal(
                Cause.TAKEN_OVER,
                former.address,
                former.client_id,
                former.owner,
                int(DisconnectReasonCode.SESSION_TAKEN_OVER),
                f"from {connection.address}",
                former.protocol,
            )
        )


def _announce(connection: Connection, client: Client) -> None:
    core = connection.core
    core.stats.connects += 1
    core.stats.clients += 1
    core.connections.on_logged_in(connection)
    core.hooks.tell_connected(client)
    if client.filters:
        core.hooks.tell_subscribed(client, sorted(client.filters))


def session_expiry_s(connection: Connection, verdict: Accept) -> int:
    """The Session Expiry Interval: the verdict's before the client's, within the limit.

    A clean session of 3.1.1 ends with its connection. [MQTT-3.1.2-6] of 3.1.1
    """
    request, longest_s = connection.request, connection.core.settings.max_session_expiry_s
    assert request is not None
    if verdict.session_expiry_s is None or (request.protocol < 5 and request.clean_start):
        return min(request.session_expiry_s, longest_s)
    return min(verdict.session_expiry_s, longest_s)


def _keep_alive(connection: Connection, packet: mqtt5.ConnectPacket, verdict: Accept) -> int:
    """The Keep Alive in seconds: the verdict's or the limit where they apply, else the client's.

    [MQTT-3.1.2-21] [MQTT-3.2.2-22]
    """
    keep_alive_s = packet.keep_alive if not verdict.keep_alive_s else verdict.keep_alive_s
    longest_s = connection.core.settings.max_keepalive_s
    if longest_s and connection.version == 5 and not 0 < keep_alive_s <= longest_s:
        return longest_s
    return keep_alive_s


def _encoder(connection: Connection, packet: mqtt5.ConnectPacket) -> PublishEncoder:
    aliases = min(packet.topic_alias_max, connection.core.settings.outbound_alias_maximum)
    mark = connection.core.mark_for(packet.user_properties)
    if connection.version == 5 and (aliases or mark or packet.max_packet_size is not None):
        return PublishEncoder(5, alias_maximum=aliases, packet_bytes=packet.max_packet_size, mark=mark)
    return plain_encoder(connection.version)


def _connack(connection: Connection, verdict: Accept, *, session_present: bool) -> mqtt5.ConnAckPacket:
    packet, request, settings = connection.connect_packet, connection.request, connection.core.settings
    assert packet is not None
    assert request is not None
    expiry_s, keep_alive_s = session_expiry_s(connection, verdict), _keep_alive(connection, packet, verdict)
    # What isn't said is supported: QoS 2, in wills too. [MQTT-3.2.2-9] [MQTT-3.2.2-12]
    # Response Information and user properties are never sent. [MQTT-3.1.2-28] [MQTT-3.2.2-20]
    return mqtt5.ConnAckPacket(
        session_present=session_present and connection.level > 3,  # the only flag there is; 3.1 has none [MQTT-3.2.2-1]
        session_expiry_interval=expiry_s if expiry_s != packet.session_expiry_interval else None,
        retain_available=settings.retain_available,
        receive_max=settings.inflight_from_client,
        topic_alias_max=settings.topic_alias_maximum,
        max_packet_size=settings.packet_bytes,
        assigned_client_id=None if packet.client_id else request.client_id,  # [MQTT-3.1.3-7]
        server_keep_alive=keep_alive_s if keep_alive_s != packet.keep_alive else None,
        authentication_method=request.auth_method,  # [MQTT-4.12.0-5] [MQTT-4.12.0-6]
        authentication_data=verdict.auth_data,
    )
