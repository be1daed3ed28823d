"""Stored bodies that are no objects: what a decoder has read is kept as it came, marked as bytes.

A body that begins with ``{`` or ``[`` is JSON, one from 0x80 on is MessagePack; a decoder's is a MessagePack extension
of the type ``RAW`` with the payload's bytes, so that no reader takes it for something else.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

RAW = 1
_EXTENSIONS = frozenset([*range(0xC7, 0xCA), *range(0xD4, 0xD9)])  # ext 8, 16, 32; fixext 1, 2, 4, 8, 16


def marked_raw(payload: bytes) -> bytes:
    """The body under which a payload is stored that a decoder has read."""
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(RAW, payload))


def raw_payload(body: bytes) -> bytes | None:
    """The payload in a body of ``marked_raw``; None for any other body."""
    if not body or body[0] not in _EXTENSIONS:
        return None
    found = msgspec.msgpack.decode(body)
    return bytes(found.data) if isinstance(found, msgspec.msgpack.Ext) and found.code == RAW else None


def is_pack(body: bytes) -> bool:
    """Whether a stored body is MessagePack that a terminal has sent, of however many values."""
    return bool(body) and body[0] >= 0x80 and body[0] not in _EXTENSIONS


def json_payload(body: bytes) -> Any:
    """A stored body as a part of a JSON document: JSON as it is, MessagePack decoded, bytes as ``{"base64": ...}``."""
    if body[0] < 0x80:
        return msgspec.Raw(body)
    raw = raw_payload(body)
    return msgspec.msgpack.decode(body) if raw is None else {"base64": b64encode(raw).decode()}
