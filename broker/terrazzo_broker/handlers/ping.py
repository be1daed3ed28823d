"""PINGREQ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mqtt5

from ..codec.writer import PINGRESP

if TYPE_CHECKING:
    from ..connection import Connection


def handle_pingreq(connection: Connection, packet: mqtt5.PingReqPacket) -> None:
    """Answers. [MQTT-3.12.4-1] of both"""
    connection.write(PINGRESP)
