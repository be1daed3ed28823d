"""UNSUBSCRIBE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mqtt5
from mqtt5 import UnsubAckReasonCode

if TYPE_CHECKING:
    from ..connection import Connection


def handle_unsubscribe(connection: Connection, packet: mqtt5.UnsubscribePacket) -> None:
    """Drops each filter that is the same character by character. [MQTT-3.10.4-1] [MQTT-3.11.3-1]"""
    session, client = connection.session, connection.client
    assert session is not None
    assert client is not None
    reasons = []
    for pattern in packet.patterns:
        existed = connection.broker.unsubscribe(session, pattern)
        client.filters.discard(pattern)
        reasons.append(UnsubAckReasonCode.SUCCESS if existed else UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED)
    connection.send_packet(mqtt5.UnsubAckPacket(packet.packet_id, reasons))  # [MQTT-3.10.4-4] [MQTT-3.10.4-5]
