"""Series of values to others: fill, and what follows from one value and those before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.syntax import Fill
from terrazzo.influxql.vectors import NONE, NUMBER, Places, Times, Vector, constant, nothing, of_numbers


class Stream(NamedTuple):
    """Values with their times, in the order in which they are answered.

    ``rows``: of points that were chosen, the rows that they come from.
    """

    times: Times
    vector: Vector
    rows: Places | None = None

    def take(self, places: Places | NDArray[np.bool_] | slice) -> Stream:
        """Some of the values."""
        return Stream(self.times[places], self.vector.take(places), None if self.rows is None else self.rows[places])


def filled(stream: Stream, places: Places, starts: Times, fill: Fill, *, is_count: bool) -> Stream:
    """A value for each window, of which some have none: ``places`` are those that have one.

    Args:
        starts: of all windows, in the order in which they are answered.
        is_count: windows without points have 0, not null.
    """
    number = float(np.trunc(fill.number)) if is_count else fill.number
    empty = number if fill.kind == "number" else 0.0 if is_count and fill.kind == "null" else None
    found = nothing(len(starts)) if empty is None else constant(empty, len(starts))
    kinds, numbers = found.kinds.copy(), found.numbers.copy()
    kinds[places], numbers[places] = stream.vector.kinds, stream.vector.numbers
    vector = Vector(kinds, numbers, stream.vector.texts)
    if fill.kind == "previous":
        vector = _previous(vector)
    elif fill.kind == "linear":
        vector = _linear(vector, is_whole=is_count)
    return Stream(starts, vector)


def _previous(vector: Vector) -> Vector:
    there = vector.is_there
    last = np.maximum.accumulate(np.where(there, np.arange(len(there)), -1))
    found = vector.take(np.maximum(last, 0))
    return Vector(np.where(last < 0, NONE, found.kinds).astype(np.uint8), found.numbers, vector.texts)


def _linear(vector: Vector, *, is_whole: bool) -> Vector:
    numeric = np.flatnonzero(vector.is_numeric)
    gaps = np.flatnonzero(~vector.is_there)
    if not len(numeric) or not len(gaps):
        return vector
    inside = gaps[(gaps > numeric[0]) & (gaps < numeric[-1])]
    kinds, numbers = vector.kinds.copy(), vector.numbers.copy()
    between = np.interp(inside, numeric, vector.numbers[numeric])
    numbers[inside] = np.trunc(between) if is_whole else between
    kinds[inside] = NUMBER
    return Vector(kinds, numbers, vector.texts)


# What follows from one value and those before it; all values are numbers


def derivative(stream: Stream, unit_ns: int) -> Stream:
    """The change by unit of time; of several values of one time the first counts."""
    stream = stream.take(np.concatenate(([True], stream.times[1:] != stream.times[:-1])))
    elapsed = np.abs(np.diff(stream.times)) / unit_ns
    return Stream(stream.times[1:], of_numbers(np.diff(stream.vector.numbers) / elapsed))


def difference(stream: Stream) -> Stream:
    """The change from one value to the next."""
    return Stream(stream.times[1:], of_numbers(np.diff(stream.vector.numbers)))


def elapsed(stream: Stream, unit_ns: int) -> Stream:
    """The time between one value and the next, in whole units."""
    return Stream(stream.times[1:], of_numbers(np.trunc(np.diff(stream.times) / unit_ns)))


def cumulative_sum(stream: Stream) -> Stream:
    """The sum so far."""
    return Stream(stream.times, of_numbers(np.cumsum(stream.vector.numbers)))


def moving_average(stream: Stream, count: int) -> Stream:
    """The mean of so many values up to each."""
    if len(stream.times) < count:
        return stream.take(slice(0, 0))
    windows = np.lib.stride_tricks.sliding_window_view(stream.vector.numbers, count)
    return Stream(stream.times[count - 1 :], of_numbers(windows.mean(axis=1)))


def not_negative(stream: Stream) -> Stream:
    """The values from zero up."""
    return stream.take(stream.vector.numbers >= 0)


TRANSFORMS: Mapping[str, Callable[[Stream, int], Stream]] = {
    "cumulative_sum": lambda stream, _: cumulative_sum(stream),
    "derivative": derivative,
    "difference": lambda stream, _: difference(stream),
    "elapsed": elapsed,
    "moving_average": moving_average,
    "non_negative_derivative": lambda stream, unit: not_negative(derivative(stream, unit)),
    "non_negative_difference": lambda stream, _: not_negative(difference(stream)),
}
"""By name; the number is that of nanoseconds, or of values."""

WITH_UNIT = frozenset(("derivative", "elapsed", "non_negative_derivative"))
"""Which take a unit of time."""
