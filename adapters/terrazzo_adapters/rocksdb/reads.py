"""The queries, over one snapshot. A long one costs about half a microsecond a record that it passes over.

The iterators check their ends themselves: in rocksdict 0.3 a bound given with ``ReadOptions`` points to freed memory
once the options object is gone, and ``set_iterate_lower_bound`` sets the upper one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import cast

from rocksdict import Rdict, Snapshot

from terrazzo.store import Page, Record
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LATEST_US,
    ORDER,
    count_hour,
    count_key,
    name_key,
    note_key,
    parse_number,
    record_key,
    series_end,
)

View = Rdict | Snapshot

Found = tuple[bytes, str, bytes]
"""A record on its way through a merge: its order among all series, its series, its body."""


def ascending(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries with ``start <= key < end``, in order."""
    for entry in cast("Iterator[tuple[bytes, bytes]]", view.items(from_key=start)):
        if entry[0] >= end:
            return
        yield entry


def ascending_keys(view: View, start: bytes, end: bytes) -> Iterator[bytes]:
    """The keys with ``start <= key < end``, in order."""
    keys = cast("Iterator[bytes]", view.keys(from_key=start))
    return takewhile(end.__gt__, keys)


def descending(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries with ``start >= key >= end``, from ``start`` down."""
    for entry in cast("Iterator[tuple[bytes, bytes]]", view.items(backwards=True, from_key=start)):
        if entry[0] < end:
            return
        yield entry


def notes(view: View, prefix: str) -> dict[str, bytes]:
    """The notes whose names start with ``prefix``, sorted."""
    start = note_key(prefix)
    found = takewhile(lambda entry: entry[0].startswith(start), ascending(view, start, b"u"))
    return {key[1:].decode(): value for key, value in found}


def series_names(view: View, prefix: str) -> list[str]:
    """The names that start with ``prefix``, sorted (UTF-8 sorts as text does)."""
    start = name_key(prefix)
    names: list[str] = []
    for key in ascending_keys(view, start, b"o"):
        if not key.startswith(start):
            break
        names.append(key[1:].decode())
    return names


def series_ids(view: View, series: Sequence[str]) -> dict[str, int]:
    """The ids of those of the named series that there are."""
    ids: dict[str, int] = {}
    for name in series:
        # A miss on a snapshot raises; an iterator says it without.
        key = name_key(name)
        for _, value in ascending(view, key, key + b"\0"):
            ids[name] = parse_number(value)
    return ids


def latest(view: View, series: Sequence[str], limit: int) -> list[Record]:
    """The newest ``limit`` records of all the series."""
    ids = series_ids(view, series)
    return _records(islice(_newest_first(view, ids, 0, LATEST_US), limit))


def first_after(view: View, series: Sequence[str], time_us: int) -> Record | None:
    """The first record strictly later than ``time_us``."""
    start_us = max(0, time_us + 1)
    if start_us > LATEST_US:
        return None
    firsts: list[Found] = []
    for name, series_id in series_ids(view, series).items():
        entries = ascending(view, record_key(series_id, start_us), series_end(series_id))
        firsts += [(key[ORDER:], name, body) for key, body in islice(entries, 1)]
    return _record(min(firsts)) if firsts else None


def page(view: View, series: Sequence[str], start_us: int, end_us: int, *, offset: int, limit: int) -> Page:
    """Records of a range, newest first; ``offset`` passes over whole hours by their counters."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return Page([], 0)
    ids = series_ids(view, series)
    hours: dict[int, int] = {}
    for series_id in ids.values():
        _count_hours(view, series_id, start_us, end_us, hours)
    total = sum(hours.values())
    if offset >= total or limit <= 0:
        return Page([], total)
    for hour in sorted(hours, reverse=True):
        if hours[hour] > offset:
            break
        offset -= hours[hour]
        end_us = hour * HOUR_US - 1
    found = _newest_first(view, ids, start_us, end_us)
    return Page(_records(islice(found, offset, offset + limit)), total)


def _count_hours(view: View, series_id: int, start_us: int, end_us: int, hours: dict[int, int]) -> None:
    """Adds to ``hours`` how many records of the range the series has in each hour."""
    first, last = start_us // HOUR_US, end_us // HOUR_US
    for key, value in ascending(view, count_key(series_id, first), count_key(series_id, last + 1)):
        hour, count = count_hour(key), parse_number(value)
        if hour in (first, last):
            count = _count_in_hour(view, series_id, count, hour_us=hour * HOUR_US, start_us=start_us, end_us=end_us)
        hours[hour] = hours.get(hour, 0) + count


def _count_in_hour(view: View, series_id: int, count: int, *, hour_us: int, start_us: int, end_us: int) -> int:
    """How many of an hour's ``count`` records are in the range: counts the shorter of what is inside and outside."""
    last_us = hour_us + HOUR_US - 1
    start_us, end_us = max(start_us, hour_us), min(end_us, last_us)
    if 2 * (end_us - start_us) < HOUR_US:
        return count_records(view, series_id, start_us, end_us)
    before = count_records(view, series_id, hour_us, start_us - 1)
    return count - before - count_records(view, series_id, end_us + 1, last_us)


def count_records(view: View, series_id: int, start_us: int, end_us: int) -> int:
    """How many records one series has from ``start_us`` to ``end_us``, both inclusive, without counters."""
    keys = ascending_keys(view, record_key(series_id, start_us), record_key(series_id, end_us + 1))
    return sum(1 for _ in keys)


def _newest_first(view: View, ids: dict[str, int], start_us: int, end_us: int) -> Iterator[Found]:
    each = [_one_newest_first(view, name, series_id, start_us, end_us) for name, series_id in ids.items()]
    return each[0] if len(each) == 1 else heapq.merge(*each, reverse=True)


def _one_newest_first(view: View, name: str, series_id: int, start_us: int, end_us: int) -> Iterator[Found]:
    start, end = record_key(series_id, end_us + 1), record_key(series_id, start_us)
    for key, body in descending(view, start, end):
        yield key[ORDER:], name, body


def _records(found: Iterator[Found]) -> list[Record]:
    return [_record(each) for each in found]


def _record(found: Found) -> Record:
    order, name, body = found
    return Record(name, int.from_bytes(order[:8]), body)


def has_record_before(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has anything earlier than ``time_us``."""
    keys = ascending_keys(view, record_key(series_id, 0), record_key(series_id, time_us))
    return any(True for _ in keys)


def has_record_from(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has anything at ``time_us`` or later."""
    keys = ascending_keys(view, record_key(series_id, time_us), series_end(series_id))
    return any(True for _ in keys)
