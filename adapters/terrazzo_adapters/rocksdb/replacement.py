"""The commit that replaces the records of a range: keys, counters and columns that it changes.

What it removes stays on disk until RocksDB rewrites the files that have it: ``ReplacedSeries`` knows how much that is.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import msgspec
from rocksdict import WriteBatch

from terrazzo.ports.store import StoreUnavailable
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.batch import EncodedBatch, SeriesHour, put_count
from terrazzo_adapters.rocksdb.blocks import KeyValue
from terrazzo_adapters.rocksdb.extents import Extent, extents_up, open_segment
from terrazzo_adapters.rocksdb.keys import HOUR_US, column_key, mark_key, tally_key
from terrazzo_adapters.rocksdb.sealed import ordered, places
from terrazzo_adapters.rocksdb.sealing import delete_segments

_WORTH_CHANGES = 20_000  # records that were replaced or took their place, from which on files are rewritten
_MOST_CHANGES = 400_000  # so many even while the next are replaced
_QUIET_S = 5.0  # without a replacement of the series: a replay has a piece after the other
_MOST_SERIES = 1_000


class ReplacementBatch(msgspec.Struct, frozen=True):
    """The commit of a replacement.

    ``gone``: keys to delete; ``kept``: entries for records that are not replaced of what is deleted;
    ``segments``: those to delete;
    ``left``: counters of the hours that only lose records; ``touched``: all hours that change;
    ``ends``: the series has no records any more.
    """

    batch: EncodedBatch
    gone: Sequence[bytes]
    kept: Sequence[KeyValue]
    segments: Sequence[Extent]
    left: Mapping[SeriesHour, int]
    touched: Collection[SeriesHour]
    ends: bool

    def fill(self, batch: WriteBatch) -> None:
        """Adds all changes to RocksDB's batch.

        Columns are deleted first: the hour may end up with as many records as before, but others.
        """
        for key in self.gone:
            batch.delete(key)
        for extent in self.segments:
            delete_segments(batch, extent.series_id, extent.last_us, extent.last_us)
        for entry in self.kept:
            batch.put(*entry)
        for slot in self.touched:
            series_id, hour = divmod(slot, 1 << 32)
            batch.delete(tally_key(series_id, hour))
            batch.delete_range(column_key(series_id, hour), column_key(series_id, hour + 1))
        for slot, count in self.left.items():
            put_count(batch, slot, count)
            mark = mark_key(*divmod(slot, 1 << 32))
            if count:
                batch.put(mark, b"")
            else:
                batch.delete(mark)
        self.batch.fill(batch)

    @property
    def changes(self) -> int:
        """How many records it removes and stores, about: of an entry with several it counts one."""
        removed = len(self.gone) + sum(extent.total for extent in self.segments)
        return removed + self.batch.last_arrival - self.batch.first_arrival + 1

    def span(self, start_us: int, end_us: int) -> tuple[int, int]:
        """What a replacement of a range changes the entries of, both inclusive: segments and blocks across its ends."""
        first_us = min([start_us, *(extent.first_us for extent in self.segments)])
        last_us = max([end_us, *(extent.last_us for extent in self.segments)])
        return max(0, first_us - blocks.SPAN_US), last_us + blocks.SPAN_US


class Replaced(NamedTuple):
    """A range of a series (UTC microseconds, both ends inclusive) in which records were replaced.

    ``last_s``: when the last of ``changes`` was, by the monotonic clock.
    """

    series_id: int
    first_us: int
    last_us: int
    changes: int
    last_s: float

    def is_due(self, now_s: float, *, is_idle: bool) -> bool:
        """Whether the files that have it are to be rewritten; ``is_idle``: nothing waits to be sealed."""
        is_over = is_idle and now_s - self.last_s >= _QUIET_S
        return self.changes >= (_WORTH_CHANGES if is_over else _MOST_CHANGES)


class ReplacedSeries:
    """What was replaced of each series since its files were rewritten; of 1,000 series at most, the last ones.

    Commits add on their thread, while another takes.
    """

    def __init__(self) -> None:
        self._ranges: OrderedDict[int, Replaced] = OrderedDict()
        self._changing = Lock()

    def add(self, new: Replaced) -> None:
        """Takes note of a replacement."""
        with self._changing:
            if before := self._ranges.pop(new.series_id, None):
                first_us, last_us = min(before.first_us, new.first_us), max(before.last_us, new.last_us)
                new = new._replace(first_us=first_us, last_us=last_us, changes=before.changes + new.changes)
            self._ranges[new.series_id] = new
            if len(self._ranges) > _MOST_SERIES:
                self._ranges.popitem(last=False)  # RocksDB frees it in its own time

    def take(self, now_s: float, *, is_idle: bool) -> Replaced | None:
        """One that is due, and is forgotten with that; None: there is none."""
        with self._changing:
            due = (each for each in self._ranges.values() if each.is_due(now_s, is_idle=is_idle))
            found = next(due, None)
            return self._ranges.pop(found.series_id) if found else None


class ReplacedRange(msgspec.Struct, frozen=True):
    """The content of a range: ``counts`` of records by counter, the keys of its entries, its segments.

    ``kept`` are the entries for records outside of the range that share an entry or a segment with some inside; those
    of segments are less than nothing in ``counts``, as counters have them from now on.
    """

    counts: Counter[SeriesHour]
    keys: list[bytes]
    kept: list[KeyValue]
    segments: list[Extent]


def find_replaced(view: View, series_id: int, start_us: int, end_us: int) -> ReplacedRange:
    """What a replacement of a range removes, both ends inclusive (UTC microseconds).

    Raises:
        StoreUnavailable: a segment that lies across an end can't be read.
    """
    found = ReplacedRange(Counter(), [], [], [])
    for (key, _), times, kept in blocks.cut(view, series_id, start_us, end_us):
        found.counts.update(series_id << 32 | time_us // HOUR_US for time_us in times)
        found.keys.append(key)
        found.kept.extend(kept)
    for extent in extents_up(view, series_id, start_us, end_us):
        found.segments.append(extent)
        if not extent.is_within(start_us, end_us):
            run = _outside(view, extent, start_us, end_us)
            found.counts.subtract(series_id << 32 | time_us // HOUR_US for time_us, _, _ in run)
            found.kept.extend(blocks.pack(series_id, run))
    return found


def _outside(view: View, extent: Extent, start_us: int, end_us: int) -> blocks.Arrivals:
    """The records of a segment that are not in a range."""
    import numpy as np  # heavy, as are the libraries of segments

    from terrazzo_adapters.segments import SegmentDamaged

    try:
        segment = open_segment(view, extent)
        first, last = places(segment, extent, start_us, end_us)
        records = ordered(segment, np.r_[extent.left_out : first, last : segment.count])
    except SegmentDamaged as error:
        raise StoreUnavailable(f"records of the time-series store can't be replaced: {error}") from error
    return [(int.from_bytes(order[:8]), int.from_bytes(order[8:]), body) for order, body in records]
