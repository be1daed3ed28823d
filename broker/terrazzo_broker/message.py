"""Application messages inside the broker, and the MQTT 5 properties of a publish."""

from __future__ import annotations

import msgspec

from .codec.wire import encode_binary
from .hooks import Delivery

_OVERHEAD_BYTES = 120  # of the Python objects that hold one message


class ApplicationMessage(msgspec.Struct, frozen=True, gc=False):
    """One message; shared by all receivers that get it in the same form.

    ``properties``: the encoded MQTT 5 properties that travel with it, apart from the expiry.
    ``expires_us``: UTC microseconds, 0 is never. ``publisher``: the sender's client id, ``owner``: whose message it is;
    both are set on retained messages only.
    """

    topic: bytes  # UTF-8
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: bytes = b""
    expires_us: int = 0
    publisher: str | None = None
    owner: str = ""

    @property
    def size(self) -> int:
        """About how many bytes the message takes."""
        return len(self.topic) + len(self.payload) + len(self.properties) + _OVERHEAD_BYTES

    @property
    def memory_bytes(self) -> int:
        """The bytes of it that are in memory: all, unless the payload is on disk."""
        return len(self.topic) + len(self.payload) + len(self.properties) + _OVERHEAD_BYTES

    @property
    def disk_bytes(self) -> int:
        """The length of a payload that is on disk alone; ``payload`` is empty then."""
        return 0


class StoredMessage(ApplicationMessage, frozen=True, gc=False, kw_only=True):
    """A message with a record in the storage, which may have its payload alone: that is all that changes of it.

    ``key``: of the queue entry of a persistent session; empty for a retained message, whose owner and topic say it.
    """

    key: bytes = b""
    disk_bytes: int = 0

    @property
    def size(self) -> int:
        """About how many bytes the message takes with its payload."""
        return len(self.topic) + len(self.payload) + len(self.properties) + _OVERHEAD_BYTES + self.disk_bytes


class TrackedMessage(ApplicationMessage, frozen=True, gc=True, kw_only=True):
    """A message sent with ``Broker.send``, whose sender is told the outcome."""

    on_outcome: Delivery


_TRACEPARENT = b"\x26\x00\x0btraceparent\x00\x37"  # a user property of this name, with a value of 55 bytes


def traceparent_of(properties: bytes) -> str | None:
    """The value of the user property ``traceparent`` among encoded properties; None where it is missing.

    It is looked for by its bytes. What contains them otherwise is text of the same client, for whoever reads it.
    """
    at = properties.find(_TRACEPARENT)
    if at < 0:
        return None
    start = at + len(_TRACEPARENT)
    return properties[start : start + 55].decode("ascii", "replace")


def remaining_s(message: ApplicationMessage, now_us: int) -> int:
    """The Message Expiry Interval to send on, in whole seconds, rounded up. [MQTT-3.3.2-6]"""
    return max(0, (message.expires_us - now_us + 999_999) // 1_000_000)


class PublishProperties(msgspec.Struct, frozen=True, kw_only=True):
    """MQTT 5 properties of a message that the embedding program publishes."""

    payload_format_indicator: int = 0
    message_expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()

    def encode(self) -> bytes:
        """The encoded properties of a PUBLISH, without their length and without the expiry."""
        parts = [b"\x01\x01"] if self.payload_format_indicator else []
        for number, text in ((b"\x03", self.content_type), (b"\x08", self.response_topic)):
            if text is not None:
                parts.append(number + encode_binary(text.encode()))
        if self.correlation_data is not None:
            parts.append(b"\x09" + encode_binary(self.correlation_data))
        for name, value in self.user_properties:
            parts.append(b"\x26" + encode_binary(name.encode()) + encode_binary(value.encode()))
        return b"".join(parts)
