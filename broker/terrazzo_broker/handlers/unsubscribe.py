"""Handles UNSUBSCRIBE. MQTT, section 3.10."""

from __future__ import annotations

import mqtt5
from mqtt5 import UnsubAckReasonCode

from ..codec.subscribe import UnsubscribePacket
from ..connection import Connection
from ..scheduling.turns import Steps
from ..topics.names import is_topic_filter, split_shared


def handle_unsubscribe(connection: Connection, packet: UnsubscribePacket) -> Steps[None]:
    """Removes the subscriptions whose filters equal those given, character by character. [MQTT-3.10.4-1] of both"""
    session = connection.session
    assert session is not None
    reasons = []
    for pattern in packet.patterns:  # [MQTT-3.10.4-6] of both
        existed = connection.core.unsubscribe(session, pattern)
        if connection.retained is not None:
            connection.retained.leave(pattern)
        reasons.append(
            UnsubAckReasonCode.SUCCESS if existed else _why_not(pattern, connection.core.settings.topic_levels)
        )
        yield
    # [MQTT-3.10.4-4] [MQTT-3.10.4-5] of both; [MQTT-2.2.1-6] [MQTT-3.11.3-1]; [MQTT-2.3.1-7] of 3.1.1
    # Neither a reason string nor user properties: [MQTT-3.11.2-1] [MQTT-3.11.2-2]
    connection.send_packet(mqtt5.UnsubAckPacket(packet.packet_id, reasons))


def _why_not(pattern: str, levels: int) -> UnsubAckReasonCode:
    """The reason for a filter that the session doesn't have. [MQTT-3.11.3-2]"""
    shared = split_shared(pattern)
    if shared is None or not is_topic_filter(shared.filter, levels=levels):
        return UnsubAckReasonCode.TOPIC_FILTER_INVALID
    return UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED
