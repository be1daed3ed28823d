"""The changes since the last commit, as the records that it will write."""

from __future__ import annotations

from collections import Counter

import msgspec

from ..message import StoredMessage
from . import keys
from .records import encode_entry

SHARED_BYTES = 512  # a longer payload that waits in several sessions is stored once
_OVERHEAD_BYTES = 200  # of the Python objects that hold one change


class CommitBatch(msgspec.Struct, frozen=True):
    """What one commit writes: values by key (None deletes), then deletions of all keys of ended sessions."""

    values: dict[bytes, bytes | None]
    ended: list[int]  # numbers of sessions

    @property
    def ranges(self) -> list[tuple[bytes, bytes]]:
        """The key ranges of the sessions that have ended: first key, and the first one beyond."""
        return [keys.session_range(number) for number in self.ended]


class UncommittedChanges:
    """Collects changes until a commit takes them.

    A queue entry that is dropped before it was taken is never written.
    """

    __slots__ = ("_assigned", "_bodies", "_body_of", "_ended", "_entries", "_next_body", "_values", "size")

    def __init__(self) -> None:
        self.size = 0  # bytes, about
        self._values: dict[bytes, bytes | None] = {}
        self._entries: dict[bytes, tuple[StoredMessage, int]] = {}  # not written yet, with the packet identifier
        self._ended: list[int] = []
        self._assigned: set[bytes] = set()  # entries whose packet identifier is in a record of its own
        self._bodies: dict[int, int] = {}  # how many entries share each
        self._body_of: dict[bytes, int] = {}
        self._next_body = 1

    def __bool__(self) -> bool:
        return bool(self._values or self._entries or self._ended)

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a record."""
        self._values[key] = value
        self.size += len(value) + _OVERHEAD_BYTES

    def find(self, key: bytes) -> tuple[bool, bytes | None]:
        """Whether a record was set or removed, and its value."""
        return key in self._values, self._values.get(key)

    def delete(self, key: bytes) -> None:
        """Removes a record."""
        self._values[key] = None

    def keep(self, message: StoredMessage, packet_id: int) -> None:
        """Adds a new queue entry; ``packet_id`` 0: it isn't sent yet."""
        self._entries[message.key] = message, packet_id
        self.size += message.size + _OVERHEAD_BYTES

    def assign(self, message: StoredMessage, packet_id: int) -> None:
        """Sets the packet identifier of a queue entry that is sent."""
        if message.key in self._entries:
            self._entries[message.key] = message, packet_id
        else:
            self._assigned.add(message.key)
            self._values[keys.identifier_key(message.key)] = packet_id.to_bytes(2, "big")

    def drop(self, message: StoredMessage) -> None:
        """Removes a queue entry."""
        key = message.key
        if self._entries.pop(key, None) is not None:
            self.size -= message.size + _OVERHEAD_BYTES
            return
        self._values[key] = None
        if key in self._assigned:
            self._assigned.discard(key)
            self._values[keys.identifier_key(key)] = None
        body = self._body_of.pop(key, None)
        if body is not None:
            self._let_go(body)

    def end(self, session: int) -> None:
        """Removes all records of a session, except its queue entries' shared payloads, which ``drop`` removes."""
        self._ended.append(session)

    def note_assigned(self, key: bytes) -> None:
        """Notes, at the start, that a queue entry's packet identifier is in a record of its own."""
        self._assigned.add(key)

    def share(self, key: bytes, body: int) -> None:
        """Notes that a queue entry has its payload in the shared record number ``body``."""
        self._body_of[key] = body
        self._bodies[body] = self._bodies.get(body, 0) + 1
        self._next_body = max(self._next_body, body + 1)

    def take(self) -> CommitBatch:
        """Takes everything collected; later changes belong to the next batch."""
        batch = CommitBatch({**self._values, **self._encoded_entries()}, self._ended)
        self._values, self._entries, self._ended, self.size = {}, {}, [], 0
        return batch

    def _encoded_entries(self) -> dict[bytes, bytes]:
        """The records of the queue entries, and of the payloads that several of them share."""
        entries = self._entries
        copies = Counter(id(each.payload) for each, _ in entries.values() if len(each.payload) > SHARED_BYTES)
        if not any(count > 1 for count in copies.values()):
            return {key: encode_entry(message, packet_id) for key, (message, packet_id) in entries.items()}
        values: dict[bytes, bytes] = {}
        bodies: dict[int, int] = {}  # by the payload object, which lives as long as this call
        for key, (message, packet_id) in entries.items():
            body = None
            if copies[id(message.payload)] > 1:
                body = bodies.setdefault(id(message.payload), self._next_body)
                values[keys.body_key(body)] = message.payload
                self.share(key, body)
            values[key] = encode_entry(message, packet_id, body)
        return values

    def put_back(self, batch: CommitBatch) -> None:
        """Adds a batch whose commit failed to the next one, below later changes; it may be written in part."""
        self._values = {**batch.values, **self._values}
        self._ended = batch.ended + self._ended
        self.size += sum(len(value or b"") + _OVERHEAD_BYTES for value in batch.values.values())

    def _let_go(self, body: int) -> None:
        self._bodies[body] -= 1
        if not self._bodies[body]:
            del self._bodies[body]
            self._values[keys.body_key(body)] = None
