"""Encodes PUBLISH for subscribers: once for all that take the same bytes, or for one with settings of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter

from ..codec.publish import DUPLICATE
from ..codec.wire import encode_length
from ..message import ApplicationMessage, remaining_s

LONG_BYTES = 8 << 10  # of a payload that sessions count while it is on its way
Wire = tuple[int, bytes, bytes, ApplicationMessage]
"""QoS, the bytes before the place of the packet identifier, those after it, and the message."""


def render(message: ApplicationMessage, version: int, now_us: int) -> tuple[bytes, bytes]:
    """Encodes a PUBLISH without its packet identifier: the bytes before and after the place of that."""
    return render_as(message, message.topic, message.properties, version, now_us)


def render_as(
    message: ApplicationMessage, topic: bytes, properties: bytes, version: int, now_us: int
) -> tuple[bytes, bytes]:
    """``render`` with another topic field (an empty one for an alias) and other properties than the message's own."""
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
    """First byte, remaining length, topic field; cached, because messages on one topic often have the same length."""
    return bytes((first,)) + encode_length(2 + len(topic) + rest) + len(topic).to_bytes(2, "big") + topic


_PAYLOAD, _QOS = attrgetter("payload"), attrgetter("qos")


class Rendered:
    """Messages encoded for all receivers of one protocol version that have no settings of their own.

    ``is_plain``: none of them is of QoS 0, and none has a long payload, which sessions count.
    """

    __slots__ = ("_first", "_joined", "is_plain", "messages", "wires")

    def __init__(self, messages: Sequence[ApplicationMessage], version: int, now_us: int) -> None:
        self.messages = messages
        self.wires: list[Wire] = [(message.qos, *render(message, version, now_us), message) for message in messages]
        is_long = max(map(len, map(_PAYLOAD, messages)), default=0) > LONG_BYTES
        self.is_plain = not is_long and all(map(_QOS, messages))
        self._first = 0
        self._joined = b""

    def joined(self, first: int) -> bytes:
        """All packets, with identifiers from ``first`` on; cached for the next receiver at the same identifier."""
        if first != self._first:
            self._first = first
            numbered = enumerate(self.wires, first)
            self._joined = b"".join(
                [part for number, wire in numbered for part in (wire[1], number.to_bytes(2, "big"), wire[2])]
            )
        return self._joined


class PublishEncoder:
    """Encodes publishes for one receiver with settings of its own: topic aliases, a maximum packet size, a mark (an
    encoded property that each message gets). ``alias_maximum`` 0: no aliases. [MQTT-3.1.2-27]

    ``is_plain``: it has no settings of its own, so that all such receivers of a version get the same bytes.
    """

    __slots__ = ("alias_maximum", "aliases", "is_plain", "mark", "packet_bytes", "version")

    def __init__(
        self, version: int, *, alias_maximum: int = 0, packet_bytes: int | None = None, mark: bytes = b""
    ) -> None:
        self.version = version
        self.alias_maximum = alias_maximum
        self.packet_bytes = packet_bytes
        self.mark = mark
        self.is_plain = not alias_maximum and packet_bytes is None and not mark
        self.aliases: dict[bytes, int] = {}

    def encode(
        self, message: ApplicationMessage, packet_id: int, now_us: int, *, duplicate: bool = False
    ) -> bytes | None:
        """The whole packet, or None where it is larger than the receiver takes. [MQTT-3.1.2-24]"""
        topic, properties = self._aliased(message) if self.alias_maximum else (message.topic, message.properties)
        head, tail = render_as(message, topic, properties + self.mark, self.version, now_us)
        packet = head + packet_id.to_bytes(2, "big") + tail if message.qos else head + tail
        if self.packet_bytes is not None and len(packet) > self.packet_bytes:
            return None
        if self.alias_maximum and topic:
            self._learn(topic)
        return bytes((packet[0] | DUPLICATE,)) + packet[1:] if duplicate else packet

    def _aliased(self, message: ApplicationMessage) -> tuple[bytes, bytes]:
        alias = self.aliases.get(message.topic)
        if alias is not None:
            return b"", b"\x23" + alias.to_bytes(2, "big") + message.properties
        if len(self.aliases) >= self.alias_maximum:  # [MQTT-3.1.2-26] [MQTT-3.3.2-11]
            return message.topic, message.properties
        return message.topic, b"\x23" + (len(self.aliases) + 1).to_bytes(2, "big") + message.properties

    def _learn(self, topic: bytes) -> None:
        if len(self.aliases) < self.alias_maximum:
            self.aliases[topic] = len(self.aliases) + 1


_PLAIN = {4: PublishEncoder(4), 5: PublishEncoder(5)}


def plain_encoder(version: int) -> PublishEncoder:
    """The encoder shared by all receivers of a version that have no settings of their own."""
    return _PLAIN[version]
