"""The one writer: it commits batches in order, forgets old records, and gets back to work after a failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rocksdict import Checkpoint, Snapshot, WriteBatch

from terrazzo.store import NO_NOTES, Notes, Record, StoreUnavailable
from terrazzo_adapters.rocksdb.batch import Batch, Catalogue, Slot, encode_batch, put_count, slot_key
from terrazzo_adapters.rocksdb.database import Database, worded
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LAST_ARRIVAL,
    LATEST_US,
    PROBE,
    count_key,
    name_key,
    note_key,
    parse_number,
    record_key,
)
from terrazzo_adapters.rocksdb.reads import ascending, count_records, has_record_before, has_record_from

_MOST_COUNTERS = 500_000  # kept in memory, about 50 MB


class Engine:
    """Writes to one database. Every method belongs to one thread; readers use ``database`` from any."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self._catalogue = Catalogue({}, 1, 0, {})
        self._unsettled: Batch | None = None  # reported as failed, yet perhaps on disk

    def open(self) -> None:
        """Opens and reads the catalogue.

        Raises:
            StoreUnavailable: the reason in words.
        """
        self.database.open()
        try:
            with worded(self.database.path):
                self._undo_unsettled()
                self._catalogue = _load_catalogue(self.database)
        except StoreUnavailable as error:
            self.database.close(str(error))
            raise

    def close(self) -> None:
        """Closes for good."""
        self.database.close("it is closed")

    def append(self, records: Sequence[Record], notes: Notes = NO_NOTES) -> None:
        """Stores all records and notes durably, or none.

        Raises:
            ValueError: a record can't be stored, says which and why.
            StoreUnavailable, StoreFull: none is stored; a later call may succeed.
        """
        self._ensure_open()
        batch = self._encode(records, notes)
        try:
            self.database.commit(batch.fill)
        except StoreUnavailable as error:
            self._recover(error, batch)
        else:
            self._catalogue.accept(batch)

    def _encode(self, records: Sequence[Record], notes: Notes) -> Batch:
        if len(self._catalogue.counts) > _MOST_COUNTERS:
            self._catalogue.counts.clear()
        with worded(self.database.path):
            batch = encode_batch(records, self._catalogue, self._stored_count)
            after = {note_key(name): value for name, value in notes.items()}
            before = {key: self.database.rdict.get(key) for key in after}
        return replace(batch, notes=after, notes_before=before)

    def _stored_count(self, slot: Slot) -> int:
        return parse_number(self.database.rdict.get(slot_key(slot)))

    def drop_before(self, time_us: int) -> None:
        """Forgets all records earlier than ``time_us``, and series that have no others. Raises as ``append``."""
        self._ensure_open()
        time_us = min(max(time_us, 0), LATEST_US + 1)
        try:
            expired = self.database.read(_expired, self._catalogue.ids, time_us)
            self.database.commit(lambda batch: _fill_drop(batch, expired, time_us))
        except StoreUnavailable as error:
            self._recover(error, None)
            return
        self._catalogue.counts.clear()
        for name, _, remaining in expired:
            if remaining is None:
                del self._catalogue.ids[name]

    def check(self) -> None:
        """Proves by a synced write that work is accepted.

        Raises:
            StoreUnavailable: it is not.
        """
        self._ensure_open()
        try:
            self.database.commit(lambda batch: batch.put(PROBE, b""))
        except StoreUnavailable as error:
            self._recover(error, None)

    def checkpoint(self, path: Path) -> None:
        """Makes a copy that can be opened as a store of its own; files on the same disk are linked, not copied.

        Raises:
            FileExistsError: ``path`` exists already.
            OSError, StoreUnavailable: it could not be made.
        """
        self._ensure_open()
        if path.exists():
            raise FileExistsError(f"{path}: a checkpoint needs a path that does not exist")
        path.parent.mkdir(parents=True, exist_ok=True)
        with worded(path):
            Checkpoint(self.database.rdict).create_checkpoint(str(path))

    def _ensure_open(self) -> None:
        if not self.database.is_open:
            self.open()

    def _recover(self, error: StoreUnavailable, batch: Batch | None) -> None:
        """Reopens after a failed commit: RocksDB refuses every write until then.

        Returns when ``batch`` turns out to be stored after all, raises the failure otherwise.
        """
        self.database.close(str(error))
        self._unsettled = None
        try:
            self.open()
        except StoreUnavailable:
            self._unsettled = batch
            raise error from None
        if batch is None or self._catalogue.arrival != batch.last_arrival:
            raise error from None

    def _undo_unsettled(self) -> None:
        batch = self._unsettled
        if batch is not None and _last_arrival(self.database) == batch.last_arrival:
            self.database.commit(batch.fill_undo)
        self._unsettled = None


def _last_arrival(database: Database) -> int:
    return parse_number(database.rdict.get(LAST_ARRIVAL))


def _load_catalogue(database: Database) -> Catalogue:
    names = ascending(database.rdict, b"n", b"o")
    ids = {key[1:].decode(): parse_number(value) for key, value in names}
    return Catalogue(ids, max(ids.values(), default=0) + 1, _last_arrival(database), {})


Expired = tuple[str, int, int | None]
"""A series that loses records: name, id, how many remain in the hour of the cut; None when nothing remains at all."""


def _expired(view: Snapshot, ids: dict[str, int], time_us: int) -> list[Expired]:
    return list(_each_expired(view, ids, time_us))


def _each_expired(view: Snapshot, ids: dict[str, int], time_us: int) -> Iterator[Expired]:
    end_us = (time_us // HOUR_US + 1) * HOUR_US - 1
    for name, series_id in ids.items():
        if has_record_before(view, series_id, time_us):
            remains = has_record_from(view, series_id, time_us)
            yield name, series_id, count_records(view, series_id, time_us, end_us) if remains else None


def _fill_drop(batch: WriteBatch, expired: list[Expired], time_us: int) -> None:
    hour = time_us // HOUR_US
    for name, series_id, remaining in expired:
        batch.delete_range(record_key(series_id, 0), record_key(series_id, time_us))
        batch.delete_range(count_key(series_id, 0), count_key(series_id, hour))
        put_count(batch, series_id << 32 | hour, remaining or 0)
        if remaining is None:
            batch.delete(name_key(name))
