"""PUBLISH, the packet that matters: read in full, and written to many receivers at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from ..message import Message, remaining_s
from .errors import malformed, protocol_error
from .properties import parse_properties
from .wire import Cursor, encode_length

DUPLICATE = 0x08
RETAIN = 0x01

# What follows the packet identifier, what stands before it, and the message: one PUBLISH without its identifier.
Wire = tuple[int, bytes, bytes, Message]  # (qos, head, tail, message)


class Publish(msgspec.Struct, frozen=True):
    """A PUBLISH as the client sent it. ``topic`` is empty where an alias stands for it."""

    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    duplicate: bool
    packet_id: int
    properties: bytes
    expiry_s: int | None
    alias: int | None
    response_topic: str | None
    correlation_data: bytes | None
    is_text: bool


def parse_publish(header: int, cursor: Cursor, version: int) -> Publish:
    """Reads a PUBLISH of either protocol version; ``cursor`` stands at the topic.

    Raises:
        PacketError: 0x81 or 0x82; the topic's text is not looked at yet.
    """
    qos = header >> 1 & 3
    if qos == 3:
        raise malformed("QoS 3")  # [MQTT-3.3.1-4] of both
    if not qos and header & DUPLICATE:
        raise malformed("DUP at QoS 0")  # [MQTT-3.3.1-2] of both
    topic = cursor.binary()
    packet_id = cursor.packet_id() if qos else 0  # [MQTT-2.2.1-2]; [MQTT-2.3.1-5] of 3.1.1
    forwarded: list[bytes] = []
    values = parse_properties(cursor, "publish", forwarded) if version == 5 else {}
    if "subscription_id" in values:
        raise protocol_error("a client sent a subscription identifier")  # [MQTT-3.3.4-6]
    return Publish(
        topic=topic,
        payload=cursor.rest(),
        qos=qos,
        retain=bool(header & RETAIN),
        duplicate=bool(header & DUPLICATE),
        packet_id=packet_id,
        properties=b"".join(forwarded),
        expiry_s=values.get("message_expiry_interval"),
        alias=values.get("topic_alias"),
        response_topic=values.get("response_topic"),
        correlation_data=values.get("correlation_data"),
        is_text=values.get("payload_format_indicator") == 1,
    )


def render(message: Message, version: int, now_us: int) -> tuple[bytes, bytes]:
    """The bytes before and after the place of the packet identifier."""
    return render_as(message, message.topic, message.properties, version, now_us)


def render_as(message: Message, topic: bytes, properties: bytes, version: int, now_us: int) -> tuple[bytes, bytes]:
    """``render`` under another topic field and other properties than the message's own."""
    tail = message.payload
    if version == 5:
        if message.expires_us:
            properties = b"\x02" + remaining_s(message, now_us).to_bytes(4, "big") + properties
        tail = encode_length(len(properties)) + properties + tail
    qos = message.qos
    # without DUP, whatever the publisher's had [MQTT-3.3.1-3] [MQTT-4.3.1-1] of both
    return _head(0x30 | qos << 1 | message.retain, topic, (2 if qos else 0) + len(tail)), tail


@lru_cache(maxsize=8192)
def _head(first: int, topic: bytes, rest: int) -> bytes:
    """First byte, remaining length, topic field; kept, because one topic's messages are much of a length."""
    return bytes((first,)) + encode_length(2 + len(topic) + rest) + len(topic).to_bytes(2, "big") + topic


class Rendered:
    """Messages ready to be sent to any plain receiver of one protocol version.

    ``is_acknowledged``: none of them is of QoS 0.
    """

    __slots__ = ("_first", "_joined", "is_acknowledged", "messages", "wires")

    def __init__(self, messages: Sequence[Message], version: int, now_us: int) -> None:
        self.messages = messages
        self.wires: list[Wire] = [(message.qos, *render(message, version, now_us), message) for message in messages]
        self.is_acknowledged = all(message.qos for message in messages)
        self._first = 0
        self._joined = b""

    def joined(self, first: int) -> bytes:
        """All packets, their identifiers counted from ``first`` on; kept for the next receiver."""
        if first != self._first:
            self._first = first
            numbered = enumerate(self.wires, first)
            self._joined = b"".join(
                [part for number, wire in numbered for part in (wire[1], number.to_bytes(2, "big"), wire[2])]
            )
        return self._joined


class PublishEncoder:
    """Writes publishes to one receiver that has wishes of its own: topic aliases, a maximum packet size, a mark (an
    encoded property that each message gets). ``alias_maximum`` 0: no aliases. [MQTT-3.1.2-27]"""

    __slots__ = ("alias_maximum", "aliases", "mark", "packet_bytes", "version")

    def __init__(
        self, version: int, *, alias_maximum: int = 0, packet_bytes: int | None = None, mark: bytes = b""
    ) -> None:
        self.version = version
        self.alias_maximum = alias_maximum
        self.packet_bytes = packet_bytes
        self.mark = mark
        self.aliases: dict[bytes, int] = {}

    @property
    def is_plain(self) -> bool:
        """Whether every receiver of this version could get the same bytes."""
        return not self.alias_maximum and self.packet_bytes is None and not self.mark

    def encode(self, message: Message, packet_id: int, now_us: int, *, duplicate: bool = False) -> bytes | None:
        """The whole packet, or None where it is larger than the receiver takes. [MQTT-3.1.2-24]"""
        topic, properties = self._aliased(message) if self.alias_maximum else (message.topic, message.properties)
        head, tail = render_as(message, topic, properties + self.mark, self.version, now_us)
        packet = head + packet_id.to_bytes(2, "big") + tail if message.qos else head + tail
        if self.packet_bytes is not None and len(packet) > self.packet_bytes:
            return None
        if self.alias_maximum and topic:
            self._learn(topic)
        return bytes((packet[0] | DUPLICATE,)) + packet[1:] if duplicate else packet

    def _aliased(self, message: Message) -> tuple[bytes, bytes]:
        alias = self.aliases.get(message.topic)
        if alias is not None:
            return b"", b"\x23" + alias.to_bytes(2, "big") + message.properties
        if len(self.aliases) >= self.alias_maximum:  # [MQTT-3.1.2-26] [MQTT-3.3.2-11]
            return message.topic, message.properties
        return message.topic, b"\x23" + (len(self.aliases) + 1).to_bytes(2, "big") + message.properties

    def _learn(self, topic: bytes) -> None:
        if len(self.aliases) < self.alias_maximum:
            self.aliases[topic] = len(self.aliases) + 1
