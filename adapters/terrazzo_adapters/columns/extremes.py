"""Reduces points to the few that a chart must show: of each bucket the first, lowest, highest and last (M4).

If a bucket is one pixel wide, a line through them covers the same pixels as a line through all points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import MOST_BUCKETS, Curve, Figures
from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.resample import bucket_ids, check_count, each_once, first_equal, run_starts
from terrazzo_adapters.columns.rollup import in_one_bucket, outline

PointArrays = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Times and values, oldest first."""


class Extremes:
    """Takes the columns of one range piece by piece, oldest first; returns a curve for each name."""

    def __init__(self, keys: Sequence[str], *, bucket_us: int, origin_us: int) -> None:
        self._bucket_us = bucket_us
        self._origin_us = origin_us
        self._parts: dict[str, list[PointArrays]] = {key: [] for key in keys}
        self._held = dict.fromkeys(keys, 0)

    @property
    def longest_us(self) -> int:
        """The longest stretch that may lie in one bucket, in microseconds."""
        return self._bucket_us

    def undivided(self, starts_us: NDArray[np.int64], length_us: int) -> NDArray[np.bool_]:
        """Which stretches of time, of one length in microseconds, lie in one bucket each."""
        return in_one_bucket(starts_us, length_us, bucket_us=self._bucket_us, origin_us=self._origin_us)

    def add(self, columns: Mapping[str, PointColumn | Figures]) -> None:
        """Adds the next piece of the range.

        Raises:
            TooManyBuckets: the pieces so far have too many.
        """
        for key, column in columns.items():
            numeric = outline(column) if isinstance(column, Figures) else column.numeric()
            if len(numeric.times_us):
                self._hold(key, self._choose(numeric.times_us, numeric.numbers))

    def follow(self, later: Extremes) -> None:
        """Adds what another one holds, of the same buckets, whose pieces come after all of this one's.

        Raises:
            TooManyBuckets: both together have too many.
        """
        for key, parts in later._parts.items():
            for points in parts:
                self._hold(key, points)

    def _hold(self, key: str, points: PointArrays) -> None:
        self._parts[key].append(points)
        self._held[key] += len(points[0])
        if self._held[key] > 4 * MOST_BUCKETS:
            self._merge(key)
            check_count(self._held[key] // 4)

    def _merge(self, key: str) -> None:
        times_us, values = (np.concatenate(each) for each in zip(*self._parts[key], strict=True))
        self._parts[key] = [self._choose(times_us, values)]
        self._held[key] = len(self._parts[key][0][0])

    def finish(self) -> dict[str, Curve]:
        """The curves of the names that have points."""
        curves: dict[str, Curve] = {}
        for key, parts in self._parts.items():
            if parts:
                self._merge(key)
                times_us, values = self._parts[key][0]
                curves[key] = Curve(times_us.tolist(), values.tolist())
        return curves

    def _choose(self, times_us: NDArray[np.int64], values: NDArray[np.float64]) -> PointArrays:
        """The first, lowest, highest and last point of each bucket; of equal ones the earliest."""
        ids = bucket_ids(times_us, self._bucket_us, self._origin_us)
        starts = run_starts(ids)
        ends = np.append(starts[1:], len(ids))
        lowest = first_equal(values, np.minimum.reduceat(values, starts), starts, ends)
        highest = first_equal(values, np.maximum.reduceat(values, starts), starts, ends)
        chosen = each_once((starts, lowest, highest, ends - 1))
        return times_us[chosen], values[chosen]
