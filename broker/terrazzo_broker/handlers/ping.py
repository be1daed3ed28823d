"""Handles PINGREQ. MQTT, section 3.12."""

from __future__ import annotations

import mqtt5

from ..codec.writer import PINGRESP
from ..connection import Connection


def handle_pingreq(connection: Connection, packet: mqtt5.PingReqPacket) -> None:
    """Answers with PINGRESP. [MQTT-3.12.4-1] of both"""
    connection.write(PINGRESP)
