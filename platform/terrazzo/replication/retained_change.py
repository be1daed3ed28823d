"""A change of a retained message, as the nodes that terminals connect to keep it for one another."""

from __future__ import annotations

import msgspec

from terrazzo.replication.node_message import VersionedMessages

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


_changes = VersionedMessages(RetainedChange, "a retained message of another node", VERSION)


def encode_retained(change: RetainedChange) -> bytes:
    """The bytes of a change."""
    return _changes.encode(change)


def decode_retained(data: bytes) -> RetainedChange:
    """A change of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _changes.decode(data)
