"""PUBLISH in full: aliases, properties, retained messages, QoS 2, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqtt5 import DisconnectReasonCode

from ..codec.errors import PacketError, protocol_error
from ..codec.publish import Publish, parse_publish
from ..codec.wire import Cursor, decode_string
from ..codec.writer import PUBACK, PUBREC, ack
from ..hooks import Inbound, PublishGrant
from ..message import Message
from ..routing import Route
from ..topics.names import is_topic_name

if TYPE_CHECKING:
    from ..connection import Connection

_NO_SUBSCRIBERS, _NOT_AUTHORIZED, _QUOTA_EXCEEDED, _PAYLOAD_FORMAT_INVALID = 0x10, 0x87, 0x97, 0x99
_CACHED_TOPICS = 1024  # routes and grants that one connection keeps


def handle_publish(connection: Connection, header: int, cursor: Cursor, now_us: int) -> None:
    """Passes a publish on and acknowledges it, or has it made durable first."""
    publish = parse_publish(header, cursor, connection.version)
    topic = _resolve_alias(connection, publish)
    _count(connection, publish.qos)
    # At QoS 1 each is a new one [MQTT-4.3.2-5]; at QoS 2 it is answered whatever became of the message [MQTT-4.3.3-13].
    if publish.qos == 2 and _is_repeated(connection, publish.packet_id):
        return
    route = _route(connection, topic)
    if publish.response_topic is not None and not is_topic_name(publish.response_topic):
        raise protocol_error("wildcards in a response topic")  # [MQTT-3.3.2-14]
    if route is None:
        connection.broker.stats.publishes_refused += 1
        _acknowledge(connection, publish, _NOT_AUTHORIZED)
    elif publish.is_text and not _is_utf8(publish.payload):
        connection.broker.stats.drop("payload format invalid")
        _acknowledge(connection, publish, _PAYLOAD_FORMAT_INVALID)
    elif connection.broker.loop_mark and connection.broker.loop_mark in publish.properties:
        connection.broker.stats.drop("came back over a bridge")
        _acknowledge(connection, publish, 0)
    elif connection.broker.storage.is_failing and publish.qos and (publish.retain or route.is_stored):
        _refuse_unstorable(connection, publish)
    else:
        _pass_on(connection, publish, route, now_us)


def _pass_on(connection: Connection, publish: Publish, route: Route, now_us: int) -> None:
    message = Message(
        topic=route.topic_bytes,
        payload=publish.payload,
        qos=publish.qos,
        retain=publish.retain,
        properties=publish.properties,
        expires_us=0 if publish.expiry_s is None else now_us + publish.expiry_s * 1_000_000,
        publisher=connection.session.client_id if publish.retain and connection.session is not None else None,
    )
    if publish.retain:  # [MQTT-3.3.1-8]; [MQTT-3.3.1-12] of 3.1.1
        connection.broker.retain(route.topic, message)
    refused = None if route.is_unheard else connection.broker.router.deliver(route, [message], now_us)
    if route.durable:
        _make_durable(connection, publish, route, now_us)
    else:
        reason = _QUOTA_EXCEEDED if refused else _NO_SUBSCRIBERS if route.is_unheard else 0
        _acknowledge(connection, publish, reason)


def _make_durable(connection: Connection, publish: Publish, route: Route, now_us: int) -> None:
    batch = connection.open_batch(now_us)
    first = (0, PUBACK, PUBREC)[publish.qos]
    if publish.qos == 2:
        assert connection.session is not None
        connection.session.receive(publish.packet_id, batch)
        batch.received = batch.received or {}
        batch.received[len(batch.messages)] = publish.packet_id
    acknowledgement = ack(first, publish.packet_id, 0, connection.version) if first else b""
    batch.add(Inbound(route.tag, publish.payload, publish.correlation_data), acknowledgement)


def _acknowledge(connection: Connection, publish: Publish, reason: int) -> None:
    """As its QoS demands. [MQTT-3.3.4-1] of both"""
    if publish.qos == 1:  # [MQTT-4.3.2-4]; [MQTT-4.3.2-2] of 3.1.1
        connection.acknowledge(ack(PUBACK, publish.packet_id, reason, connection.version))
    elif publish.qos == 2:  # [MQTT-4.3.3-8]; [MQTT-4.3.3-2] of 3.1.1
        assert connection.session is not None
        if reason < 0x80 or connection.version < 5:  # a refusal ends the exchange [MQTT-4.3.3-9]
            connection.session.receive(publish.packet_id)
        connection.acknowledge(ack(PUBREC, publish.packet_id, reason, connection.version))


def _refuse_unstorable(connection: Connection, publish: Publish) -> None:
    """3.1.1 has no other way of saying so than to close. [MQTT-3.3.5-2] of 3.1.1"""
    connection.broker.stats.storage_refusals += 1
    if connection.version < 5:
        connection.close("messages can't be stored at the moment")
    else:
        _acknowledge(connection, publish, _QUOTA_EXCEEDED)


def _is_repeated(connection: Connection, packet_id: int) -> bool:
    """Whether a QoS 2 publish was received before and not released since; then it is only acknowledged again."""
    session = connection.session
    assert session is not None
    if packet_id in session.incoming:  # [MQTT-4.3.3-10]
        if session.incoming[packet_id] is None:
            connection.acknowledge(ack(PUBREC, packet_id, 0, connection.version))
        return True
    if connection.version == 5 and len(session.incoming) >= connection.broker.settings.inflight_from_client:
        # [MQTT-3.3.4-7]; a client of 3.1.1 is bounded by its identifiers
        raise PacketError(DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, "receive maximum exceeded")
    return False


def _resolve_alias(connection: Connection, publish: Publish) -> bytes:
    alias = publish.alias
    if alias is None:
        if not publish.topic and connection.version == 5:
            raise protocol_error("neither a topic nor an alias")
        return publish.topic
    if not 0 < alias <= connection.broker.settings.topic_alias_maximum:
        # [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-8] [MQTT-3.3.2-9]
        raise PacketError(DisconnectReasonCode.TOPIC_ALIAS_INVALID, f"topic alias {alias}")
    aliases = connection.aliases
    if publish.topic:
        _check_name(connection, publish.topic)
        if aliases is None:
            aliases = connection.aliases = {}
        aliases[alias] = publish.topic  # [MQTT-3.3.2-12]
        return publish.topic
    if aliases is None or alias not in aliases:
        raise protocol_error(f"topic alias {alias} stands for no topic yet")
    return aliases[alias]


def _check_name(connection: Connection, topic: bytes) -> str:
    name = decode_string(topic)  # [MQTT-3.3.2-1] of both
    if not is_topic_name(name) or name.count("/") >= connection.broker.settings.topic_levels:  # [MQTT-3.3.2-2] of both
        raise PacketError(DisconnectReasonCode.TOPIC_NAME_INVALID, "not a topic to publish on")
    return name


def _route(connection: Connection, topic: bytes) -> Route | None:
    """Where publishes on the topic go; None where the client may not publish on it."""
    field = len(topic).to_bytes(2, "big") + topic
    route = connection.routes.get(field)
    if route is None:
        grant = _grant(connection, topic)
        if grant is None:
            return None
        assert connection.client is not None
        route = connection.broker.router.route(grant, topic, connection.client.client_id)
        if len(connection.routes) >= _CACHED_TOPICS:
            connection.routes.clear()
        if not connection.broker.storage.is_failing:  # else each publish passes by here
            connection.routes[field] = route
    return route


def _grant(connection: Connection, topic: bytes) -> PublishGrant | None:
    if connection.grants is None:
        connection.grants = {}
    grants = connection.grants
    if topic not in grants:
        name = _check_name(connection, topic)
        if len(grants) >= _CACHED_TOPICS:
            grants.clear()
        assert connection.client is not None
        grants[topic] = connection.broker.authorize_publish(connection.client, name)
    return grants[topic]


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _count(connection: Connection, qos: int) -> None:
    stats = connection.broker.stats
    name = ("messages_in_qos0", "messages_in_qos1", "messages_in_qos2")[qos]
    setattr(stats, name, getattr(stats, name) + 1)
    if connection.client is not None:
        connection.client.messages_in += 1
