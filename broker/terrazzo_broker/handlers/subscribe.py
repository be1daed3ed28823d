"""Handles SUBSCRIBE: permission, the subscription, retained messages. MQTT, section 3.8."""

from __future__ import annotations

import mqtt5
from mqtt5 import SubAckReasonCode

from ..codec.subscribe import RequestedFilter, SubscribePacket
from ..connection import Connection
from ..refusals import Cause
from ..scheduling.turns import Steps
from ..topics.names import is_topic_filter, split_shared
from ..topics.tree import TopicSubscription

_NO_FILTER = SubAckReasonCode.TOPIC_FILTER_INVALID, Cause.TOPIC_FILTER_INVALID
_QUOTA = SubAckReasonCode.QUOTA_EXCEEDED, Cause.SUBSCRIPTION_QUOTA
_NOT_ALLOWED = SubAckReasonCode.NOT_AUTHORIZED, Cause.SUBSCRIBE_NOT_ALLOWED


def handle_subscribe(connection: Connection, packet: SubscribePacket) -> Steps[None]:
    """Grants or refuses each filter, sends SUBACK, then the retained messages: of a filter that it repeats they are
    sent once, as its last place asks for them."""
    granted: dict[str, bool] = {}  # by filter, whether it is owed retained messages
    reasons: list[SubAckReasonCode] = []
    told = ""  # of the first filter that is refused
    for wanted in packet.requested:  # one after the other [MQTT-3.8.4-5]; [MQTT-3.8.4-4] of 3.1.1
        refusal = _refusal(connection, wanted.pattern)
        if refusal is None:
            is_owed = _subscribe(connection, wanted, packet.identifier)
            granted[wanted.pattern] = granted.get(wanted.pattern, False) or is_owed
            reason = SubAckReasonCode(wanted.qos)  # [MQTT-3.2.2-10] [MQTT-3.8.4-7]
        else:
            reason, cause = refusal
            connection.core.stats.subscribes_refused += 1
            connection.tell_refused(cause, reason, wanted.pattern)
            told = told or connection.told(cause)
            if connection.level == 3:  # it has no code for a refusal: the QoS that was asked for, as Mosquitto does it
                reason = SubAckReasonCode(wanted.qos)
        reasons.append(reason)  # [MQTT-3.8.4-6] [MQTT-3.9.3-1]; [MQTT-3.8.4-5] [MQTT-3.9.3-1] of 3.1.1
        yield
    # [MQTT-2.2.1-6] [MQTT-3.8.4-1] [MQTT-3.8.4-2]; [MQTT-2.3.1-7] [MQTT-3.8.4-1] [MQTT-3.8.4-2] of 3.1.1
    # No user properties: [MQTT-3.9.2-2]. The reason string only where there is room for it: [MQTT-3.9.2-1]
    has_room = connection.tellable(told + " " * len(reasons)) is not None
    connection.send_packet(
        mqtt5.SubAckPacket(packet.packet_id, reasons, reason_str=told if told and has_room else None)
    )
    connection.deliver_retained([pattern for pattern, is_owed in granted.items() if is_owed])
    if granted and connection.client is not None:
        connection.core.hooks.tell_subscribed(connection.client, list(granted))


def _refusal(connection: Connection, pattern: str) -> tuple[SubAckReasonCode, Cause] | None:
    """Why a filter isn't granted; None: it is. [MQTT-3.9.3-2]"""
    core, session, client = connection.core, connection.session, connection.client
    assert session is not None
    assert client is not None
    shared = split_shared(pattern)
    if shared is None or not is_topic_filter(shared.filter, levels=core.settings.topic_levels):
        return _NO_FILTER
    if pattern not in session.subscriptions and len(pattern.encode()) > core.settings.topic_bytes:
        return _NO_FILTER
    if pattern not in session.subscriptions and len(session.subscriptions) >= core.settings.subscriptions_per_session:
        return _QUOTA
    if pattern not in session.subscriptions and not core.may_subscribe(session.owner):
        return _QUOTA
    if core.storage.is_failing and session.is_persistent:
        core.stats.storage_refusals += 1
        return SubAckReasonCode.QUOTA_EXCEEDED, Cause.STORAGE_UNAVAILABLE
    return None if core.hooks.authorize_subscribe(client, pattern) else _NOT_ALLOWED


def _subscribe(connection: Connection, wanted: RequestedFilter, identifier: int) -> bool:
    """Subscribes; whether retained messages are to follow."""
    session = connection.session
    assert session is not None
    is_shared = wanted.pattern.startswith("$share/")
    subscription = TopicSubscription(
        wanted.pattern,
        wanted.qos,
        wanted.no_local or (connection.is_bridge and not is_shared),  # as Mosquitto gives it to a bridge
        wanted.retain_as_published or connection.is_bridge,
        wanted.retain_handling,
        identifier,
    )
    is_new = wanted.pattern not in session.subscriptions
    connection.core.subscribe(session, subscription)  # in the place of an equal filter's [MQTT-3.8.4-3]
    return not is_shared and _is_owed(wanted.retain_handling, is_new=is_new)


def _is_owed(retain_handling: int, *, is_new: bool) -> bool:
    """Whether retained messages follow, as Retain Handling asks; none do for a shared subscription.

    [MQTT-3.3.1-9] [MQTT-3.8.4-4]; [MQTT-3.3.1-6] [MQTT-3.8.4-3] of 3.1.1
    """
    return retain_handling == 0 or (retain_handling == 1 and is_new)  # [MQTT-3.3.1-10] [MQTT-3.3.1-11]
