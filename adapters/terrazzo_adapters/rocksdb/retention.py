"""The commit that deletes all records earlier than a time. Of segments only the one that is cut is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rocksdict import WriteBatch

from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.batch import put_count
from terrazzo_adapters.rocksdb.blocks import KeyValue
from terrazzo_adapters.rocksdb.extents import Extent, extents_up, open_segment
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    column_key,
    count_key,
    mark_key,
    name_key,
    record_key,
    tally_key,
)
from terrazzo_adapters.rocksdb.reads import has_record_before, has_record_from
from terrazzo_adapters.rocksdb.sealed import guarded
from terrazzo_adapters.rocksdb.sealing import delete_segments


class Expired(NamedTuple):
    """A series that loses records. ``remaining``: how many stay in the hour of the cut; None if none stays at all.

    ``kept``: the entries that keep what remains of blocks and of a segment which the cut goes through.
    """

    name: str
    series_id: int
    remaining: int | None
    kept: Sequence[KeyValue]
    has_segments: bool


def find_expired(view: View, ids: Mapping[str, int], time_us: int) -> list[Expired]:
    """The series that have records earlier than ``time_us`` (UTC microseconds)."""
    return list(_each_expired(view, ids, time_us))


def _each_expired(view: View, ids: Mapping[str, int], time_us: int) -> Iterator[Expired]:
    end_us = (time_us // HOUR_US + 1) * HOUR_US - 1
    for name, series_id in ids.items():
        if has_record_before(view, series_id, time_us):
            remains = has_record_from(view, series_id, time_us)
            remaining = blocks.count(view, series_id, time_us, end_us) if remains else None
            extents = list(extents_up(view, series_id, 0, time_us - 1))
            cut = [_cut(view, extent, time_us) for extent in extents if extent.last_us >= time_us]
            kept = [*blocks.behind(view, series_id, time_us), *((extent.key, extent.value()) for extent in cut)]
            yield Expired(name, series_id, remaining, kept, has_segments=bool(extents))


def _cut(view: View, extent: Extent, time_us: int) -> Extent:
    """The segment without its records earlier than a time; as it is where its times can't be read."""
    with guarded(extent):
        times_us = open_segment(view, extent).times_us
        left_out = int(times_us.searchsorted(time_us, "left"))
        total = extent.total - (left_out - extent.left_out)
        return extent._replace(first_us=int(times_us[left_out]), total=total, left_out=left_out)
    return extent


def fill_drop(batch: WriteBatch, expired: Sequence[Expired], time_us: int) -> None:
    """Adds the deletions to RocksDB's batch."""
    hour = time_us // HOUR_US
    for name, series_id, remaining, kept, has_segments in expired:
        batch.delete_range(record_key(series_id, 0), record_key(series_id, time_us))
        if has_segments:
            delete_segments(batch, series_id, 0, time_us - 1)
        for entry in kept:
            batch.put(*entry)
        batch.delete_range(count_key(series_id, 0), count_key(series_id, hour))
        put_count(batch, series_id << 32 | hour, remaining or 0)
        _fill_drop_of_columns(batch, series_id, hour, marked=bool(remaining) and name.startswith("m/"))
        if remaining is None:
            batch.delete(name_key(name))


def _fill_drop_of_columns(batch: WriteBatch, series_id: int, hour: int, *, marked: bool) -> None:
    """Deletes the columns up to and including the hour of the cut, and marks that hour if records of it remain."""
    for key in (tally_key, column_key, mark_key):
        batch.delete_range(key(series_id, 0), key(series_id, hour + 1))
    if marked:
        batch.put(mark_key(series_id, hour), b"")
