"""Columns of a series' records that are not sealed, and how many carry some names.

Records that came lately are in memory (``recent``); the others are read from RocksDB's entries.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.decoded import decode_columns, which_carry
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.blocks import Arrivals
from terrazzo_adapters.rocksdb.hours import Hour
from terrazzo_adapters.rocksdb.unsealed import recent

_TIME, _BODY = itemgetter(0), itemgetter(2)


class TimedBodies(NamedTuple):
    """Records in order: times in UTC microseconds, and bodies."""

    times_us: NDArray[np.int64]
    bodies: Sequence[bytes]

    def between(self, start_us: int, end_us: int) -> TimedBodies:
        """Those of a range, both ends inclusive."""
        times_us = self.times_us
        if not len(times_us) or (start_us <= times_us[0] and times_us[-1] <= end_us):
            return self
        part = slice(int(times_us.searchsorted(start_us, "left")), int(times_us.searchsorted(end_us, "right")))
        return TimedBodies(times_us[part], self.bodies[part])


def columns(
    view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int, keys: Sequence[str]
) -> dict[str, PointColumn]:
    """The columns of ``keys`` from the records of some hours in a row that lie in a range, both ends inclusive."""
    return decode_columns(*records(view, series_id, hours, start_us, end_us), keys)


def counts_carrying(
    view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int, keys: Set[str]
) -> list[int]:
    """How many records of each of some hours in a row lie in a range and carry one of the names."""
    times_us, bodies = records(view, series_id, hours, start_us, end_us)
    before = np.concatenate(([0], which_carry(bodies, sorted(keys)).cumsum()))
    cuts = np.array([hour.cut(start_us, end_us) for hour in hours], np.int64)
    found = before[times_us.searchsorted(cuts[:, 1], "right")] - before[times_us.searchsorted(cuts[:, 0], "left")]
    return [int(count) for count in found]


def records(view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int) -> TimedBodies:
    """The records of some hours in a row that lie in a range, both ends inclusive."""
    parts: list[TimedBodies] = []
    held: list[Arrivals] = []  # of hours that are in memory
    stored: list[Hour] = []
    for hour in hours:
        runs = recent.found(series_id << 32 | hour.number, hour.count)
        if runs is None:
            parts += _in_order(held)
            held = []
            stored.append(hour)
        else:
            parts += _stored(view, series_id, stored, start_us, end_us)
            stored = []
            held += runs
    parts += [*_in_order(held), *_stored(view, series_id, stored, start_us, end_us)]
    parts = [part.between(start_us, end_us) for part in parts]
    if len(parts) == 1:
        return parts[0]
    times_us = np.concatenate([np.zeros(0, np.int64), *(part.times_us for part in parts)])
    return TimedBodies(times_us, list(chain.from_iterable(part.bodies for part in parts)))


def _in_order(runs: Sequence[Arrivals]) -> list[TimedBodies]:
    """Runs of hours in order, those of an hour in order of arrival, as one piece; none if there are none."""
    if not runs:
        return []
    every = runs[0] if len(runs) == 1 else list(chain.from_iterable(runs))
    times_us = np.fromiter(map(_TIME, every), np.int64, len(every))
    if (times_us[1:] < times_us[:-1]).any():
        order = np.argsort(times_us, kind="stable")
        every = [every[place] for place in order.tolist()]
        times_us = times_us[order]
    return [TimedBodies(times_us, list(map(_BODY, every)))]


def _stored(view: View, series_id: int, hours: Sequence[Hour], start_us: int, end_us: int) -> list[TimedBodies]:
    """The records of hours that nothing lies between, as one piece; none if there are no hours."""
    if not hours:
        return []
    first_us, last_us = hours[0].cut(start_us, end_us)[0], hours[-1].cut(start_us, end_us)[1]
    rows = blocks.rows(view, series_id, first_us, last_us)
    return [TimedBodies(np.frombuffer(rows.orders, ">u8")[::2].astype(np.int64), rows.bodies)]
