"""What a peer can do wrong; the reason code is the error."""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode


class PacketError(Exception):
    """The peer broke the protocol: ``reason`` is what MQTT 5 answers before the connection closes. [MQTT-4.13.1-1]"""

    def __init__(self, reason: DisconnectReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class UnsupportedProtocol(Exception):
    """A CONNECT of a protocol that isn't spoken here. ``level``: what the client named."""

    def __init__(self, name: bytes, level: int) -> None:
        super().__init__(f"protocol {name!r} level {level} is not supported")
        self.level = level


def malformed(text: str) -> PacketError:
    """0x81: the bytes can't be read as the packet they claim to be."""
    return PacketError(DisconnectReasonCode.MALFORMED_PACKET, text)


def protocol_error(text: str) -> PacketError:
    """0x82: readable, and not allowed there or then."""
    return PacketError(DisconnectReasonCode.PROTOCOL_ERROR, text)
