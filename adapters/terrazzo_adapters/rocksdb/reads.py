"""The queries, on one snapshot. Each record that is passed over costs about half a microsecond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import NamedTuple

from terrazzo.ports.store import ANY_SIZE, Page, Record, RecordsTooLarge
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.keyvalue.walk import View, ascending, ascending_keys
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.hours import Hour, walk_hours
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LATEST_US,
    name_key,
    parse_number,
    record_key,
)
from terrazzo_adapters.rocksdb.merge import ALL, OrderedRecord, newest_first, oldest_first

_PIECE_RECORDS = 2_000
_PIECE_BYTES = 512 * 1024


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
    """The ids of the named series; unknown ones are left out."""
    ids: dict[str, int] = {}
    for name in series:
        # A miss on a snapshot raises; an iterator says it without.
        key = name_key(name)
        for _, value in ascending(view, key, key + b"\0"):
            ids[name] = parse_number(value)
    return ids


def latest(
    view: View, series: Sequence[str], limit: int, keys: Set[str] = ALL, most_bytes: int = ANY_SIZE
) -> list[Record]:
    """The newest ``limit`` records of all the series."""
    found = newest_first(view, series_ids(view, series), 0, LATEST_US, keys)
    return _take(islice(found, max(0, limit)), most_bytes)


def _take(found: Iterable[OrderedRecord], most_bytes: int) -> list[Record]:
    records: list[Record] = []
    for each in found:
        most_bytes -= len(each.body)
        if most_bytes < 0:
            raise RecordsTooLarge
        records.append(each.record())
    return records


def latest_each(view: View, series: str, keys: Set[str], most_bytes: int = ANY_SIZE) -> dict[str, Record]:
    """For each name the newest record that carries it."""
    each: dict[str, Record] = {}
    for series_id in series_ids(view, [series]).values():
        wanted = set(keys)
        for hour in walk_hours(view, series_id, 0, LATEST_US, backwards=True):
            if hour.tally is not None and wanted.isdisjoint(hour.tally.names):
                continue
            for found in newest_first(view, {series: series_id}, *hour.cut(0, LATEST_US)):
                hits = wanted & parse_points(found.body).keys()
                most_bytes -= len(found.body) if hits else 0
                if most_bytes < 0:
                    raise RecordsTooLarge
                each.update(dict.fromkeys(hits, found.record()))
                wanted -= hits
                if not wanted:
                    return each
    return each


def first_after(view: View, series: Sequence[str], time_us: int, keys: Set[str] = ALL) -> Record | None:
    """The first record strictly later than ``time_us``."""
    start_us = max(0, time_us + 1)
    if start_us > LATEST_US:
        return None
    found = oldest_first(view, series_ids(view, series), start_us, LATEST_US, keys)
    return next((each.record() for each in found if not keys or each.carries(keys)), None)


def page(
    view: View,
    series: Sequence[str],
    start_us: int,
    end_us: int,
    *,
    offset: int,
    limit: int,
    keys: Set[str] = ALL,
    most_bytes: int = ANY_SIZE,
) -> Page:
    """Records of a range, newest first; ``offset`` skips whole hours by their counters."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return Page([], 0)
    ids = series_ids(view, series)
    hours: dict[int, int] = {}
    for series_id in ids.values():
        for hour in walk_hours(view, series_id, start_us, end_us):
            count = _count_in_hour(view, series_id, hour, start_us, end_us, keys)
            hours[hour.number] = hours.get(hour.number, 0) + count
    total = sum(hours.values())
    if offset >= total or limit <= 0:
        return Page([], total)
    for number in sorted(hours, reverse=True):
        if hours[number] > offset:
            break
        offset -= hours[number]
        end_us = number * HOUR_US - 1
    found = newest_first(view, ids, start_us, end_us, keys)
    return Page(_take(islice(found, offset, offset + limit), most_bytes), total)


def _count_in_hour(view: View, series_id: int, hour: Hour, start_us: int, end_us: int, keys: Set[str]) -> int:
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
    found = newest_first(view, {"": series_id}, *hour.cut(start_us, end_us))
    return sum(1 for each in found if each.carries(keys))


def _count_cut(view: View, series_id: int, hour: Hour, start_us: int, end_us: int) -> int:
    """The number of records in a range that is a part of the hour: counts the shorter of its inside and outside."""
    first_us, last_us = hour.cut(0, LATEST_US)
    if 2 * (end_us - start_us) < HOUR_US:
        return blocks.count(view, series_id, start_us, end_us)
    before = blocks.count(view, series_id, first_us, start_us - 1)
    return hour.count - before - blocks.count(view, series_id, end_us + 1, last_us)


class Piece(NamedTuple):
    """A piece of a scan. ``after``: the order after which the next piece begins; empty at the end."""

    records: list[Record]
    after: bytes


def scan(view: View, series: Sequence[str], start_us: int, end_us: int, *, keys: Set[str], after: bytes) -> Piece:
    """The next records of a range, oldest first; of at most ``_PIECE_RECORDS``, those that carry the names."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return Piece([], b"")
    if after:
        start_us = max(start_us, int.from_bytes(after[:8]))
    records: list[Record] = []
    size = 0
    every = oldest_first(view, series_ids(view, series), start_us, end_us, keys, after=after)
    for looked_at, found in enumerate(every, 1):
        if not keys or found.carries(keys):
            records.append(found.record())
            size += len(found.body)
        if looked_at >= _PIECE_RECORDS or size >= _PIECE_BYTES:
            return Piece(records, found.order)
    return Piece(records, b"")


def carried_names(view: View, series: str, start_us: int, end_us: int) -> list[str]:
    """The names that the records of a range carry, sorted."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    names: set[str] = set()
    for series_id in series_ids(view, [series]).values() if start_us <= end_us else ():
        for hour in walk_hours(view, series_id, start_us, end_us):
            if hour.tally is not None and (hour.is_within(start_us, end_us) or names.issuperset(hour.tally.names)):
                names.update(hour.tally.names)
            else:
                for found in newest_first(view, {"": series_id}, *hour.cut(start_us, end_us)):
                    names |= parse_points(found.body).keys()
    return sorted(names)


def has_record_before(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has a record earlier than ``time_us``."""
    keys = ascending_keys(view, record_key(series_id, 0), record_key(series_id, time_us))
    return any(True for _ in keys)


def has_record_from(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has a record at ``time_us`` or later."""
    return any(True for _ in blocks.up(view, series_id, time_us, LATEST_US))
