"""How many records of some series lie in a range: from counters of hours and segments, decoding only what it cuts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import accumulate
from typing import Protocol

import msgspec
from msgspec.structs import replace

from terrazzo_adapters.columns.points import carrying
from terrazzo_adapters.keyvalue.readers import still_wanted
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks, sealed
from terrazzo_adapters.rocksdb.extents import Extent, extents_up, open_segment
from terrazzo_adapters.rocksdb.hours import Hour, together, walk_hours
from terrazzo_adapters.rocksdb.keys import HOUR_US, LATEST_US
from terrazzo_adapters.rocksdb.segment_cache import cache

_FEW = 256  # records
_MOST_KNOWN, _KNOWN_BYTES = 10_000, 150  # segments of which it is kept how many carry some names; of each


class _Count(Protocol):
    def __call__(self, start_us: int, end_us: int) -> int: ...


class _Part(msgspec.Struct, frozen=True):
    """A segment, or the records of an hour that are not sealed: its times, how many of it lie in the asked range."""

    first_us: int
    last_us: int
    inside: int
    count: _Count
    extent: Extent | None = None


class Counts:
    """Of some series the records in a range, both ends inclusive (UTC microseconds); of ``keys`` they carry one.

    ``total`` is their number.
    """

    def __init__(self, view: View, series_ids: Iterable[int], start_us: int, end_us: int, keys: Set[str]) -> None:
        self._end_us = end_us
        parts = [part for each in series_ids for part in _parts(view, each, start_us, end_us, keys)]
        self._parts = sorted((part for part in parts if part.inside), key=lambda part: part.first_us)
        self._firsts = [part.first_us for part in self._parts]
        self._before = [0, *accumulate(part.inside for part in self._parts)]
        self.total = self._before[-1]

    @property
    def segments(self) -> list[tuple[Extent, int]] | None:
        """The segments, newest first, each with its records in the range; None: some of these are not sealed."""
        found = [(part.extent, part.inside) for part in reversed(self._parts) if part.extent is not None]
        return found if len(found) == len(self._parts) else None

    def skip(self, offset: int) -> tuple[int, int]:
        """Passes over ``offset`` records, newest first: the end of what is left of the range, and of how many yet."""
        low, high = 0, len(self._firsts)  # what begins at or behind ``high`` is passed over
        while low < high:
            middle = (low + high) // 2
            if self._from(self._firsts[middle]) <= offset:
                high = middle
            else:
                low = middle + 1
        if high == len(self._firsts):
            return self._end_us, offset
        return self._firsts[high] - 1, offset - self._from(self._firsts[high])

    def _from(self, time_us: int) -> int:
        """How many records of the range there are from a time on."""
        place = bisect_left(self._firsts, time_us)
        cut = (part for part in self._parts[:place] if part.last_us >= time_us)
        return self.total - self._before[place] + sum(part.count(time_us, self._end_us) for part in cut)


def _parts(view: View, series_id: int, start_us: int, end_us: int, keys: Set[str]) -> Iterator[_Part]:
    for some in together(walk_hours(view, series_id, start_us, end_us), start_us, end_us):
        still_wanted()
        for hour, inside in zip(some, _counts_in_hours(view, series_id, some, keys, start_us, end_us), strict=True):
            of_hour = partial(_count_in_hour, view, series_id, hour, keys)
            yield _Part(*hour.cut(start_us, end_us), inside, of_hour)
    known = _Known(series_id, keys)
    for extent in extents_up(view, series_id, start_us, end_us):
        still_wanted()
        of_extent = partial(_count_in_segment, view, extent, keys)
        first_us, last_us = max(extent.first_us, start_us), min(extent.last_us, end_us)
        inside = (
            known.of_whole(extent, of_extent) if extent.is_within(start_us, end_us) else of_extent(start_us, end_us)
        )
        yield _Part(first_us, last_us, inside, of_extent, extent)
    known.keep()


class _Known:
    """How many records of whole segments carry one of some names: counted once, and kept with what was decoded."""

    def __init__(self, series_id: int, keys: Set[str]) -> None:
        self._memory = cache.of((series_id, 0), b"")
        self._part = b"c" + msgspec.msgpack.encode(sorted(keys)) if keys else b""
        self._before: dict[bytes, int] = (self._memory.find(self._part) if keys else None) or {}
        self._new: dict[bytes, int] = {}

    def of_whole(self, extent: Extent, count: _Count) -> int:
        """The number of a segment's records."""
        if not self._part or not extent.is_whole:
            return count(extent.first_us, extent.last_us)
        found = self._before.get(extent.mark)
        if found is None:
            found = self._new[extent.mark] = count(extent.first_us, extent.last_us)
        return found

    def keep(self) -> None:
        """Keeps what was counted."""
        if self._new:
            before = self._before if len(self._before) < _MOST_KNOWN else {}
            every = {**before, **self._new}
            self._memory.keep(self._part, every, _KNOWN_BYTES * len(every) + len(self._part))


def _counts_in_hours(
    view: View, series_id: int, hours: Sequence[Hour], keys: Set[str], start_us: int, end_us: int
) -> list[int]:
    """As ``_count_in_hour`` of each; those that have no tallies are decoded together."""
    if not keys or hours[0].tally is not None:
        return [_count_in_hour(view, series_id, hour, keys, start_us, end_us) for hour in hours]
    if sum(hour.count for hour in hours) < _FEW:
        each = (blocks.rows(view, series_id, *hour.cut(start_us, end_us)) for hour in hours)
        return [sum(sum(carrying(some.bodies, keys)) for some in rows) for rows in each]
    from terrazzo_adapters.rocksdb.unsealed.records import counts_carrying  # its library is heavy

    return counts_carrying(view, series_id, hours, start_us, end_us, keys)


def _count_in_hour(view: View, series_id: int, hour: Hour, keys: Set[str], start_us: int, end_us: int) -> int:
    """The number of an hour's records that are in the range and carry the names.

    Decodes records only if the hour has no tally yet or the range cuts it.
    """
    whole = hour.is_within(start_us, end_us)
    if not keys:
        return hour.count if whole else _count_cut(view, series_id, hour, *hour.cut(start_us, end_us))
    if whole and hour.tally is not None:
        return hour.tally.carrying(keys)
    if hour.tally is not None and keys.isdisjoint(hour.tally.names):
        return 0
    return sum(_counts_in_hours(view, series_id, [replace(hour, tally=None)], keys, start_us, end_us))


def _count_cut(view: View, series_id: int, hour: Hour, start_us: int, end_us: int) -> int:
    """The number of records in a range that is a part of the hour: counts the shorter of its inside and outside."""
    first_us, last_us = hour.cut(0, LATEST_US)
    if 2 * (end_us - start_us) < HOUR_US:
        return blocks.count(view, series_id, start_us, end_us)
    before = blocks.count(view, series_id, first_us, start_us - 1)
    return hour.count - before - blocks.count(view, series_id, end_us + 1, last_us)


def _count_in_segment(view: View, extent: Extent, keys: Set[str], start_us: int, end_us: int) -> int:
    """The number of a segment's records that are in the range and carry the names."""
    is_within = extent.is_within(start_us, end_us)
    if is_within and not keys:
        return extent.total
    with sealed.guarded(extent):
        segment = open_segment(view, extent)
        is_all = is_within and extent.is_whole
        start, end = (0, segment.count) if is_all else sealed.places(segment, extent, start_us, end_us)
        return segment.count_carrying(keys, start, end) if keys else max(0, end - start)
    return 0
