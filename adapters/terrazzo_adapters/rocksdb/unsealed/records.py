"""Columns of a series' records that are not sealed, and how many carry some names.

Records that came lately are in memory (``recent``); the others are read from RocksDB's entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.bodies import BETWEEN, Bodies, TimedBodies
from terrazzo_adapters.columns.column import PointColumn, joined
from terrazzo_adapters.columns.decoded import decode_columns, which_carry
from terrazzo_adapters.keyvalue.walk import View, ascending
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.hours import Hour
from terrazzo_adapters.rocksdb.keys import HOUR_US, LAST_ARRIVAL, parse_number
from terrazzo_adapters.rocksdb.unsealed import recent

_TOGETHER, _BYTES = 8_192, 4 << 20  # records that are decoded at once
_ORDER_BYTES = 16


def columns(
    view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int, keys: Sequence[str]
) -> dict[str, PointColumn]:
    """The columns of ``keys`` from the records of some hours in a row that lie in a range, both ends inclusive."""
    found: dict[str, list[PointColumn]] = {key: [] for key in keys}
    for part in records(view, series_id, hours, start_us, end_us):
        for key, column in decode_columns(part.times_us, part.bodies, keys).items():
            found[key].append(column)
    return {key: joined(each) for key, each in found.items() if each}


def counts_carrying(
    view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int, keys: Set[str]
) -> list[int]:
    """How many records of each of some hours in a row lie in a range and carry one of the names."""
    wanted = sorted(keys)
    cuts = np.array([hour.cut(start_us, end_us) for hour in hours], np.int64)
    counts = np.zeros(len(hours), np.int64)
    for times_us, bodies in records(view, series_id, hours, start_us, end_us):
        before = np.concatenate((np.zeros(1, np.int64), which_carry(bodies, wanted).cumsum()))
        counts += before[times_us.searchsorted(cuts[:, 1], "right")]
        counts -= before[times_us.searchsorted(cuts[:, 0], "left")]
    return [int(count) for count in counts]


def records(view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int) -> Iterator[TimedBodies]:
    """The records of some hours in a row that lie in a range, both ends inclusive, in pieces, in order."""
    held = _held(view, series_id, hours)
    if held is None:
        yield from _stored(view, series_id, hours, start_us, end_us)
        return
    firsts_us = np.array([hour.number for hour in hours], np.int64) * HOUR_US
    there = held.times_us.searchsorted(firsts_us + HOUR_US) - held.times_us.searchsorted(firsts_us)
    is_whole = there == np.array([hour.count for hour in hours], np.int64)
    for is_held, each in groupby(zip(is_whole.tolist(), hours, strict=True), itemgetter(0)):
        some = [hour for _, hour in each]
        if is_held:
            yield held.between(some[0].cut(start_us, end_us)[0], some[-1].cut(start_us, end_us)[1])
        else:
            yield from _stored(view, series_id, some, start_us, end_us)


def _held(view: View, series_id: int, hours: Sequence[Hour]) -> TimedBodies | None:
    """What is in memory of some hours in a row, in order, as of a snapshot; None: nothing."""
    reading = recent.reading()
    every = reading.runs(series_id) if reading is not None and hours else ()
    if not every:
        return None
    start_us, end_us = hours[0].number * HOUR_US, (hours[-1].number + 1) * HOUR_US - 1
    last = max((parse_number(value) for _, value in ascending(view, LAST_ARRIVAL, LAST_ARRIVAL + b"\0")), default=0)
    runs = [run for run in every if run.arrival <= last and run.is_between(start_us, end_us)]
    if not runs:
        return None
    times_us = np.frombuffer(b"".join([run.times_us for run in runs]), np.int64)
    sizes = np.frombuffer(b"".join([run.sizes for run in runs]), np.uint32).astype(np.int64)
    return TimedBodies(times_us, Bodies.of_joined([run.bodies for run in runs], sizes)).in_order()


def _stored(view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int) -> Iterator[TimedBodies]:
    """The records of hours that nothing lies between, in pieces; none if there are no hours."""
    if not hours:
        return
    first_us, last_us = hours[0].cut(start_us, end_us)[0], hours[-1].cut(start_us, end_us)[1]
    held: list[_Joined] = []
    for rows in blocks.rows(view, series_id, first_us, last_us):
        held.append(_Joined.of(rows))
        if sum(len(each.times_us) for each in held) >= _TOGETHER or sum(len(each.bodies) for each in held) >= _BYTES:
            yield _one(held)
            held = []
    if held:
        yield _one(held)


class _Joined(NamedTuple):
    """Rows whose bodies are one piece of memory: as many small ones cost more than to read them."""

    times_us: NDArray[np.int64]
    sizes: NDArray[np.int64]
    bodies: bytes

    @classmethod
    def of(cls, rows: blocks.Rows) -> _Joined:
        count = len(rows.bodies)
        every = np.ndarray(count, ">i8", rows.orders, offset=rows.stride - _ORDER_BYTES, strides=(rows.stride,))
        sizes = np.fromiter(map(len, rows.bodies), np.int64, count)
        return cls(every.astype(np.int64), sizes, BETWEEN.join(rows.bodies))


def _one(parts: Sequence[_Joined]) -> TimedBodies:
    times_us, sizes, bodies = zip(*parts, strict=True)
    return TimedBodies(np.concatenate(times_us), Bodies.of_joined(bodies, np.concatenate(sizes)))
