"""One name's numbers by UTC hour, each hour in few figures: what long questions are answered from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.column import PointColumn

HOUR_US = 3_600_000_000

FIRST, LOWEST, HIGHEST, LAST = range(4)
"""The rows of ``Rollup.values`` and ``Rollup.times_us``."""


class Rollup(NamedTuple):
    """The hours that have points, ascending. All points are numbers, or all are booleans (0 and 1); none share a time.

    ``hours``: since 1970; ``values`` and ``times_us`` (UTC microseconds): four rows, of each hour the first, lowest,
    highest and last point, of equal ones the earliest.
    """

    kind: int
    hours: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    values: NDArray[np.float64]
    times_us: NDArray[np.int64]

    def starts_us(self) -> NDArray[np.int64]:
        """When each hour begins, in UTC microseconds."""
        return self.hours * HOUR_US

    def outline(self) -> PointColumn:
        """The first, lowest, highest and last points of all hours, in order, each once."""
        times_us, places = np.unique(self.times_us, return_index=True)
        return self._points(times_us, self.values.ravel()[places])

    def lasts(self) -> PointColumn:
        """The last point of each hour."""
        return self._points(self.times_us[LAST], self.values[LAST])

    def _points(self, times_us: NDArray[np.int64], numbers: NDArray[np.float64]) -> PointColumn:
        return PointColumn(times_us, np.full(len(times_us), self.kind, np.uint8), numbers, [])


def cuts_hours(first_us: int, last_us: int, *, bucket_us: int, origin_us: int) -> bool:
    """Whether a bucket may begin within an hour of a range, both ends inclusive. Times and lengths: microseconds."""
    if not bucket_us % HOUR_US and not origin_us % HOUR_US:
        return False
    start_us, end_us = first_us // HOUR_US * HOUR_US, (last_us // HOUR_US + 1) * HOUR_US - 1
    return (start_us - origin_us) // bucket_us != (end_us - origin_us) // bucket_us
