"""How much of the disk each series takes: bytes of its segments, and about as many as its other records have.

Segments say their sizes in their short entries. Of records that are in none there are counters by hour, and some of
them are looked at: all would have to be read for their bytes. What files save by packing these is known of all series
together (RocksDB's properties of its files), and taken off alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from rocksdict import RdictIter, Snapshot

from terrazzo_adapters.rocksdb.blocks import records_in
from terrazzo_adapters.rocksdb.extents import extents_up
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LATEST_US,
    column_key,
    count_hour,
    count_key,
    parse_number,
    record_key,
    tally_key,
)

FIRST = b"n"
"""Where a walk over all series begins."""

FILES = "rocksdb.aggregated-table-properties"
"""The property that ``Packing.of`` reads."""

_SEGMENT_BYTES = 64  # its short entry, and the keys of its parts
_PIECE_S = 0.01
_TOGETHER = 4  # entries that are looked at, one after the other
_PLACES = 16  # of an hour, at most
_PER_PLACE = 64  # records
_HOURS_A_COLUMN = 8  # of a mosaic series, of which one's columns are looked at


class SeriesSize(NamedTuple):
    """Of a series: bytes in segments as they are on the disk, and of other records as they would be unpacked."""

    name: str
    sealed: int
    rows: int


class Piece(NamedTuple):
    """Some series, and where to go on; None: these were the last."""

    sizes: list[SeriesSize]
    rest: bytes | None


class Packing(NamedTuple):
    """Bytes of all keys and values in files, and of the files themselves."""

    raw: int
    packed: int

    @classmethod
    def of(cls, told: str | None) -> Packing:
        """As RocksDB says in one text; nothing where it says none."""
        figures = dict(each.partition("=")[::2] for each in (told or "").split("; "))

        def figure(name: str) -> int:
            return next((int(value) for key, value in figures.items() if key.startswith(name) and value.isdigit()), 0)

        raw = figure("raw key size") + figure("raw value size")
        return cls(raw, figure("data block size") + figure("index block size"))

    def of_rows(self, sealed: int, rows: int) -> float:
        """How much of a byte of records that are in no segment is on the disk, by what all series have of both.

        What is not in files yet is not packed; what was deleted, and is still in files, makes it no more than one.
        """
        raw, packed = max(0, self.raw - sealed), max(0, self.packed - sealed)
        in_files = min(rows, raw)
        if not rows or not in_files:
            return 1.0
        return (in_files * min(1.0, packed / raw) + rows - in_files) / rows


def some_sizes(view: Snapshot, start: bytes) -> Piece:
    """The sizes of the next series, from ``start`` on: as many as take some milliseconds."""
    until_s = time.perf_counter() + _PIECE_S
    names, records, sizes = view.iter(), view.iter(), list[SeriesSize]()
    names.seek(start)
    while names.valid() and (key := names.key()) < b"o":
        if sizes and time.perf_counter() > until_s:
            return Piece(sizes, key)
        sizes.append(_size_of(view, records, key[1:].decode(), parse_number(names.value())))
        names.next()
    names.status()
    return Piece(sizes, None)


def _size_of(view: Snapshot, cursor: RdictIter, name: str, series_id: int) -> SeriesSize:
    sealed = sum(each.size + _SEGMENT_BYTES for each in extents_up(view, series_id, 0, LATEST_US))
    hours = list(_hours(cursor, series_id))
    rows = sum(_rows_of_hour(cursor, series_id, hour, count) for hour, count in hours)
    if name.startswith("m/"):
        looked_at = [hour for hour, _ in hours[::_HOURS_A_COLUMN]]
        columns = sum(_columns_of_hour(cursor, series_id, hour) for hour in looked_at)
        rows += columns * len(hours) // max(1, len(looked_at))
    return SeriesSize(name, sealed, rows)


def _hours(cursor: RdictIter, series_id: int) -> Iterator[tuple[int, int]]:
    """The hours that have records which are in no segment, and how many."""
    for key, value in _walk(cursor, count_key(series_id, 0), count_key(series_id + 1, 0)):
        yield count_hour(key), parse_number(value)


def _rows_of_hour(cursor: RdictIter, series_id: int, hour: int, count: int) -> int:
    """About how many bytes the records of an hour have with their keys: by some at several places of it."""
    places, size, records = min(_PLACES, 1 + count // _PER_PLACE), 0, 0
    end = record_key(series_id, (hour + 1) * HOUR_US)
    for place in range(places):
        start = record_key(series_id, hour * HOUR_US + HOUR_US * place // places)
        for number, (key, value) in enumerate(_walk(cursor, start, end), 1):
            size += len(key) + len(value)
            records += records_in(key, value)
            if number == _TOGETHER:
                break
    return size * count // records if records else 0


def _columns_of_hour(cursor: RdictIter, series_id: int, hour: int) -> int:
    return sum(
        len(key) + len(value)
        for bound in (tally_key, column_key)
        for key, value in _walk(cursor, bound(series_id, hour), bound(series_id, hour + 1))
    )


def _walk(cursor: RdictIter, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """As ``ascending`` with an iterator that is there: to make one costs more than some entries."""
    cursor.seek(start)
    while cursor.valid() and (key := cursor.key()) < end:
        yield key, cursor.value()
        cursor.next()
    cursor.status()
