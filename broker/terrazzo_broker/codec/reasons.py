"""Translates reason codes between packets; ``mqtt5``'s enumerations are no integers and don't mix."""

from __future__ import annotations

from typing import SupportsInt

from mqtt5 import ConnAckReasonCode, DisconnectReasonCode, PubAckReasonCode


def connack_reason(reason: SupportsInt) -> ConnAckReasonCode:
    """The same code for a CONNACK, 0x80 where a CONNACK can't carry it. [MQTT-3.2.2-8]"""
    try:
        return ConnAckReasonCode(int(reason))
    except ValueError:
        return ConnAckReasonCode.UNSPECIFIED_ERROR


def publish_reason(reason: SupportsInt) -> int:
    """The same code for a PUBACK or PUBREC, 0x80 where they can't carry it. [MQTT-3.4.2-1] [MQTT-3.5.2-1]"""
    try:
        return int(PubAckReasonCode(int(reason)))
    except ValueError:
        return int(PubAckReasonCode.UNSPECIFIED_ERROR)


def disconnect_reason(reason: SupportsInt) -> DisconnectReasonCode:
    """The same code for a DISCONNECT, 0x87 where a DISCONNECT can't carry it. [MQTT-3.14.2-1]"""
    try:
        return DisconnectReasonCode(int(reason))
    except ValueError:
        return DisconnectReasonCode.NOT_AUTHORIZED
