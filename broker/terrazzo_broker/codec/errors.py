"""The errors of peers: a reason code of MQTT 5 and a text."""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode


class PacketError(Exception):
    """The peer broke the protocol: ``reason`` is what MQTT 5 answers before the connection closes. [MQTT-4.13.1-1]"""

    def __init__(self, reason: DisconnectReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class UnsupportedProtocol(Exception):
    """A CONNECT of another protocol than MQTT 3.1, 3.1.1 or 5.0. ``level``: the protocol level that it names."""

    def __init__(self, name: bytes, level: int) -> None:
        super().__init__(f"protocol {name!r} level {level} is not supported")
        self.level = level


def malformed(text: str) -> PacketError:
    """The error 0x81 (Malformed Packet): the bytes can't be read as the packet that they claim to be."""
    return PacketError(DisconnectReasonCode.MALFORMED_PACKET, text)


def protocol_error(text: str) -> PacketError:
    """The error 0x82 (Protocol Error): the packet can be read, but isn't allowed there or then."""
    return PacketError(DisconnectReasonCode.PROTOCOL_ERROR, text)
