"""One name's numbers by stretches of time, each in few figures: what long questions are answered from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Figures
from terrazzo_adapters.columns.column import PointColumn

HOUR_US = 3_600_000_000
PARTS_US = (HOUR_US // 2, HOUR_US // 4)
"""Parts of hours, longest first: the clocks of zones differ by whole halves and quarters of an hour."""

FIRST, LOWEST, HIGHEST, LAST = range(4)
"""The rows of ``Figures.values`` and ``Figures.times_us``."""


def outline(figures: Figures) -> PointColumn:
    """The first, lowest, highest and last points of all stretches, in order, each once."""
    times_us, places = np.unique(figures.times_us, return_index=True)
    return _points(figures.kind, times_us, figures.values.ravel()[places])


def lasts(figures: Figures) -> PointColumn:
    """The last point of each stretch."""
    return _points(figures.kind, figures.times_us[LAST], figures.values[LAST])


def _points(kind: int, times_us: NDArray[np.int64], numbers: NDArray[np.float64]) -> PointColumn:
    return PointColumn(times_us, np.full(len(times_us), kind, np.uint8), numbers, [])


def chosen(figures: Figures, which: NDArray[np.bool_]) -> Figures:
    """Some of the stretches."""
    kind, starts_us, counts, sums, values, times_us = figures
    return Figures(kind, starts_us[which], counts[which], sums[which], values[:, which], times_us[:, which])


def with_points(figures: Figures, column: PointColumn) -> Figures:
    """The stretches, and points between them as stretches of their own; all of one kind, no two of one time."""
    times_us, numbers = column.times_us, column.numbers
    starts_us = np.concatenate((figures.starts_us, times_us))
    order = np.argsort(starts_us, kind="stable")
    return Figures(
        figures.kind,
        starts_us[order],
        np.concatenate((figures.counts, np.ones(len(times_us), np.int64)))[order],
        np.concatenate((figures.sums, numbers))[order],
        np.concatenate((figures.values, np.broadcast_to(numbers, (4, len(numbers)))), axis=1)[:, order],
        np.concatenate((figures.times_us, np.broadcast_to(times_us, (4, len(times_us)))), axis=1)[:, order],
    )


def outside(column: PointColumn, starts_us: NDArray[np.int64], length_us: int) -> PointColumn:
    """The points that lie in none of these stretches, which ascend and have a length in microseconds."""
    places = np.searchsorted(starts_us, column.times_us, "right") - 1
    return column.where((places < 0) | (column.times_us - starts_us[places] >= length_us))


def in_one_bucket(starts_us: NDArray[np.int64], length_us: int, *, bucket_us: int, origin_us: int) -> NDArray[np.bool_]:
    """Which stretches lie in one bucket each. Times and lengths: microseconds."""
    first = (starts_us - origin_us) // bucket_us
    return np.asarray(first == (starts_us + (length_us - 1) - origin_us) // bucket_us)
