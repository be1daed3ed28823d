"""Encodes and decodes the records in the database."""

from __future__ import annotations

import struct
from typing import NamedTuple

import mqtt5
import msgspec

from ..codec.wire import encode_binary
from ..hooks import Client
from ..message import ApplicationMessage
from ..topics.tree import TopicSubscription
from ..wills import PendingWill

_ENTRY = struct.Struct(">BHQHI")  # flags, packet identifier, expires_us, bytes of the topic, of the properties
_QOS, _RETAIN, _HAS_BODY, _HAS_PUBLISHER = 0x03, 0x04, 0x08, 0x10


class RecordError(ValueError):
    """A record can't be decoded."""


class StoredEntry(NamedTuple):
    """A decoded queue entry or retained message; ``body``: the number of the shared record that has the payload."""

    packet_id: int  # 0: not sent yet
    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    properties: bytes
    expires_us: int
    body: int | None
    publisher: str | None


def encode_entry(message: ApplicationMessage, packet_id: int = 0, body: int | None = None) -> bytes:
    """Encodes a message with its packet identifier (0: not sent), and its payload or the number ``body`` of that."""
    flags = message.qos | (_RETAIN if message.retain else 0)
    payload, publisher = message.payload, b""
    if body is not None:
        flags |= _HAS_BODY
        payload = body.to_bytes(8, "big")
    if message.publisher is not None:
        flags |= _HAS_PUBLISHER
        publisher = encode_binary(message.publisher.encode())
    topic, properties = message.topic, message.properties
    head = _ENTRY.pack(flags, packet_id, message.expires_us, len(topic), len(properties))
    return head + topic + properties + publisher + payload


def decode_entry(data: bytes) -> StoredEntry:
    """Decodes what ``encode_entry`` made.

    Raises:
        RecordError: it is cut off, or has an impossible QoS.
    """
    if len(data) < _ENTRY.size:
        raise RecordError(f"a message record of {len(data)} bytes")
    flags, packet_id, expires_us, topic_bytes, properties_bytes = _ENTRY.unpack_from(data)
    topic_end = _ENTRY.size + topic_bytes
    properties_end = topic_end + properties_bytes
    if properties_end > len(data) or flags & _QOS == 3:
        raise RecordError(f"a message record of {len(data)} bytes that should have {properties_end} or more")
    publisher, rest = _publisher(data[properties_end:]) if flags & _HAS_PUBLISHER else (None, data[properties_end:])
    return StoredEntry(
        packet_id=packet_id,
        topic=data[_ENTRY.size : topic_end],
        payload=b"" if flags & _HAS_BODY else rest,
        qos=flags & _QOS,
        retain=bool(flags & _RETAIN),
        properties=data[topic_end:properties_end],
        expires_us=expires_us,
        body=decode_number(rest, 8) if flags & _HAS_BODY else None,
        publisher=publisher,
    )


def decode_retained(data: bytes, owner: str) -> ApplicationMessage:
    """Decodes the record of a retained message.

    Raises:
        RecordError: as ``decode_entry``; or its payload is in another record, as only queue entries have it.
    """
    entry = decode_entry(data)
    if entry.body is not None:
        raise RecordError(f"a retained message with its payload in record {entry.body}")
    return ApplicationMessage(
        entry.topic,
        entry.payload,
        entry.qos,
        entry.retain,
        entry.properties,
        entry.expires_us,
        entry.publisher,
        owner,
    )


def _publisher(data: bytes) -> tuple[str, bytes]:
    """The client id that stands before the payload, and the payload."""
    end = 2 + int.from_bytes(data[:2], "big")
    if end > len(data):
        raise RecordError(f"a message record whose publisher's {end} bytes are cut off")
    try:
        return data[2:end].decode(), data[end:]
    except UnicodeDecodeError:
        raise RecordError("a message record whose publisher is not UTF-8") from None


def decode_number(data: bytes, size: int) -> int:
    """A big-endian number of exactly ``size`` bytes.

    Raises:
        RecordError: another size.
    """
    if len(data) != size:
        raise RecordError(f"a number of {len(data)} bytes instead of {size}")
    return int.from_bytes(data, "big")


class StoredSession(msgspec.Struct, frozen=True, array_like=True):
    """The head record of a session, without its queue and its subscriptions; ``expires_us`` in UTC microseconds."""

    client_id: str
    expiry_s: int
    expires_us: int  # 0 is never
    is_connected: bool
    owner: str | None = None  # None: not kept, up to format 2


class _StoredSubscription(msgspec.Struct, frozen=True, array_like=True):
    qos: int
    no_local: bool
    retain_as_published: bool
    retain_handling: int
    identifier: int


class StoredWill(msgspec.Struct, frozen=True, array_like=True):
    """A will and its client. ``due_us`` (UTC microseconds) is None while the client is connected."""

    due_us: int | None
    delay_s: int
    topic: str
    payload: bytes
    qos: int
    retain: bool
    payload_format_indicator: int
    message_expiry_s: int | None
    content_type: str | None
    response_topic: str | None
    correlation_data: bytes | None
    user_properties: list[tuple[str, str]]
    username: str | None
    protocol: int
    address: str
    port: int
    listener: str
    connected_us: int
    keep_alive_s: int
    owner: str | None = None  # None: not kept, up to format 2

    def pending(self, client_id: str, owner: str) -> PendingWill:
        """The will and its client, which has no identity: that was the embedding program's, and isn't stored.

        ``owner``: whose it is where that isn't kept.
        """
        will = mqtt5.Will(
            self.topic,
            payload=self.payload,
            qos=mqtt5.QoS(self.qos),
            retain=self.retain,
            payload_format_indicator=self.payload_format_indicator,
            message_expiry_interval=self.message_expiry_s,
            content_type=self.content_type,
            response_topic=self.response_topic,
            correlation_data=self.correlation_data,
            will_delay_interval=self.delay_s,
            user_properties=self.user_properties,
        )
        client = Client(
            client_id=client_id,
            username=self.username,
            protocol=self.protocol,
            address=self.address,
            port=self.port,
            listener=self.listener,
            connected_us=self.connected_us,
            keep_alive_s=self.keep_alive_s,
            owner=owner if self.owner is None else self.owner,
        )
        return PendingWill(will, client)


_encoder = msgspec.msgpack.Encoder()
_sessions = msgspec.msgpack.Decoder(StoredSession)
_subscriptions = msgspec.msgpack.Decoder(_StoredSubscription)
_wills = msgspec.msgpack.Decoder(StoredWill)


def encode_session(stored: StoredSession) -> bytes:
    """Encodes a session's head record, as MessagePack."""
    return _encoder.encode(stored)


def decode_session(data: bytes) -> StoredSession:
    """Decodes a session's head record. Raises RecordError."""
    try:
        return _sessions.decode(data)
    except msgspec.MsgspecError as error:
        raise RecordError(f"not a session: {error}") from None


def encode_subscription(subscription: TopicSubscription) -> bytes:
    """Encodes a subscription, as MessagePack; the filter is in the key."""
    return _encoder.encode(
        _StoredSubscription(
            subscription.qos,
            subscription.no_local,
            subscription.retain_as_published,
            subscription.retain_handling,
            subscription.identifier,
        )
    )


def decode_subscription(pattern: bytes, data: bytes) -> TopicSubscription:
    """Decodes a subscription; ``pattern``: the filter in its key, UTF-8. Raises RecordError."""
    try:
        stored = _subscriptions.decode(data)
        return TopicSubscription(
            pattern.decode(),
            stored.qos,
            stored.no_local,
            stored.retain_as_published,
            stored.retain_handling,
            stored.identifier,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordError(f"not a subscription: {error}") from None


def encode_will(will: mqtt5.Will, client: Client, due_us: int | None) -> bytes:
    """Encodes a will, as MessagePack; the client id is in the key. ``due_us``: None while the client is connected."""
    return _encoder.encode(
        StoredWill(
            due_us=due_us,
            delay_s=will.will_delay_interval,
            topic=will.topic,
            payload=will.payload or b"",
            qos=int(will.qos),
            retain=will.retain,
            payload_format_indicator=will.payload_format_indicator,
            message_expiry_s=will.message_expiry_interval,
            content_type=will.content_type,
            response_topic=will.response_topic,
            correlation_data=will.correlation_data,
            user_properties=list(will.user_properties),
            username=client.username,
            protocol=client.protocol,
            address=client.address,
            port=client.port,
            listener=client.listener,
            connected_us=client.connected_us,
            keep_alive_s=client.keep_alive_s,
            owner=client.owner,
        )
    )


def decode_will(data: bytes) -> StoredWill:
    """Decodes a will. Raises RecordError."""
    try:
        return _wills.decode(data)
    except msgspec.MsgspecError as error:
        raise RecordError(f"not a will: {error}") from None
