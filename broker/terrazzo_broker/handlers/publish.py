"""Handles PUBLISH from a client, in this order: decoding, topic alias, quota, permission, refusals, retaining, routing,
and acknowledgement, at once or with the batch that makes it durable. MQTT, section 3.3.

There are two ways in and one way on. ``handle_run`` takes consecutive publishes to the same receivers that need nothing
special, on topics that this connection's routes know: their name has been checked and their client authorized, they
have neither RETAIN nor DUP, neither properties nor an alias. ``handle_publish`` takes one, whatever it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from mqtt5 import DisconnectReasonCode

from ..codec.errors import PacketError, protocol_error
from ..codec.publish import Publish
from ..codec.scan import QOS0, QOS1, QOS2, PublishRun, scan_publishes
from ..codec.wire import decode_string
from ..codec.writer import PUBACK, PUBREC, ack
from ..connection import Connection
from ..delivery.empty import NOTHING
from ..delivery.qos import RECEIVER, ReceiverStep
from ..delivery.routing import Route
from ..delivery.session import Session
from ..hooks import Inbound, PublishGrant
from ..message import ApplicationMessage, traceparent_of
from ..refusals import Cause
from ..scheduling.turns import Steps
from ..topics.names import is_topic_name

_SUCCESS, _NO_SUBSCRIBERS, _NOT_AUTHORIZED = 0, 0x10, 0x87
_QUOTA_EXCEEDED, _PAYLOAD_FORMAT_INVALID = 0x97, 0x99
_KINDS = (0, PUBACK, PUBREC)  # what answers a publish, by its QoS
_PUBACK = b"\x40\x02"
_CACHED_TOPICS = 1024  # routes and grants that one connection keeps
_CACHED_BYTES = 1024  # of the topic of one that is kept
_TAG = attrgetter("tag")  # of a ``Route``


# Many at once


def handle_run(connection: Connection, data: bytes, position: int, now_us: int) -> int:
    """Handles the run of publishes whose first packet is at ``position``; returns where the run ends, or 0 where there
    is none: its first packet isn't all there, say. One for many receivers may be the connection's work for a while."""
    limit = connection.core.settings.packet_bytes
    run = scan_publishes(data, position, connection.routes, version=connection.version, limit=limit)
    if run is None or not run.ends:
        return 0
    route = run.routes[0]
    header, end = data[position], run.ends[-1]
    if route.is_wide:
        return end if _begin_wide(connection, data[position:end], data, run, now_us) else 0
    if len(run.ends) == route.run_messages:  # the packet loop looks at the clock
        connection.core.turns.enter(connection.owner)
    if header == QOS1:
        _take_qos1(connection, route, data, run, now_us)
    elif header == QOS0:
        _take_qos0(connection, route, data, run, now_us)
        if route.is_raw and route.targets:
            raw, version = data[position:end], connection.version
            connection.core.router.forward(route.targets, raw, len(run.ends), version=version, now_us=now_us)
    elif not _take_qos2(connection, route, data, run, now_us):
        return 0
    return end


def _begin_wide(connection: Connection, raw: bytes, data: bytes, run: PublishRun[Route], now_us: int) -> bool:
    """Begins to hand a run to many receivers; False, and nothing is done, where it has to be handled one by one."""
    header, route = raw[0], run.routes[0]
    identifiers = [] if header == QOS0 else _identifiers(connection, data, run)
    if b"\0\0" in identifiers or (header == QOS2 and not _takes_qos2(connection, route, identifiers)):
        return False
    connection.core.turns.enter(connection.owner)
    connection.work(_take_wide(connection, raw, _payloads(data, run), run.routes, identifiers, now_us))
    return True


def _take_wide(
    connection: Connection,
    raw: bytes,
    payloads: list[bytes],
    routes: list[Route],
    identifiers: list[bytes],
    now_us: int,
) -> Steps[None]:
    """Hands a run to its receivers, one after the other, and answers it then. ``identifiers``: none at QoS 0."""
    route, qos, router, session = routes[0], raw[0] >> 1 & 3, connection.core.router, connection.session
    assert session is not None
    _count(connection, len(payloads), qos)
    if qos == 0 and route.is_raw:
        refused = None
        yield from router.forwarding(route, raw, len(payloads), version=connection.version, now_us=now_us)
    else:
        messages = _messages(routes, payloads, qos)
        refused = yield from router.delivering_run(route, messages, now_us, connection)
    if qos == 2:
        numbers = [int.from_bytes(each, "big") for each in identifiers]
        _note_taken(session, numbers, refused if connection.version == 5 else None)
    if route.durable:
        acks = [_PUBACK + each for each in identifiers] or [b""] * len(payloads)
        connection.open_batch(now_us).extend(_inbound(routes, payloads), acks)
    elif qos:
        _acknowledge(connection, route, qos, identifiers, refused)


def _take_qos0(connection: Connection, route: Route, data: bytes, run: PublishRun[Route], now_us: int) -> None:
    """Handles a QoS 0 run, except for sending it on as the bytes that came."""
    _count(connection, len(run.ends), 0)
    if not route.durable and (route.is_raw or route.is_unheard):
        return
    payloads = _payloads(data, run)
    if not route.is_raw and not route.is_unheard:
        _deliver(connection, route, run, payloads, 0, now_us)
    if route.durable:
        connection.open_batch(now_us).extend(_inbound(run.routes, payloads), [b""] * len(payloads))


def _take_qos1(connection: Connection, route: Route, data: bytes, run: PublishRun[Route], now_us: int) -> None:
    identifiers = _identifiers(connection, data, run)
    if b"\0\0" in identifiers:
        raise protocol_error("packet identifier 0")  # [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1
    _count(connection, len(identifiers), 1)
    payloads = _payloads(data, run)
    refused = _deliver(connection, route, run, payloads, 1, now_us)
    if route.durable:
        acks = [_PUBACK + identifier for identifier in identifiers]
        connection.open_batch(now_us).extend(_inbound(run.routes, payloads), acks)
    else:
        _acknowledge(connection, route, 1, identifiers, refused)


def _take_qos2(connection: Connection, route: Route, data: bytes, run: PublishRun[Route], now_us: int) -> bool:
    """Handles a QoS 2 run; False, and nothing is done, where its packets have to be handled one by one."""
    session, identifiers = connection.session, _identifiers(connection, data, run)
    if session is None or not _takes_qos2(connection, route, identifiers):
        return False
    numbers = [int.from_bytes(each, "big") for each in identifiers]
    _count(connection, len(numbers), 2)
    refused = _deliver(connection, route, run, _payloads(data, run), 2, now_us)
    _note_taken(session, numbers, refused if connection.version == 5 else None)
    _acknowledge(connection, route, 2, identifiers, refused)
    return True


def _takes_qos2(connection: Connection, route: Route, identifiers: Sequence[bytes]) -> bool:
    """Whether a QoS 2 run may be taken as a whole: stored by nobody, all of it new."""
    numbers, session = [int.from_bytes(each, "big") for each in identifiers], connection.session
    assert session is not None
    return not route.durable and 0 not in numbers and session.takes_as_new(numbers, version=connection.version)


def _payloads(data: bytes, run: PublishRun[Route]) -> list[bytes]:
    return [data[start:end] for start, end in zip(run.starts, run.ends, strict=True)]


def _identifiers(connection: Connection, data: bytes, run: PublishRun[Route]) -> list[bytes]:
    back = 3 if connection.version == 5 else 2
    return [data[start - back : start - back + 2] for start in run.starts]


def _inbound(routes: Sequence[Route], payloads: Sequence[bytes]) -> list[Inbound]:
    return list(map(Inbound, map(_TAG, routes), payloads))


def _deliver(
    connection: Connection, route: Route, run: PublishRun[Route], payloads: list[bytes], qos: int, now_us: int
) -> list[int] | None:
    """Delivers the publishes of a run; returns the indexes of those that no receiver had room for, or None."""
    if route.is_unheard:
        return None
    return connection.core.router.deliver(route, _messages(run.routes, payloads, qos), now_us, connection)


def _messages(routes: Sequence[Route], payloads: Sequence[bytes], qos: int) -> list[ApplicationMessage]:
    return [ApplicationMessage(each.topic_bytes, payload, qos) for each, payload in zip(routes, payloads, strict=True)]


# One


def handle_publish(connection: Connection, publish: Publish, now_us: int) -> Steps[None] | None:
    """Handles one publish: passes it on and acknowledges it, or has it made durable first. Returns what is left to be
    done, of one whose receivers have to be found or are many."""
    topic = _resolve_alias(connection, publish)
    _count(connection, 1, publish.qos)
    # At QoS 1 each is a new one [MQTT-4.3.2-5]; at QoS 2 it is answered whatever became of the message [MQTT-4.3.3-13].
    if publish.qos == 2 and not _is_new(connection, publish.packet_id):
        return None
    route = connection.routes.get(len(topic).to_bytes(2, "big") + topic)
    if route is None or route.is_wide:
        return _find_and_pass_on(connection, publish, topic, now_us)
    message = _accepted(connection, publish, route, now_us)
    if message is not None:
        # [MQTT-3.3.1-8]; [MQTT-3.3.1-12] of 3.1.1
        has_room = connection.core.distribute(route, message, now_us, connection)
        _conclude(connection, publish, route, now_us, has_room=has_room)
    return None


def _find_and_pass_on(connection: Connection, publish: Publish, topic: bytes, now_us: int) -> Steps[None]:
    route = yield from _route(connection, topic)
    message = _accepted(connection, publish, route, now_us)
    if message is not None and route is not None:
        has_room = yield from connection.core.distributing(route, message, now_us, connection)
        _conclude(connection, publish, route, now_us, has_room=has_room)


def _accepted(connection: Connection, publish: Publish, route: Route | None, now_us: int) -> ApplicationMessage | None:
    """The message to be passed on; None: the publish is refused or needs nothing more, and is answered."""
    if publish.response_topic is not None and not is_topic_name(publish.response_topic):
        raise protocol_error("wildcards in a response topic")  # [MQTT-3.3.2-14]
    if route is None:
        connection.core.stats.publishes_refused += 1
        _refuse(connection, publish, _NOT_AUTHORIZED, Cause.PUBLISH_NOT_ALLOWED)
    elif publish.retain and connection.version == 5 and not connection.core.settings.retain_available:
        raise PacketError(DisconnectReasonCode.RETAIN_NOT_SUPPORTED, "nothing is retained here")  # [MQTT-3.2.2-14]
    elif publish.is_text and not _is_utf8(publish.payload):
        connection.core.stats.drop("payload format invalid")
        _refuse(connection, publish, _PAYLOAD_FORMAT_INVALID, Cause.PAYLOAD_FORMAT_INVALID)
    elif connection.core.loop_mark and connection.core.loop_mark in publish.properties:
        connection.core.stats.drop("came back over a bridge")
        _answer(connection, publish, _SUCCESS)
    elif connection.core.storage.is_failing and publish.qos and (publish.retain or route.is_stored):
        _refuse_unstorable(connection, publish)
    else:
        return _retainable(connection, publish, route, _message(connection, publish, route, now_us))
    return None


def _resolve_alias(connection: Connection, publish: Publish) -> bytes:
    alias = publish.alias
    if alias is None:
        if not publish.topic and connection.version == 5:
            raise protocol_error("neither a topic nor an alias")
        return publish.topic
    if not 0 < alias <= connection.core.settings.topic_alias_maximum:
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
    name, settings = decode_string(topic), connection.core.settings  # [MQTT-3.3.2-1] of both
    if not is_topic_name(name) or name.count("/") >= settings.topic_levels:  # [MQTT-3.3.2-2] of both
        raise PacketError(DisconnectReasonCode.TOPIC_NAME_INVALID, "not a topic to publish on")
    if len(topic) > settings.topic_bytes:
        raise PacketError(DisconnectReasonCode.TOPIC_NAME_INVALID, f"a topic of more than {settings.topic_bytes} bytes")
    return name


def _is_new(connection: Connection, packet_id: int) -> bool:
    """Whether a QoS 2 publish is to be passed on; one that isn't is answered again, or when it is durable."""
    session = connection.session
    assert session is not None
    answer = RECEIVER[QOS2][session.received(packet_id)]  # [MQTT-4.3.3-10]
    if answer is ReceiverStep.PUBREC:
        connection.acknowledge(ack(PUBREC, packet_id, _SUCCESS, connection.version))
    if answer is not ReceiverStep.TAKE:
        return False
    if connection.version == 5 and len(session.incoming) >= connection.core.settings.inflight_from_client:
        # [MQTT-3.3.4-7]; a client of 3.1.1 is bounded by its identifiers
        raise PacketError(DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, "receive maximum exceeded")
    return True


def _route(connection: Connection, topic: bytes) -> Steps[Route | None]:
    """Where publishes on the topic go; None where the client may not publish on it."""
    field = len(topic).to_bytes(2, "big") + topic
    known = connection.routes.get(field)
    if known is not None:
        return known
    grant, client, core = _grant(connection, topic), connection.client, connection.core
    if grant is None or client is None:
        return None
    epoch = connection.subscriptions.epoch
    route = yield from core.router.route(grant, topic, client.client_id, client.owner)
    if len(connection.routes) >= _CACHED_TOPICS:
        connection.routes = NOTHING
    is_lasting = epoch == connection.subscriptions.epoch and route.owner == client.owner
    if is_lasting and not core.storage.is_failing and len(topic) <= _CACHED_BYTES:  # else each publish passes by here
        if connection.routes is NOTHING:
            connection.routes = {}
        connection.routes[field] = route
    return route


def _grant(connection: Connection, topic: bytes) -> PublishGrant | None:
    if connection.grants is None:
        connection.grants = {}
    grants = connection.grants
    if topic in grants:
        return grants[topic]
    name = _check_name(connection, topic)
    assert connection.client is not None
    grant = connection.core.hooks.authorize_publish(connection.client, name)
    if len(topic) <= _CACHED_BYTES:
        if len(grants) >= _CACHED_TOPICS:
            grants.clear()
        grants[topic] = grant
    return grant


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refuse_unstorable(connection: Connection, publish: Publish) -> None:
    """Refuses a publish that can't be stored: 0x97, or in 3.1.1 by closing. [MQTT-3.3.5-2] of 3.1.1"""
    connection.core.stats.storage_refusals += 1
    if connection.version < 5:
        connection.tell_refused(Cause.STORAGE_UNAVAILABLE, _QUOTA_EXCEEDED)
        connection.close("messages can't be stored at the moment")
    else:
        _refuse(connection, publish, _QUOTA_EXCEEDED, Cause.STORAGE_UNAVAILABLE)


def _message(connection: Connection, publish: Publish, route: Route, now_us: int) -> ApplicationMessage:
    return ApplicationMessage(
        topic=route.topic_bytes,
        payload=publish.payload,
        qos=publish.qos,
        retain=publish.retain,
        properties=publish.properties,
        expires_us=0 if publish.expiry_s is None else now_us + publish.expiry_s * 1_000_000,
        publisher=connection.session.client_id if publish.retain and connection.session is not None else None,
        owner=route.owner,
    )


def _retainable(
    connection: Connection, publish: Publish, route: Route, message: ApplicationMessage
) -> ApplicationMessage | None:
    """The message; None: it can't be retained, which is answered where it can be said."""
    if publish.retain and publish.qos and not route.durable and connection.version == 5:
        refusal = connection.core.retained.refusal(route.topic, message)
        if refusal:  # where it can be said; a report is stored all the same
            connection.core.note_unretained(message, refusal)
            _refuse(connection, publish, _QUOTA_EXCEEDED, Cause.RETAINED_QUOTA)
            return None
    return message


def _conclude(connection: Connection, publish: Publish, route: Route, now_us: int, *, has_room: bool) -> None:
    if route.durable:
        _make_durable(connection, publish, route, now_us)
    elif not has_room:
        _refuse(connection, publish, _QUOTA_EXCEEDED, Cause.PUBLISH_QUOTA)
    else:
        _answer(connection, publish, _NO_SUBSCRIBERS if route.is_unheard else 0)


def _make_durable(connection: Connection, publish: Publish, route: Route, now_us: int) -> None:
    batch = connection.open_batch(now_us)
    if publish.qos == 2:
        assert connection.session is not None
        connection.session.receive(publish.packet_id, batch)
        batch.received = batch.received or {}
        batch.received[len(batch.messages)] = publish.packet_id
    acknowledgement = ack(_KINDS[publish.qos], publish.packet_id, 0, connection.version) if publish.qos else b""
    properties = publish.properties
    traceparent = traceparent_of(properties) if properties else None
    batch.add(Inbound(route.tag, publish.payload, publish.correlation_data, traceparent), acknowledgement)


def _refuse(connection: Connection, publish: Publish, reason: int, cause: Cause) -> None:
    """Refuses a publish, says why where that can be said, and tells the embedding program."""
    topic = publish.topic or (connection.aliases or {}).get(publish.alias or 0, b"")
    connection.tell_refused(cause, reason, topic.decode(errors="replace"))
    _answer(connection, publish, reason, connection.told(cause))


def _answer(connection: Connection, publish: Publish, reason: int, told: str = "") -> None:
    """Acknowledges a publish as its QoS demands. [MQTT-3.3.4-1] of both"""
    if publish.qos == 2:
        assert connection.session is not None
        is_refused = reason >= 0x80 and connection.version == 5
        _note_taken(connection.session, [publish.packet_id], [0] if is_refused else None)
    if publish.qos:
        connection.acknowledge(ack(_KINDS[publish.qos], publish.packet_id, reason, connection.version, told))


# The end of both ways


def _note_taken(session: Session, numbers: Sequence[int], refused: Sequence[int] | None) -> None:
    """Notes QoS 2 publishes until PUBREL; a refusal, by index, ends the exchange. [MQTT-4.3.3-9]"""
    for index, number in enumerate(numbers):
        if not refused or index not in refused:
            session.receive(number)


def _acknowledge(
    connection: Connection, route: Route, qos: int, identifiers: list[bytes], refused: list[int] | None
) -> None:
    """Acknowledges the publishes of a run; those in ``refused``, by index, found no receiver with room.

    [MQTT-4.3.2-4] [MQTT-4.3.3-8]; [MQTT-4.3.2-2] [MQTT-4.3.3-2] of 3.1.1
    """
    plain, reasoned = bytes((_KINDS[qos], 2)), bytes((_KINDS[qos], 3))
    if refused:
        connection.tell_refused(Cause.PUBLISH_QUOTA, _QUOTA_EXCEEDED, route.topic, len(refused))
    if connection.version == 5 and route.is_unheard:
        tail = bytes((_NO_SUBSCRIBERS,))
        answers = b"".join([reasoned + identifier + tail for identifier in identifiers])
    elif connection.version == 5 and refused:
        told = connection.told(Cause.PUBLISH_QUOTA)
        answers = b"".join(
            ack(_KINDS[qos], int.from_bytes(identifier, "big"), _QUOTA_EXCEEDED, 5, told)
            if index in refused
            else plain + identifier
            for index, identifier in enumerate(identifiers)
        )
    else:
        answers = plain + plain.join(identifiers)
    connection.acknowledge(answers)


def _count(connection: Connection, count: int, qos: int) -> None:
    stats = connection.core.stats
    if qos == 1:
        stats.messages_in_qos1 += count
    elif not qos:
        stats.messages_in_qos0 += count
    else:
        stats.messages_in_qos2 += count
    if connection.client is not None:
        connection.client.messages_in += count
