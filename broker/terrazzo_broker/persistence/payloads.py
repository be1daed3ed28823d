"""Long payloads that nobody takes now are on disk alone: let go of once they are committed, read again to be sent."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..message import ApplicationMessage, StoredMessage
from ..storage import StorageError
from . import keys
from .records import RecordError, decode_entry

MEMORY_BYTES = 1_024  # a longer payload is not kept in memory

Read = Callable[[bytes], bytes | None]
"""A record by its key, None where there is none; raises StorageError."""


def kept_of(payload: bytes) -> tuple[bytes, int]:
    """What is kept in memory of a payload that is on disk, and the length of what isn't."""
    return (payload, 0) if len(payload) <= MEMORY_BYTES else (b"", len(payload))


def without_payload(message: ApplicationMessage) -> ApplicationMessage:
    """A retained message as it is kept in memory."""
    payload, disk_bytes = kept_of(message.payload)
    if not disk_bytes:
        return message
    return StoredMessage(**{**msgspec.structs.asdict(message), "payload": payload}, disk_bytes=disk_bytes)


def let_go(message: StoredMessage) -> None:
    """Keeps the head of a message alone; its record must be committed."""
    payload, disk_bytes = kept_of(message.payload)
    if disk_bytes:
        msgspec.structs.force_setattr(message, "disk_bytes", disk_bytes)
        msgspec.structs.force_setattr(message, "payload", payload)


def whole(message: ApplicationMessage, key: bytes, read: Read) -> ApplicationMessage:
    """A message with its payload, which may be on disk alone: in the record ``key``, or in another one named there.

    Raises:
        StorageError: it can't be read.
    """
    if not message.disk_bytes:
        return message
    return ApplicationMessage(
        message.topic,
        _payload(key, read),
        message.qos,
        message.retain,
        message.properties,
        message.expires_us,
        message.publisher,
        message.owner,
    )


def _payload(key: bytes, read: Read) -> bytes:
    try:
        entry = decode_entry(_record(key, read))
    except RecordError as error:
        raise StorageError(f"the stored record {key[:64]!r} can't be read: {error}") from None
    return entry.payload if entry.body is None else _record(keys.body_key(entry.body), read)


def _record(key: bytes, read: Read) -> bytes:
    value = read(key)
    if value is None:
        raise StorageError(f"the stored record {key[:64]!r} is missing")
    return value
