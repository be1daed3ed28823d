"""``RecordSpool``: batches on disk that wait for the server, in order; and the notes, which are kept here only.

The replacement that was begun last is stored before all batches, until the server has all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from rocksdict import WriteBatch

from terrazzo.ports.store import NO_NOTES, Notes
from terrazzo_adapters.influxdb.lines import LinePoint
from terrazzo_adapters.influxdb.replacement import PendingReplacement
from terrazzo_adapters.keyvalue.database import KeyValueDatabase
from terrazzo_adapters.keyvalue.notes import noted, put_notes, read_notes
from terrazzo_adapters.keyvalue.walk import ascending

_REPLACEMENT = b"a"
_FIRST = b"b" + bytes(8)
_BUFFER_BYTES = 8 << 20


class SpooledBatch(NamedTuple):
    """A batch on disk: its number, by which batches are ordered, and its size in bytes."""

    number: int
    size: int


class RecordSpool:
    """A queue in a RocksDB of its own. All methods are called on one thread; ``depth`` and ``size`` on any.

    Every method raises ``StoreUnavailable`` or ``StoreFull`` when the disk fails; later calls try again.
    """

    def __init__(self, path: Path) -> None:
        self._database = KeyValueDatabase(
            path, what="time-series store", buffer_bytes=_BUFFER_BYTES, cache_bytes=_BUFFER_BYTES
        )
        self._waiting: deque[SpooledBatch] = deque()
        self._last = 0
        self.size = 0
        self.replacement: PendingReplacement | None = None
        """What was begun and isn't known to be on the server. Whoever has it removed from the disk sets this."""

    @property
    def depth(self) -> int:
        """The number of batches that wait to be sent."""
        return len(self._waiting)

    def open(self) -> None:
        """Opens the database and counts what an earlier process left."""
        self._database.open()
        with self._database.translated_errors():
            for key, value in ascending(self._database.rdict, _FIRST, b"c"):
                self._waiting.append(SpooledBatch(_number(key), len(value)))
            begun = self._database.rdict.get(_REPLACEMENT)
        self.size = sum(size for _, size in self._waiting)
        self._last = self._waiting[-1][0] if self._waiting else 0
        self.replacement = None if begun is None else msgspec.msgpack.decode(begun, type=PendingReplacement)

    def checkpoint(self, path: Path) -> None:
        """Makes a copy that can be opened in its place; raises as ``KeyValueDatabase.checkpoint``."""
        self._database.checkpoint(path)

    def close(self) -> None:
        """Closes the database; what waits is there for the next process."""
        self._database.close("it is closed")

    def put(self, points: list[LinePoint], notes: Notes = NO_NOTES) -> None:
        """Adds a batch and its notes durably, behind those that wait."""
        self.keep(self.put_ahead(points, notes))

    def put_ahead(self, points: list[LinePoint], notes: Notes) -> SpooledBatch:
        """Writes a batch that is about to be sent, with its notes, durably; only ``keep`` or a crash queues it."""
        number = self._last + 1
        value = msgspec.msgpack.encode(points)
        self._commit(number, value, notes)
        self._last = number
        return SpooledBatch(number, len(value))

    def keep(self, batch: SpooledBatch) -> None:
        """Puts a batch of ``put_ahead`` into the queue, behind the others."""
        self._waiting.append(batch)
        self.size += batch.size

    def drop(self, batch: SpooledBatch) -> None:
        """Removes a batch that was sent. Not synced: if it is sent again after a crash, it overwrites itself."""
        self._ensure_open()
        with self._database.translated_errors():
            self._database.rdict.delete(_key(batch.number))

    def put_notes(self, notes: Notes) -> None:
        """Writes notes durably."""
        self._commit(None, b"", notes)

    def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted."""
        self._ensure_open()
        return self._database.read(read_notes, prefix)

    def first(self) -> list[LinePoint]:
        """The points of the oldest batch that waits; there must be one."""
        self._ensure_open()
        with self._database.translated_errors():
            value = self._database.rdict.get(_key(self._waiting[0][0])) or b"\x90"
        return msgspec.msgpack.decode(value, type=list[LinePoint])

    def replace_first(self, points: list[LinePoint]) -> None:
        """Stores the oldest batch again with its tie-breakers, before the first attempt to send it."""
        number, size = self._waiting[0]
        value = msgspec.msgpack.encode(points)
        self._commit(number, value)
        self._waiting[0] = SpooledBatch(number, len(value))
        self.size += len(value) - size

    def remove_first(self) -> None:
        """Removes the oldest batch, which was sent."""
        first = self._waiting[0]
        self.drop(first)
        self._waiting.popleft()
        self.size -= first.size

    def put_replacement(self, replacement: PendingReplacement) -> None:
        """Stores a replacement durably, before the server is changed."""
        value = msgspec.msgpack.encode(replacement)
        self._write(lambda batch: batch.put(_REPLACEMENT, value))
        self.replacement = replacement

    def remove_replacement(self) -> None:
        """Removes the replacement durably: if it were carried out again, it would delete what came after it."""
        self._write(lambda batch: batch.delete(_REPLACEMENT))

    def _commit(self, number: int | None, value: bytes, notes: Notes = NO_NOTES) -> None:
        encoded = noted(notes)

        def fill(batch: WriteBatch) -> None:
            if number is not None:
                batch.put(_key(number), value)
            put_notes(batch, encoded)

        self._write(fill)

    def _write(self, fill: Callable[[WriteBatch], None]) -> None:
        self._ensure_open()
        try:
            self._database.commit(fill)
        except Exception as error:
            self._database.close(str(error))
            raise

    def _ensure_open(self) -> None:
        """Reopens after a failure; drops a batch that was reported as failed and turns out to be stored."""
        if self._database.is_open:
            return
        self._database.open()
        self._database.commit(self._restore)

    def _restore(self, batch: WriteBatch) -> None:
        batch.delete_range(_key(self._last + 1), b"c")
        if self.replacement is None:
            batch.delete(_REPLACEMENT)
        else:
            batch.put(_REPLACEMENT, msgspec.msgpack.encode(self.replacement))


def _key(number: int) -> bytes:
    return b"b" + number.to_bytes(8)


def _number(key: object) -> int:
    assert isinstance(key, bytes)
    return int.from_bytes(key[1:])
