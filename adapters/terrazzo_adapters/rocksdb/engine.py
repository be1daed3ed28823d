"""``Engine``: the one writer. It commits batches in order, deletes old records, and recovers after a failed write."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace
from rocksdict import Snapshot

from terrazzo.ports.store import NO_NOTES, Notes, Record, Seen, StoreUnavailable
from terrazzo_adapters.keyvalue.database import CACHE_BYTES, KeyValueDatabase
from terrazzo_adapters.keyvalue.notes import noted
from terrazzo_adapters.keyvalue.walk import ascending, ascending_keys
from terrazzo_adapters.records import check_records
from terrazzo_adapters.rocksdb.batch import (
    EncodedBatch,
    Fresh,
    SeriesCatalogue,
    SeriesHour,
    counter_key,
    encode_batch,
    mosaic_ids,
)
from terrazzo_adapters.rocksdb.hours import BuiltHour
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LAST_ARRIVAL,
    LATEST_US,
    PROBE,
    name_key,
    parse_number,
)
from terrazzo_adapters.rocksdb.reads import has_record_before, has_record_from, page
from terrazzo_adapters.rocksdb.replacement import (
    Replaced,
    ReplacedRange,
    ReplacedSeries,
    ReplacementBatch,
    find_replaced,
)
from terrazzo_adapters.rocksdb.retention import fill_drop, find_expired
from terrazzo_adapters.rocksdb.sealing import Job, SealedRange, Watch
from terrazzo_adapters.rocksdb.unsealed.recent import Recent

P = ParamSpec("P")
T = TypeVar("T")

_WHAT = "time-series store"
_MOST_COUNTERS = 500_000  # kept in memory, about 50 MB
_MOST_NOTES = 20_000
_RECENT_PART = 2  # of the memory for what was read last: as much for what came last


class Engine:
    """Writes to one database. All methods are called on one thread; readers use ``database`` from any."""

    def __init__(self, path: Path, *, cache_bytes: int = CACHE_BYTES) -> None:
        self.database = KeyValueDatabase(path, what=_WHAT, cache_bytes=cache_bytes)
        self._catalogue = SeriesCatalogue({}, 1, 0, {}, set(), {})
        self.generation = 0
        """Rises with each opening, replacement and deletion: what was read before may be gone since."""
        self._removals = 0  # of any series: openings and deletions
        self.written_bytes = 0
        """Of what was appended since the start, before it is packed."""
        self.fresh = Fresh()
        self.replaced = ReplacedSeries()
        self.recent = Recent(cache_bytes // _RECENT_PART)
        self._watch: Watch | None = None
        self._unsettled: EncodedBatch | None = None  # reported as failed, yet perhaps on disk

    def open(self) -> None:
        """Opens and reads the catalogue.

        Raises:
            StoreUnavailable: the reason in words.
        """
        self.database.open()
        self.generation += 1
        self._removals += 1
        try:
            with self.recent.removing(), self.database.translated_errors():
                self._undo_unsettled()
                self._catalogue = _load_catalogue(self.database)
        except StoreUnavailable as error:
            self.database.close(str(error))
            raise

    @property
    def has_series(self) -> bool:
        """Whether anything is stored."""
        return bool(self._catalogue.ids)

    def close(self) -> None:
        """Closes the database; later reads and writes raise ``StoreUnavailable``."""
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
            self.written_bytes += self.database.commit(batch.fill)
        except StoreUnavailable as error:
            self._recover(error, batch)
        else:
            self._catalogue.accept(batch, time.monotonic())
            self.fresh.add(batch.added)
            self.recent.add(batch.runs)
            if self._watch is not None:
                self._watch.on_append(records, batch.added, self._catalogue.ids)

    def _encode(self, records: Sequence[Record], notes: Notes) -> EncodedBatch:
        if len(self._catalogue.counts) > _MOST_COUNTERS:
            self._catalogue.counts.clear()
        if len(self._catalogue.notes) > _MOST_NOTES:
            self._catalogue.notes.clear()
        with self.database.translated_errors():
            batch = encode_batch(records, self._catalogue, self._stored_count)
            after = noted(notes)
            known = self._catalogue.notes
            before = {key: known[key] if key in known else self.database.rdict.get(key) for key in after}
        return replace(batch, notes=after, notes_before=before)

    def _stored_count(self, slot: SeriesHour) -> int:
        return parse_number(self.database.rdict.get(counter_key(slot)))

    def drop_before(self, time_us: int, series: Collection[str] | None = None) -> None:
        """Deletes all records earlier than ``time_us``, and series that have no others. Raises as ``append``.

        ``series``: of these alone; where they have none that is so early, nothing is written.
        """
        self._ensure_open()
        time_us = min(max(time_us, 0), LATEST_US + 1)
        try:
            known = self._catalogue.ids
            ids = known if series is None else {name: known[name] for name in series if name in known}
            expired = self.database.read(find_expired, ids, time_us)
            if series is not None and not expired:
                return
            with self.recent.removing():
                self.database.commit(lambda batch: fill_drop(batch, expired, time_us))
        except StoreUnavailable as error:
            self._recover(error, None)
            return
        self.generation += 1
        self._removals += 1
        self._catalogue.counts.clear()
        for each in expired:
            if each.remaining is None:
                del self._catalogue.ids[each.name]
        with self.database.translated_errors():
            self._catalogue.marked = _load_marks(self.database)

    def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        """Replaces the records of a range of one series; False, and no change, if ``given`` is not what is stored.

        Raises:
            ValueError: a record is not of the series and the range.
            StoreUnavailable, StoreFull: it may be stored or not; a later call may succeed.
        """
        start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
        check_records(series, start_us, end_us, records)
        self._ensure_open()
        there = self.database.read(page, given.series, start_us, end_us, offset=0, limit=0).total
        if there != given.total:
            return False
        replacement = self._encode_replacement(series, start_us, end_us, records)
        series_id = self._catalogue.ids.get(series, replacement.batch.new_ids.get(series, 0))
        try:
            with self.recent.removing((series_id << 32, series_id << 32 | 0xFFFFFFFF)):
                self.database.commit(replacement.fill)
        except StoreUnavailable as error:
            self._recover(error, None)
        self.generation += 1
        span_us = replacement.span(start_us, end_us)
        if self._watch is not None:
            self._watch.on_replace(series_id, *span_us)
        self.replaced.add(Replaced(series_id, *span_us, replacement.changes, time.monotonic()))
        self._accept_replacement(series, replacement)
        self.fresh.add(replacement.batch.added)
        return True

    def _encode_replacement(
        self, series: str, start_us: int, end_us: int, records: Sequence[Record]
    ) -> ReplacementBatch:
        series_id = self._catalogue.ids.get(series)
        replaced = ReplacedRange(Counter(), [], [], [])
        if series_id is not None:
            replaced = self.database.read(find_replaced, series_id, start_us, end_us)
        removed = replaced.counts
        for slot in removed:
            self._catalogue.counts.pop(slot, None)
        with self.database.translated_errors():
            batch = encode_batch(records, self._catalogue, lambda slot: self._stored_count(slot) - removed[slot])
            left = {
                slot: self._stored_count(slot) - count for slot, count in removed.items() if slot not in batch.counts
            }
            ends = series_id is not None and not records and self._is_all(series_id, start_us, end_us)
        gone = replaced.keys + ([name_key(series)] if ends else [])
        touched = {*removed, *batch.counts}
        return ReplacementBatch(batch, gone, replaced.kept, replaced.segments, left, touched, ends=ends)

    def _is_all(self, series_id: int, start_us: int, end_us: int) -> bool:
        view = self.database.rdict
        return not (has_record_before(view, series_id, start_us) or has_record_from(view, series_id, end_us + 1))

    def _accept_replacement(self, series: str, replacement: ReplacementBatch) -> None:
        catalogue, now_s = self._catalogue, time.monotonic()
        catalogue.accept(replacement.batch, now_s)
        for slot, count in replacement.left.items():
            catalogue.counts.pop(slot, None)
            catalogue.marked.pop(slot, None)
            if count:
                catalogue.marked[slot] = now_s
        if replacement.ends:
            del catalogue.ids[series]

    def ripe(self, *, quiet_s: float, idle_s: float) -> list[SeriesHour]:
        """The hours whose columns should be made, those without new records for longest first.

        Args:
            quiet_s: seconds without a record after which an hour that is over is due; ``idle_s``: one that isn't over.
        """
        now_s, over_us = time.monotonic(), int((time.time() - quiet_s) * 1_000_000)
        ripe = sorted(
            (touched_s, slot)
            for slot, touched_s in self._catalogue.marked.copy().items()  # commits go on meanwhile
            if now_s - touched_s >= (quiet_s if ((slot & 0xFFFFFFFF) + 1) * HOUR_US <= over_us else idle_s)
        )
        return [slot for _, slot in ripe]

    def is_marked(self, slot: SeriesHour) -> bool:
        """Whether an hour's columns are still to be made."""
        return slot in self._catalogue.marked

    def postpone(self, slot: SeriesHour) -> None:
        """Treats an hour as if it had just received records: it comes last among the ``ripe`` ones next time."""
        if slot in self._catalogue.marked:
            self._catalogue.marked[slot] = time.monotonic()

    def keep_hour(self, hour: BuiltHour, generation: int) -> None:
        """Stores an hour's columns, unless records were added or removed since they were made. Raises as ``append``."""
        self._ensure_open()
        if generation != self.generation or self._stored_count(hour.slot) != hour.count:
            return
        try:
            self.database.commit(hour.fill, sync=False)
        except StoreUnavailable as error:
            self._recover(error, None)
        self._catalogue.marked.pop(hour.slot, None)

    def is_mosaic(self, series_id: int) -> bool:
        """Whether it is the id of a mosaic series."""
        return series_id in self._catalogue.mosaics

    def begin_seal(self, job: Job) -> int:
        """Watches a range that is about to be read and sealed. The result is for ``keep_sealed``."""
        self._ensure_open()
        self._watch = Watch(job)
        return self._removals

    def keep_sealed(self, sealed: SealedRange, removals: int) -> bool:
        """Puts segments in the place of what they were made of; False, and no change, if that changed meanwhile.

        Raises as ``append``.
        """
        watch, self._watch = self._watch, None
        self._ensure_open()
        if watch is None or watch.job != sealed.job or watch.is_broken or removals != self._removals:
            return False
        with self.database.translated_errors():
            left = {slot: self._stored_count(slot) - count for slot, count in sealed.rows.items()}
        mosaic = self.is_mosaic(sealed.job.series_id)
        try:
            with self.recent.removing(sealed.job.slots()):
                self.database.commit(lambda batch: sealed.fill(batch, left, mosaic=mosaic), sync=False)
        except StoreUnavailable as error:
            self._recover(error, None)
        catalogue, now_s = self._catalogue, time.monotonic()
        for slot, count in left.items():
            catalogue.counts.pop(slot, None)
            catalogue.marked.pop(slot, None)
            if mosaic and count:
                catalogue.marked[slot] = now_s
        return True

    def check(self) -> None:
        """Checks by a synced write that it accepts work.

        Raises:
            StoreUnavailable: it doesn't.
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
        self.database.checkpoint(path)

    def read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``database.read``, on any thread; what came lately ``query`` finds in memory."""
        return self.recent.read(partial(self.database.read, query, *args, **kwargs))

    def _ensure_open(self) -> None:
        if not self.database.is_open:
            self.open()

    def _recover(self, error: StoreUnavailable, batch: EncodedBatch | None) -> None:
        """Reopens after a failed commit: RocksDB refuses every write until then.

        Returns when ``batch`` turns out to be stored after all, raises the failure otherwise.
        """
        self.database.close(str(error))
        self._unsettled = None
        try:
            self.open()
            is_stored = batch is not None and self._catalogue.arrival == batch.last_arrival
        except StoreUnavailable:
            self._unsettled, is_stored = batch, False
        try:
            if not is_stored:
                raise error from None
        finally:
            del error  # else it would keep what wasn't stored until the collector comes

    def _undo_unsettled(self) -> None:
        batch = self._unsettled
        if batch is not None and _last_arrival(self.database) == batch.last_arrival:
            self.database.commit(batch.fill_undo)
        self._unsettled = None


def _last_arrival(database: KeyValueDatabase) -> int:
    return parse_number(database.rdict.get(LAST_ARRIVAL))


def _load_catalogue(database: KeyValueDatabase) -> SeriesCatalogue:
    names = ascending(database.rdict, b"n", b"o")
    ids = {key[1:].decode(): parse_number(value) for key, value in names}
    next_id = max(ids.values(), default=0) + 1
    return SeriesCatalogue(ids, next_id, _last_arrival(database), {}, mosaic_ids(ids), _load_marks(database))


def _load_marks(database: KeyValueDatabase) -> dict[SeriesHour, float]:
    now_s = time.monotonic()
    return {int.from_bytes(key[1:]): now_s for key in ascending_keys(database.rdict, b"d", b"e")}
