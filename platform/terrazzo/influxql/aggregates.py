"""Points in windows to one value each, or to a few of the points.

Points come in the order of time; ``starts`` is where each window's begin. Functions of numbers take true and false as 1
and 0, and leave texts out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.vectors import NONE, TEXT, Places, Times, Vector, of_numbers, run_starts

Floats = NDArray[np.float64]


class Windowed(NamedTuple):
    """The points of one field: times, values, and the number of the window of each, which ascend."""

    times: Times
    vector: Vector
    ids: NDArray[np.int64]

    @property
    def starts(self) -> Places:
        """The first point of each window."""
        return run_starts(self.ids)

    def take(self, places: Places | NDArray[np.bool_]) -> Windowed:
        """Some of the points."""
        return Windowed(self.times[places], self.vector.take(places), self.ids[places])

    def numeric(self) -> Windowed:
        """The points that are numbers, or true or false."""
        numeric = self.vector.is_numeric
        return self if numeric.all() else self.take(numeric)


Reducer = Callable[[Windowed, Places], Vector]
"""One value of each window."""

Selector = Callable[[Windowed, Places, Sequence[float]], Places]
"""Some of the points."""


def _count(points: Windowed, starts: Places) -> Vector:
    return of_numbers(np.diff(np.append(starts, len(points.ids))).astype(np.float64))


def _sum(points: Windowed, starts: Places) -> Vector:
    return of_numbers(np.add.reduceat(points.vector.numbers, starts))


def _mean(points: Windowed, starts: Places) -> Vector:
    return of_numbers(np.add.reduceat(points.vector.numbers, starts) / _lengths(points, starts))


def _spread(points: Windowed, starts: Places) -> Vector:
    numbers = points.vector.numbers
    return of_numbers(np.maximum.reduceat(numbers, starts) - np.minimum.reduceat(numbers, starts))


def _stddev(points: Windowed, starts: Places) -> Vector:
    """Of a sample; of one point there is none."""
    numbers, lengths = points.vector.numbers, _lengths(points, starts)
    means = np.repeat(np.add.reduceat(numbers, starts) / lengths, lengths)
    squares = np.add.reduceat((numbers - means) ** 2, starts)
    return of_numbers(np.sqrt(squares / np.maximum(lengths - 1, 1)), lengths > 1)


def _median(points: Windowed, starts: Places) -> Vector:
    numbers, lengths = _by_size(points), _lengths(points, starts)
    low, high = starts + (lengths - 1) // 2, starts + lengths // 2
    return of_numbers((numbers[low] + numbers[high]) / 2)


def _mode(points: Windowed, starts: Places) -> Vector:
    """The most frequent value; of several the least."""
    chosen = []
    for start, end in _ranges(points, starts):
        kinds, numbers = points.vector.kinds[start:end], _codes(points.vector.take(slice(start, end)))
        _, first, counts = np.unique(np.stack((kinds, numbers)), axis=1, return_index=True, return_counts=True)
        chosen.append(start + int(first[np.argmax(counts)]))
    return points.vector.take(np.array(chosen, np.intp))


def _codes(vector: Vector) -> Floats:
    """Numbers in the order of the values, equal for equal texts."""
    is_text = vector.kinds == TEXT
    if not is_text.any():
        return vector.numbers
    numbers = {text: place for place, text in enumerate(sorted(set(vector.texts)))}
    codes = np.array([numbers[text] for text in vector.texts], np.float64)
    return np.where(is_text, codes[np.where(is_text, vector.numbers, 0).astype(np.intp)], vector.numbers)


def _lengths(points: Windowed, starts: Places) -> NDArray[np.intp]:
    return np.diff(np.append(starts, len(points.ids)))


def _ranges(points: Windowed, starts: Places) -> Sequence[tuple[int, int]]:
    edges = [*starts.tolist(), len(points.ids)]
    return list(pairwise(edges))


def _by_size(points: Windowed) -> Floats:
    return points.vector.numbers[np.lexsort((points.vector.numbers, points.ids))]


NUMERIC: Mapping[str, Reducer] = {
    "mean": _mean,
    "median": _median,
    "spread": _spread,
    "stddev": _stddev,
    "sum": _sum,
}
"""Functions of numbers to one value."""

REDUCERS: Mapping[str, Reducer] = {**NUMERIC, "count": _count, "mode": _mode}
"""Functions to one value."""


def _first(points: Windowed, starts: Places, _args: Sequence[float]) -> Places:
    return starts


def _last(points: Windowed, starts: Places, _args: Sequence[float]) -> Places:
    return np.append(starts[1:], len(points.ids)) - 1


def _min(points: Windowed, starts: Places, _args: Sequence[float]) -> Places:
    return first_of_equals(points.vector.numbers, starts, np.minimum)


def _max(points: Windowed, starts: Places, _args: Sequence[float]) -> Places:
    return first_of_equals(points.vector.numbers, starts, np.maximum)


def first_of_equals(numbers: Floats, starts: Places, extreme: np.ufunc) -> Places:
    """Where the lowest (``np.minimum``) or highest (``np.maximum``) of each run of numbers stands first."""
    runs = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(numbers))))
    places = np.flatnonzero(numbers == extreme.reduceat(numbers, starts)[runs])
    return places[run_starts(runs[places])]


def _percentile(points: Windowed, starts: Places, args: Sequence[float]) -> Places:
    """The point at the nearest rank; windows that have none at that rank have no point."""
    order = np.lexsort((np.arange(len(points.ids)), points.vector.numbers, points.ids))
    lengths = _lengths(points, starts)
    ranks = np.floor(lengths * args[0] / 100.0 + 0.5).astype(np.int64) - 1
    there = (ranks >= 0) & (ranks < lengths)
    return np.asarray(order[(starts + ranks)[there]])


def _distinct(points: Windowed, _starts: Places, _args: Sequence[float]) -> Places:
    """The first point of each value."""
    keys = np.stack((points.ids.astype(np.float64), points.vector.kinds, _codes(points.vector)))
    _, first = np.unique(keys, axis=1, return_index=True)
    return np.sort(first)


def _top(points: Windowed, starts: Places, args: Sequence[float]) -> Places:
    return _ranked(points, starts, -points.vector.numbers, int(args[0]))


def _bottom(points: Windowed, starts: Places, args: Sequence[float]) -> Places:
    return _ranked(points, starts, points.vector.numbers, int(args[0]))


def _ranked(points: Windowed, starts: Places, sizes: Floats, count: int) -> Places:
    order = np.lexsort((np.arange(len(sizes)), sizes, points.ids))
    ranks = np.arange(len(sizes)) - np.repeat(starts, _lengths(points, starts))
    return np.sort(order[ranks < count])


SELECTORS: Mapping[str, Selector] = {
    "first": _first,
    "last": _last,
    "max": _max,
    "min": _min,
    "percentile": _percentile,
}
"""Functions that choose a point of each window."""

CHOOSERS: Mapping[str, Selector] = {"bottom": _bottom, "distinct": _distinct, "top": _top}
"""Functions that choose any number of points."""

OF_ALL_KINDS = frozenset(("count", "distinct", "first", "last", "mode", "elapsed"))
"""Functions that take texts, too."""


def points_of(name: str, times: Times, vector: Vector, ids: NDArray[np.int64]) -> Windowed:
    """The points that a function takes, of the values of a field."""
    wanted = vector.kinds != NONE if name in OF_ALL_KINDS else vector.is_numeric
    points = Windowed(times, vector, ids)
    return points if wanted.all() else points.take(wanted)


def integral(points: Windowed, unit_ns: int, edges: Callable[[NDArray[np.int64]], Times] | None) -> Vector:
    """The area under the line through the points, by window.

    Args:
        edges: when windows begin; a piece of the line that crosses into the next window is cut there.
    """
    points = points.take(np.concatenate((points.times[1:] != points.times[:-1], [True])))  # the last of one time counts
    zero_ns = int(points.times[0])
    seconds, numbers = (points.times - zero_ns) / unit_ns, points.vector.numbers
    areas: dict[int, float] = {int(each): 0.0 for each in np.unique(points.ids)}
    start_of = _starts(edges, zero_ns, unit_ns)
    for place in range(len(seconds) - 1):
        pair = slice(place, place + 2)
        _add_area(areas, points.ids[pair], seconds[pair], numbers[pair], start_of)
    return of_numbers(np.array(list(areas.values()), np.float64))


def _starts(edges: Callable[[NDArray[np.int64]], Times] | None, zero_ns: int, unit_ns: int) -> Callable[[int], float]:
    def start(window: int) -> float:
        assert edges is not None
        return (int(edges(np.array([window], np.int64))[0]) - zero_ns) / unit_ns

    return start


def _add_area(
    areas: dict[int, float], ids: NDArray[np.int64], seconds: Floats, numbers: Floats, start_of: Callable[[int], float]
) -> None:
    (x0, x1), (y0, y1), (window, last) = seconds.tolist(), numbers.tolist(), ids.tolist()
    if window == last:
        areas[window] += (y0 + y1) / 2 * (x1 - x0)
        return
    edge = start_of(window + 1)
    at_edge = y0 + (y1 - y0) * (edge - x0) / (x1 - x0)
    areas[window] += (y0 + at_edge) / 2 * (edge - x0)
    edge = start_of(last)
    at_edge = y0 + (y1 - y0) * (edge - x0) / (x1 - x0)
    areas[last] += (at_edge + y1) / 2 * (x1 - edge)


def check_arguments(name: str, args: Sequence[object]) -> list[float]:
    """The numbers that a function is given beside its field.

    Raises:
        QueryError: they are too many, too few, or not numbers as it needs them.
    """
    wanted = 1 if name in ("bottom", "percentile", "top") else 0
    numbers = [arg for arg in args if isinstance(arg, int | float) and not isinstance(arg, bool)]
    if len(args) != wanted or len(numbers) != wanted:
        raise QueryError(f"invalid number of arguments for {name}, expected {wanted + 1}, got {len(args) + 1}")
    if name in ("bottom", "top") and not (isinstance(numbers[0], int) and 1 <= numbers[0] <= 1_000_000):
        raise QueryError(f"limit ({numbers[0]}) in {name} function must be at least 1")
    return [float(number) for number in numbers]
