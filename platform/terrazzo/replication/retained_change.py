"""A change of a retained message, as the nodes that terminals connect to keep it for one another."""

from __future__ import annotations

import msgspec

VERSION = 1


class RetainedChange(msgspec.Struct, frozen=True, array_like=True):
    """What is retained on a topic from now on; an empty payload: nothing. ``properties``: as MQTT 5 encodes them."""

    version: int
    owner: str  # the company's id
    topic: str
    payload: bytes
    qos: int = 0
    properties: bytes = b""
    expires_us: int = 0  # UTC microseconds, 0 is never
    publisher: str = ""  # client id

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.topic) + len(self.payload) + len(self.properties) + 200


class RetainedDamaged(ValueError):
    """Bytes that are no such change, or one of a later version; ``str()`` says why."""


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(RetainedChange)


def encode_retained(change: RetainedChange) -> bytes:
    """The bytes of a change."""
    return _encode(change)


def decode_retained(data: bytes) -> RetainedChange:
    """A change of its bytes.

    Raises:
        RetainedDamaged: says why.
    """
    try:
        change = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RetainedDamaged(f"a retained message of another node can't be read: {error}") from None
    if change.version > VERSION:
        raise RetainedDamaged(f"a retained message has version {change.version}, and this node reads {VERSION}")
    return change
