"""Handles SUBSCRIBE: permission, the subscription, retained messages. MQTT, section 3.8."""

from __future__ import annotations

import mqtt5
from mqtt5 import SubAckReasonCode

from ..codec.subscribe import RequestedFilter, SubscribePacket
from ..connection import Connection
from ..topics.names import is_topic_filter, split_shared
from ..topics.tree import TopicSubscription


def handle_subscribe(connection: Connection, packet: SubscribePacket) -> None:
    """Grants or refuses each filter, sends SUBACK, then the retained messages."""
    granted: list[tuple[TopicSubscription, bool]] = []
    reasons: list[SubAckReasonCode] = []
    for wanted in packet.requested:  # one after the other [MQTT-3.8.4-5]; [MQTT-3.8.4-4] of 3.1.1
        reason = _refusal(connection, wanted.pattern)
        if reason is None:
            granted.append(_subscribe(connection, wanted, packet.identifier))
            reason = SubAckReasonCode(wanted.qos)  # [MQTT-3.2.2-10] [MQTT-3.8.4-7]
        else:
            connection.core.stats.subscribes_refused += 1
        reasons.append(reason)  # [MQTT-3.8.4-6] [MQTT-3.9.3-1]; [MQTT-3.8.4-5] [MQTT-3.9.3-1] of 3.1.1
    if connection.level == 3:  # it has no code for a refusal: the QoS that was asked for, as Mosquitto does it
        reasons = [SubAckReasonCode(wanted.qos) for wanted in packet.requested]
    # [MQTT-2.2.1-6] [MQTT-3.8.4-1] [MQTT-3.8.4-2]; [MQTT-2.3.1-7] [MQTT-3.8.4-1] [MQTT-3.8.4-2] of 3.1.1
    # Neither a reason string nor user properties: [MQTT-3.9.2-1] [MQTT-3.9.2-2]
    connection.send_packet(mqtt5.SubAckPacket(packet.packet_id, reasons))
    for subscription, is_new in granted:
        _send_retained(connection, subscription, is_new=is_new)
    if granted and connection.client is not None:
        connection.core.hooks.tell_subscribed(connection.client, [subscription.filter for subscription, _ in granted])


def _refusal(connection: Connection, pattern: str) -> SubAckReasonCode | None:
    """Why a filter isn't granted; None: it is. [MQTT-3.9.3-2]"""
    core, session, client = connection.core, connection.session, connection.client
    assert session is not None
    assert client is not None
    shared = split_shared(pattern)
    if shared is None or not is_topic_filter(shared.filter, levels=core.settings.topic_levels):
        return SubAckReasonCode.TOPIC_FILTER_INVALID
    if pattern not in session.subscriptions and len(session.subscriptions) >= core.settings.subscriptions_per_session:
        return SubAckReasonCode.QUOTA_EXCEEDED
    if pattern not in session.subscriptions and not core.may_subscribe(session.owner):
        return SubAckReasonCode.QUOTA_EXCEEDED
    if core.storage.is_failing and session.is_persistent:
        core.stats.storage_refusals += 1
        return SubAckReasonCode.QUOTA_EXCEEDED
    return None if core.hooks.authorize_subscribe(client, pattern) else SubAckReasonCode.NOT_AUTHORIZED


def _subscribe(connection: Connection, wanted: RequestedFilter, identifier: int) -> tuple[TopicSubscription, bool]:
    session, client = connection.session, connection.client
    assert session is not None
    assert client is not None
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
    client.filters.add(wanted.pattern)
    return subscription, is_new


def _send_retained(connection: Connection, subscription: TopicSubscription, *, is_new: bool) -> None:
    """Sends retained messages as Retain Handling asks, none for a shared subscription.

    [MQTT-3.3.1-9] [MQTT-3.8.4-4]; [MQTT-3.3.1-6] [MQTT-3.8.4-3] of 3.1.1
    """
    if subscription.filter.startswith("$share/") or subscription.retain_handling == 2:  # [MQTT-3.3.1-11]
        return
    if subscription.retain_handling == 1 and not is_new:  # [MQTT-3.3.1-10]
        return
    connection.deliver_retained(subscription)
