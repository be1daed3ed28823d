"""Encodes records as keys and values: what one commit writes, and what would undo it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

import msgspec
from rocksdict import WriteBatch

from terrazzo.ports.store import Record
from terrazzo_adapters.keyvalue.notes import put_notes
from terrazzo_adapters.rocksdb.blocks import Arrivals, pack
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LAST_ARRIVAL,
    LATEST_US,
    name_key,
    pack_id,
    pack_number,
    pack_slot,
)

_FIRST = itemgetter(0)
_KEPT_NOTE = 2_048  # bytes: what a longer one was before is read, so that those which are kept have a size

MANY = 16
"""Records of a series in one commit that are worth being kept in memory."""

SeriesHour = int
"""A series and an hour in one number: ``series_id << 32 | hour``."""


class EncodedBatch(msgspec.Struct, frozen=True):
    """One commit. ``counts``: the new value of each counter that changes; ``added``: by how much it rises.

    ``touched``: the hours of mosaic series that it adds records to; ``runs``: ids of series with many records, each
    with these in order of time.
    """

    entries: list[tuple[bytes, bytes]]
    new_ids: dict[str, int]
    counts: dict[SeriesHour, int]
    added: dict[SeriesHour, int]
    first_arrival: int
    last_arrival: int
    touched: list[SeriesHour]
    runs: Sequence[tuple[int, Arrivals]] = ()
    notes: Mapping[bytes, bytes | None] = msgspec.field(default_factory=dict)
    notes_before: Mapping[bytes, bytes | None] = msgspec.field(default_factory=dict)

    def fill(self, batch: WriteBatch) -> None:
        """Adds all entries and notes to RocksDB's batch."""
        put = batch.put
        for key, value in self.entries:
            put(key, value)
        put_notes(batch, self.notes)

    def fill_undo(self, batch: WriteBatch) -> None:
        """Removes the records and names again, and resets the counters."""
        for key, _ in self.entries:
            if key[:1] in (b"r", b"n"):
                batch.delete(key)
        for slot, count in self.counts.items():
            put_count(batch, slot, count - self.added[slot])
        put_notes(batch, self.notes_before)
        batch.put(LAST_ARRIVAL, pack_number(self.first_arrival - 1))


def put_count(batch: WriteBatch, slot: SeriesHour, count: int) -> None:
    """Stores the counter of a series' hour, or removes it if the count is 0."""
    key = counter_key(slot)
    if count:
        batch.put(key, pack_number(count))
    else:
        batch.delete(key)


def counter_key(slot: SeriesHour) -> bytes:
    """The key of the counter of a series' hour."""
    return pack_slot(b"c", slot)


class Fresh:
    """How many records each series got since it was last looked at by whoever seals them.

    Commits count on their thread while the event loop looks: copying a dictionary is one step of the interpreter, a
    list of its items is not (the garbage collector may begin in the middle, and let another thread in).
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._changing = threading.Lock()

    def add(self, added: Mapping[SeriesHour, int]) -> None:
        """Counts a commit."""
        counts = self._counts
        with self._changing:
            for slot, count in added.items():
                series_id = slot >> 32
                counts[series_id] = counts.get(series_id, 0) + count

    def full(self, least: int) -> list[int]:
        """The series with at least so many."""
        return [series_id for series_id, count in self._counts.copy().items() if count >= least]

    def waiting(self, least: int) -> int:
        """How many records the series with at least so many have together."""
        return sum(count for count in self._counts.copy().values() if count >= least)

    def on_segment(self, series_id: int, count: int) -> None:
        """So many of a series are in segments now."""
        with self._changing:
            if series_id in self._counts:
                self._counts[series_id] = max(0, self._counts[series_id] - count)

    def on_sealed(self, series_id: int) -> None:
        """Begins anew with a series that was looked at."""
        self._counts.pop(series_id, None)


class SeriesCatalogue(msgspec.Struct):
    """The writer's state in memory: ids of series, the last arrival number, counters used lately.

    ``mosaics``: ids of the mosaic series; ``marked``: the hours whose columns are to be made, each with the time of its
    last record (seconds of the monotonic clock). ``notes``: those written lately, by key, as the same few are written
    again and again.
    """

    ids: dict[str, int]
    next_id: int
    arrival: int
    counts: dict[SeriesHour, int]
    mosaics: set[int]
    marked: dict[SeriesHour, float]
    notes: dict[bytes, bytes | None] = msgspec.field(default_factory=dict)

    def accept(self, batch: EncodedBatch, now_s: float) -> None:
        """Applies a batch that is now stored."""
        self.ids.update(batch.new_ids)
        self.mosaics |= mosaic_ids(batch.new_ids)
        self.marked.update(dict.fromkeys(batch.touched, now_s))
        self.next_id += len(batch.new_ids)
        self.arrival = batch.last_arrival
        self.counts.update(batch.counts)
        for key, value in batch.notes.items():
            if value is None or len(value) <= _KEPT_NOTE:
                self.notes[key] = value
            else:
                self.notes.pop(key, None)


def mosaic_ids(ids: Mapping[str, int]) -> set[int]:
    """The ids of the mosaic series among these."""
    return {series_id for series, series_id in ids.items() if series.startswith("m/")}


def encode_batch(
    records: Sequence[Record], catalogue: SeriesCatalogue, stored_count: Callable[[SeriesHour], int]
) -> EncodedBatch:
    """The commit that stores ``records``; changes nothing.

    Args:
        stored_count: reads a counter that the catalogue doesn't hold.

    Raises:
        ValueError: a record can't be stored; names its place in ``records``.
    """
    new_ids: dict[str, int] = {}
    added: dict[SeriesHour, int] = {}
    runs: list[tuple[int, Arrivals]] = []
    stored = _record_entries(records, catalogue, new_ids, added, runs)
    known = catalogue.counts
    counts = {slot: count + (known[slot] if slot in known else stored_count(slot)) for slot, count in added.items()}
    last_arrival = catalogue.arrival + len(records)
    mosaics = catalogue.mosaics | mosaic_ids(new_ids) if new_ids else catalogue.mosaics
    touched = [slot for slot in added if slot >> 32 in mosaics] if mosaics else []
    entries = [(pack_slot(b"d", slot), b"") for slot in touched if slot not in catalogue.marked]
    entries += [(pack_slot(b"c", slot), pack_number(count)) for slot, count in counts.items()]
    entries += [(name_key(series), pack_id(series_id)) for series, series_id in new_ids.items()]
    entries.append((LAST_ARRIVAL, pack_number(last_arrival)))
    entries.sort()  # RocksDB's memtable takes neighbours in half the time
    entries += stored  # keys of records are above all of these
    return EncodedBatch(entries, new_ids, counts, added, catalogue.arrival + 1, last_arrival, touched, runs)


def _record_entries(
    records: Sequence[Record],
    catalogue: SeriesCatalogue,
    new_ids: dict[str, int],
    added: dict[SeriesHour, int],
    many: list[tuple[int, Arrivals]],
) -> list[tuple[bytes, bytes]]:
    """The entries of the records in key order; grouped by series, because a commit has many records of few series."""
    runs: defaultdict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
    last, append = None, list[tuple[int, int, bytes]]().append
    for arrival, record in enumerate(records, catalogue.arrival + 1):
        if (series := record.series) is not last:  # those of a series often come together, and share the name
            last, append = series, runs[series].append
        append((record.time_us, arrival, record.body))
    ids = catalogue.ids
    known = [(ids.get(series) or _new_id(series, catalogue, new_ids), run) for series, run in runs.items()]
    known.sort(key=_FIRST)
    entries: list[tuple[bytes, bytes]] = []
    for series_id, run in known:
        run.sort(key=_FIRST)  # by time; of one time they are in the order of arrival already
        first_us, last_us = run[0][0], run[-1][0]
        if first_us < 0 or last_us > LATEST_US:
            _refuse_times(run, catalogue.arrival)
        hour = first_us // HOUR_US
        if last_us < (hour + 1) * HOUR_US:
            added[series_id << 32 | hour] = len(run)
        else:
            _count_hours(run, series_id << 32, added)
        if len(run) >= MANY:
            many.append((series_id, run))
        entries += pack(series_id, run)
    return entries


def _refuse_times(run: Arrivals, before: int) -> None:
    """Raises ``ValueError`` for a time that can't be stored; ``before``: the arrival number before the first one's."""
    for time_us, arrival, _ in (run[0], run[-1]):
        if not 0 <= time_us <= LATEST_US:
            raise ValueError(f"records[{arrival - before - 1}].time_us: {time_us} is not from 0 to {LATEST_US}")


def _count_hours(run: Arrivals, base: SeriesHour, added: dict[SeriesHour, int]) -> None:
    for time_us, _, _ in run:
        slot = base | time_us // HOUR_US
        added[slot] = added.get(slot, 0) + 1


def _new_id(series: str, catalogue: SeriesCatalogue, new_ids: dict[str, int]) -> int:
    name_key(series)  # refuses a name that is not text before anything is written
    series_id = new_ids[series] = catalogue.next_id + len(new_ids)
    return series_id
