"""``ThinCurve``: of the points of a curve those that a chart must show, minima and maxima exactly. Pure."""

from __future__ import annotations

from typing import NamedTuple


class _Point(NamedTuple):
    number: int
    time_us: int
    value: float


class ThinCurve:
    """Takes points oldest first; keeps the first, lowest, highest and last of each bucket, of equal ones the earliest.

    Args:
        bucket_us: how long a bucket is.
        origin_us: where one begins.
    """

    __slots__ = ("_bucket", "_bucket_us", "_kept", "_marks", "_number", "_origin_us")

    def __init__(self, *, bucket_us: int, origin_us: int) -> None:
        self._bucket_us = bucket_us
        self._origin_us = origin_us
        self._kept: list[_Point] = []
        self._bucket: int | None = None
        self._marks: list[_Point] = []  # first, lowest, highest, last
        self._number = 0

    def add(self, time_us: int, value: float) -> None:
        """The next point. ``time_us``: UTC microseconds."""
        self._number += 1
        point, bucket = _Point(self._number, time_us, value), (time_us - self._origin_us) // self._bucket_us
        if bucket != self._bucket:
            self._close()
            self._bucket, self._marks = bucket, [point] * 4
            return
        _, lowest, highest, _ = self._marks
        if value < lowest.value:
            self._marks[1] = point
        if value > highest.value:
            self._marks[2] = point
        self._marks[3] = point

    def finish(self) -> tuple[list[int], list[float]]:
        """Times and values of what is kept, oldest first."""
        self._close()
        return [each.time_us for each in self._kept], [each.value for each in self._kept]

    def _close(self) -> None:
        self._kept += sorted(set(self._marks))
        self._marks = []
