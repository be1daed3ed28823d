"""Encodes every packet that a server sends, except PUBLISH: for 5.0 by ``mqtt5``, for 3.1.1 here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mqtt5

from .wire import encode_length

# CONNACK return codes of 3.1.1 for the reasons of 5.0; all others are 5, not authorized. [MQTT-3.1.3-9] of 3.1.1
_RETURN_CODES = {0x84: 1, 0x85: 2, 0x88: 3, 0x89: 3, 0x9F: 3, 0x97: 3, 0x86: 4}

PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
PINGRESP = b"\xd0\x00"


def encode_packet(packet: mqtt5.Packet, version: int) -> bytes:
    """The bytes of a packet; empty where the version knows no such packet (DISCONNECT from a 3.1.1 server)."""
    if version == 5:
        return packet.write()
    return _WRITERS[type(packet)](packet)


def connack_return_code(reason: int) -> int:
    """The 3.1.1 return code that comes nearest to a 5.0 reason code."""
    return 0 if not reason else _RETURN_CODES.get(reason, 5)


def ack(first: int, packet_id: int, reason: int, version: int, told: str = "") -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP, by its first byte; 3.1.1 has no place for the reason.

    ``told``: the Reason String, for PUBACK and PUBREC; whoever gives one has seen to it that the client takes it
    [MQTT-3.4.2-2] [MQTT-3.5.2-2]. PUBREL and PUBCOMP have none [MQTT-3.6.2-2] [MQTT-3.7.2-2], and user properties stand
    in none of them. [MQTT-3.4.2-3] [MQTT-3.5.2-3] [MQTT-3.6.2-3] [MQTT-3.7.2-3]
    """
    identifier = packet_id.to_bytes(2, "big")  # [MQTT-2.2.1-5]; [MQTT-2.3.1-6] of 3.1.1
    if told and version == 5:
        text = told.encode()
        properties = b"\x1f" + len(text).to_bytes(2, "big") + text
        rest = identifier + bytes((reason,)) + encode_length(len(properties)) + properties
        return bytes((first,)) + encode_length(len(rest)) + rest
    if reason and version == 5:
        return bytes((first, 3)) + identifier + bytes((reason,))
    return bytes((first, 2)) + identifier


def _connack(packet: mqtt5.ConnAckPacket) -> bytes:
    code = connack_return_code(int(packet.reason_code))
    return bytes((0x20, 2, packet.session_present and not code, code))  # [MQTT-3.2.2-4] of 3.1.1


def _suback(packet: mqtt5.SubAckPacket) -> bytes:
    codes = bytes(min(int(code), 0x80) for code in packet.reason_codes)  # [MQTT-3.9.3-2] of 3.1.1
    return b"\x90" + _body(packet.packet_id, codes)


def _unsuback(packet: mqtt5.UnsubAckPacket) -> bytes:
    return b"\xb0" + _body(packet.packet_id, b"")


def _body(packet_id: int, rest: bytes) -> bytes:
    return encode_length(2 + len(rest)) + packet_id.to_bytes(2, "big") + rest


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    mqtt5.ConnAckPacket: _connack,
    mqtt5.PubAckPacket: lambda packet: ack(PUBACK, packet.packet_id, 0, 4),
    mqtt5.PubRecPacket: lambda packet: ack(PUBREC, packet.packet_id, 0, 4),
    mqtt5.PubRelPacket: lambda packet: ack(PUBREL, packet.packet_id, 0, 4),
    mqtt5.PubCompPacket: lambda packet: ack(PUBCOMP, packet.packet_id, 0, 4),
    mqtt5.SubAckPacket: _suback,
    mqtt5.UnsubAckPacket: _unsuback,
    mqtt5.PingRespPacket: lambda packet: PINGRESP,
    mqtt5.DisconnectPacket: lambda packet: b"",
}
