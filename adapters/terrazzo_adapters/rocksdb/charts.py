"""Columns of hours: built from records, and read for charts.

An hour's columns are read from disk if they are valid; otherwise its records are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rocksdict import RdictIter

from terrazzo_adapters.columns.column import PointColumn, build_columns, encode_column, parse_column, read_columns
from terrazzo_adapters.columns.extremes import Extremes
from terrazzo_adapters.columns.name_tally import make_tally
from terrazzo_adapters.columns.points import ValuesReader, parse_points, values_reader
from terrazzo_adapters.columns.resample import Resampler
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.hours import BuiltHour, Hour, walk_hours
from terrazzo_adapters.rocksdb.keys import HOUR_US, LATEST_US, column_key
from terrazzo_adapters.rocksdb.reads import series_ids

__all__ = ["Extremes", "Resampler", "build_hour", "feed"]


def build_hour(view: View, slot: int) -> BuiltHour:
    """The tally and the columns of one hour of one series, from its records."""
    series_id, hour = divmod(slot, 1 << 32)
    start_us = hour * HOUR_US
    records = [
        (time_us, parse_points(body)) for time_us, body in _timed(view, series_id, start_us, start_us + HOUR_US - 1)
    ]
    tally = make_tally(points for _, points in records)
    columns = build_columns(records, tally.names)
    return BuiltHour(slot, tally, {name: encode_column(column, start_us) for name, column in columns.items()})


def feed(
    target: Resampler | Extremes, view: View, series: str, keys: Sequence[str], *, start_us: int, end_us: int
) -> None:
    """Adds the columns of a range to ``target``, hour by hour, oldest first; both ends are inclusive."""
    for columns in _pieces(view, series, keys, start_us, end_us):
        target.add(columns)


def _pieces(
    view: View, series: str, keys: Sequence[str], start_us: int, end_us: int
) -> Iterator[Mapping[str, PointColumn]]:
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    for series_id in series_ids(view, [series]).values() if start_us <= end_us else ():
        cursor, read = view.iter(), values_reader(tuple(keys)) if series.startswith("m/") else None
        for hour in walk_hours(view, series_id, start_us, end_us):
            if hour.tally is None:
                yield _decoded(view, series_id, keys, read, *hour.cut(start_us, end_us))
            else:
                stored = _stored(cursor, series_id, hour, keys)
                yield {key: column.between(start_us, end_us) for key, column in stored.items()}


def _decoded(
    view: View, series_id: int, keys: Sequence[str], read: ValuesReader | None, start_us: int, end_us: int
) -> dict[str, PointColumn]:
    records = _timed(view, series_id, start_us, end_us)
    if read is not None:
        return read_columns(records, keys, read)
    return build_columns(((time_us, parse_points(body)) for time_us, body in records), keys)


def _timed(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[tuple[int, bytes]]:
    return ((int.from_bytes(order[:8]), body) for order, body in blocks.up(view, series_id, start_us, end_us))


def _stored(cursor: RdictIter, series_id: int, hour: Hour, keys: Sequence[str]) -> dict[str, PointColumn]:
    assert hour.tally is not None
    columns: dict[str, PointColumn] = {}
    for key in keys:
        if key in hour.tally.names:
            place = column_key(series_id, hour.number, key)
            cursor.seek(place)
            if cursor.valid() and cursor.key() == place:  # a name that was always null has no column
                columns[key] = parse_column(cursor.value(), hour.number * HOUR_US)
    return columns
