"""Persistent sessions among several nodes, as the log has them: states, wills, and what waits in queues."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from terrazzo.replication.node_message import NodeMessages, VersionedMessages

VERSION = 1
SESSION, WILL = "s", "w"
"""First parts of the keys of states and wills; the second part is the client id."""

_INDEX_BITS = 16


class SessionSubscription(msgspec.Struct, frozen=True, array_like=True):
    """One subscription, as its client asked for it."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int = 0


class SessionRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of a session. ``node`` and ``epoch``: which start of which node has its connection; empty: nobody.

    ``handled``: up to this place of its queue all was sent, but for what is in ``sent``, in the order of sending:
    packet identifier and place; 0: the client has it (PUBREC), and PUBCOMP is due.
    """

    version: int
    client_id: str
    owner: str
    generation: int  # which session of this client id: groups for another one don't count
    node: str = ""
    epoch: int = 0
    expiry_s: int = 0
    expires_us: int = 0  # while its client is away, UTC microseconds; 0 is never
    subscriptions: list[SessionSubscription] = []
    received: list[int] = []  # identifiers of QoS 2 publishes that the client hasn't released
    handled: int = 0
    sent: list[tuple[int, int]] = []


class WillRecord(msgspec.Struct, frozen=True, array_like=True):
    """A will. ``node`` and ``epoch``: who has the connection, or publishes it; ``body``: will and client, as the broker
    stores them."""

    version: int
    client_id: str
    node: str
    epoch: int
    delay_s: int  # no longer than the session lasts
    due_us: int  # UTC microseconds; 0: its client is connected
    body: bytes
    is_claimed: bool = False  # ``node`` publishes it


class QueuedMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message that waits for a session's client, as that one's subscriptions ask for it."""

    topic: bytes  # UTF-8
    payload: bytes
    qos: int
    retain: bool = False
    properties: bytes = b""
    expires_us: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.topic) + len(self.payload) + len(self.properties) + 120


class QueueGroup(msgspec.Struct, frozen=True, array_like=True):
    """Messages that were appended together; ``messages`` is encoded, for whoever delivers them."""

    version: int
    generation: int
    count: int
    size: int
    messages: msgspec.Raw


_sessions = VersionedMessages(SessionRecord, "a session in the log", VERSION)
_wills = VersionedMessages(WillRecord, "a will in the log", VERSION)
_groups = VersionedMessages(QueueGroup, "what waits for a session in the log", VERSION)
_messages = NodeMessages(list[QueuedMessage], "what waits for a session in the log")


def encode_session(record: SessionRecord) -> bytes:
    """The bytes of a session."""
    return _sessions.encode(record)


def decode_session(data: bytes) -> SessionRecord:
    """A session of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _sessions.decode(data)


def encode_will(record: WillRecord) -> bytes:
    """The bytes of a will."""
    return _wills.encode(record)


def decode_will(data: bytes) -> WillRecord:
    """A will of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _wills.decode(data)


def encode_group(generation: int, messages: Sequence[QueuedMessage]) -> bytes:
    """The bytes of messages that are appended together."""
    raw = msgspec.Raw(_messages.encode(list(messages)))
    size = sum(each.size for each in messages)
    return _groups.encode(QueueGroup(VERSION, generation, len(messages), size, raw))


def decode_group(data: bytes) -> QueueGroup:
    """A group of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _groups.decode(data)


def decode_messages(group: QueueGroup) -> list[QueuedMessage]:
    """The messages of a group.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _messages.decode(bytes(group.messages))


def place_of(sequence: int, index: int) -> int:
    """Where a message stands in its queue, by the number of its group and its index there."""
    return sequence << _INDEX_BITS | index


def sequence_of(place: int) -> int:
    """The number of the group that has a place."""
    return place >> _INDEX_BITS


def index_of(place: int) -> int:
    """The index of a place in its group."""
    return place & ((1 << _INDEX_BITS) - 1)
