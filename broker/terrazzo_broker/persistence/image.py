"""Reads all stored records into memory, once at the start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from ..message import ApplicationMessage, StoredMessage
from ..storage import StorageError
from ..topics.tree import TopicSubscription
from . import keys
from .payloads import kept_of, without_payload
from .records import (
    RecordError,
    StoredEntry,
    StoredSession,
    StoredWill,
    decode_entry,
    decode_number,
    decode_retained,
    decode_session,
    decode_subscription,
    decode_will,
)

FORMAT = b"3"
_READABLE = (FORMAT, b"2", b"1")  # 2 has no owners, 1 no publisher in its retained messages either


class SessionImage(msgspec.Struct):
    """The records of one session. ``queue``: packet identifier (0: not sent yet) and message, in sending order."""

    number: int
    head: StoredSession | None = None
    subscriptions: dict[str, TopicSubscription] = msgspec.field(default_factory=dict)
    received: list[int] = msgspec.field(default_factory=list)
    confirmed: dict[int, int] = msgspec.field(default_factory=dict)  # packet identifier by place
    assigned: dict[bytes, int] = msgspec.field(
        default_factory=dict
    )  # packet identifier by place, as it stands in the key
    queue: list[tuple[int, StoredMessage]] = msgspec.field(default_factory=list)
    was_unowned: bool = False  # its owner wasn't kept

    @property
    def inflight(self) -> dict[int, StoredMessage | None]:
        """Sent messages by packet identifier, in the order of sending; None where PUBREC has come."""
        sent: list[tuple[int, int, StoredMessage | None]] = [
            (decode_number(message.key[keys.PLACE_AT :], 8), identifier, message)
            for identifier, message in self.queue
            if identifier
        ]
        sent.extend((place, identifier, None) for place, identifier in self.confirmed.items())
        sent.sort(key=lambda each: each[0])
        return {identifier: message for _, identifier, message in sent}

    @property
    def waiting(self) -> deque[StoredMessage]:
        """The messages that weren't sent yet, in order."""
        return deque(message for identifier, message in self.queue if not identifier)


class Image(msgspec.Struct):
    """All records of a database. ``alive_us``: when the broker was last known to run, UTC microseconds."""

    is_new: bool = True
    format: bytes = b""
    alive_us: int = 0
    last_place: int = 0
    sessions: list[SessionImage] = msgspec.field(default_factory=list)
    retained: list[ApplicationMessage] = msgspec.field(default_factory=list)
    unowned: list[ApplicationMessage] = msgspec.field(default_factory=list)  # retained, the owner not kept
    wills: dict[str, StoredWill] = msgspec.field(default_factory=dict)
    bodies: dict[int, tuple[bytes, int]] = msgspec.field(default_factory=dict)  # kept in memory; the length of the rest
    body_of: dict[bytes, int] = msgspec.field(default_factory=dict)  # by the entry's key

    @property
    def unused_bodies(self) -> list[int]:
        """Numbers of shared payloads that no queue entry refers to any more."""
        return sorted(self.bodies.keys() - set(self.body_of.values()))


def read_image(items: Iterable[tuple[bytes, bytes]]) -> Image:
    """Reads all records, given in the order of their keys.

    Raises:
        StorageError: another format, or a record that can't be read; names it.
    """
    image = Image()
    for key, value in items:
        if image.is_new and key > keys.VERSION:
            raise StorageError(f"the folder holds something else than a broker's state: {key[:64]!r}")
        try:
            _READERS[key[:1]](image, key, value)
        except KeyError:
            raise StorageError(f"the stored record {key[:64]!r} is of no known kind") from None
        except RecordError as error:
            raise StorageError(f"the stored record {key[:64]!r} can't be read: {error}") from None
    return image


def _read_version(image: Image, key: bytes, value: bytes) -> None:
    if value not in _READABLE:
        raise StorageError(f"stored in format {value!r}, and this program reads only up to {FORMAT!r}")
    image.is_new, image.format = False, value


def _read_alive(image: Image, key: bytes, value: bytes) -> None:
    image.alive_us = decode_number(value, 8)


def _read_body(image: Image, key: bytes, value: bytes) -> None:
    image.bodies[decode_number(key[1:], 8)] = kept_of(value)


def _read_retained(image: Image, key: bytes, value: bytes) -> None:
    owner = keys.retained_owner(key)
    message = without_payload(decode_retained(value, "" if owner is None else _text(owner)))
    (image.unowned if owner is None else image.retained).append(message)


def _read_will(image: Image, key: bytes, value: bytes) -> None:
    image.wills[_text(key[1:])] = decode_will(value)


def _read_session(image: Image, key: bytes, value: bytes) -> None:
    number = decode_number(key[1 : keys.PREFIX_BYTES], 4)
    if not image.sessions or image.sessions[-1].number != number:
        image.sessions.append(SessionImage(number))
    session = image.sessions[-1]
    _SESSION_READERS[key[keys.PREFIX_BYTES : keys.PLACE_AT]](image, session, key, value)


_READERS: dict[bytes, Callable[[Image, bytes, bytes], None]] = {
    keys.VERSION: _read_version,
    keys.ALIVE: _read_alive,
    keys.BODY: _read_body,
    keys.RETAINED: _read_retained,
    keys.WILL: _read_will,
    keys.SESSION: _read_session,
}


def _read_head(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    session.head = decode_session(value)


def _read_identifier(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    session.assigned[key[keys.PLACE_AT :]] = decode_number(value, 2)


def _read_confirmed(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    place = decode_number(value, 8)
    session.confirmed[place] = decode_number(key[keys.PLACE_AT :], 2)
    image.last_place = max(image.last_place, place)


def _read_queued(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    place = key[keys.PLACE_AT :]
    entry = decode_entry(value)
    if entry.body is not None:
        image.body_of[key] = entry.body
    payload, disk_bytes = _payload(image, entry)
    message = StoredMessage(
        entry.topic,
        payload,
        entry.qos,
        entry.retain,
        entry.properties,
        entry.expires_us,
        key=key,
        disk_bytes=disk_bytes,
    )
    session.queue.append((session.assigned.get(place, entry.packet_id), message))
    image.last_place = max(image.last_place, decode_number(place, 8))


def _read_received(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    session.received.append(decode_number(key[keys.PLACE_AT :], 2))


def _read_subscription(image: Image, session: SessionImage, key: bytes, value: bytes) -> None:
    subscription = decode_subscription(key[keys.PLACE_AT :], value)
    session.subscriptions[subscription.filter] = subscription


_SESSION_READERS: dict[bytes, Callable[[Image, SessionImage, bytes, bytes], None]] = {
    keys.HEAD: _read_head,
    keys.IDENTIFIER: _read_identifier,
    keys.CONFIRMED: _read_confirmed,
    keys.QUEUED: _read_queued,
    keys.RECEIVED: _read_received,
    keys.SUBSCRIPTION: _read_subscription,
}


def _payload(image: Image, entry: StoredEntry) -> tuple[bytes, int]:
    if entry.body is None:
        return kept_of(entry.payload)
    if entry.body not in image.bodies:
        raise RecordError(f"its payload, number {entry.body}, is missing")
    return image.bodies[entry.body]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RecordError("not UTF-8") from None
