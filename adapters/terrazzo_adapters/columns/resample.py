"""Reduces points to buckets with one value each.

Columns come piece by piece, oldest first; each piece is reduced to its buckets at once, and a bucket that lies across
two pieces is combined at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import MOST_BUCKETS, Buckets, Figures, Fn, TooManyBuckets, Value
from terrazzo_adapters.columns.column import NUMBER, TEXT, PointColumn, plain_values
from terrazzo_adapters.columns.rollup import HIGHEST, LOWEST, in_one_bucket, lasts

Ids = NDArray[np.int64]
"""The numbers of buckets: 0 begins at the origin."""


def bucket_ids(times_us: NDArray[np.int64], bucket_us: int, origin_us: int) -> Ids:
    """The number of the bucket that each time (UTC microseconds) lies in; bucket 0 begins at the origin."""
    return np.asarray((times_us - origin_us) // bucket_us, np.int64)


def run_starts(ids: Ids) -> NDArray[np.intp]:
    """The index at which each run of equal ids begins."""
    begins = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=begins[1:])
    return begins.nonzero()[0]


def each_once(numbers: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """What is in some arrays, ascending: ``numpy.unique`` takes twice as long for what is in order in each."""
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *numbers]), kind="stable")
    return every[run_starts(every)]


def first_equal(
    values: NDArray[np.float64], wanted: NDArray[np.float64], starts: NDArray[np.intp], ends: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The index of the first element of each run that equals the run's wanted value."""
    runs = np.repeat(np.arange(len(starts)), ends - starts)
    places = np.flatnonzero(values == wanted[runs])
    return places[run_starts(runs[places])]


def check_count(count: int) -> None:
    """Raises ``TooManyBuckets`` if there are more than ``MOST_BUCKETS``."""
    if count > MOST_BUCKETS:
        raise TooManyBuckets(f"the range has more than {MOST_BUCKETS:,} buckets: choose longer ones or a shorter range")


class Resampler:
    """Takes the columns of one range piece by piece, oldest first; returns its buckets."""

    def __init__(self, keys: Sequence[str], *, bucket_us: int, fn: Fn | None, origin_us: int) -> None:
        self._bucket_us = bucket_us
        self._origin_us = origin_us
        self._series = {key: _series(fn) for key in keys}

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
            if isinstance(column, Figures):
                self._series[key].add_figures(self._ids(column.starts_us), column)
            elif len(column.times_us):
                self._series[key].add(self._ids(column.times_us), column)

    def _ids(self, times_us: NDArray[np.int64]) -> Ids:
        return bucket_ids(times_us, self._bucket_us, self._origin_us)

    def finish(self, *, offset: int, limit: int) -> Buckets:
        """The buckets from ``offset`` on, at most ``limit``, newest first.

        Raises:
            TooManyBuckets: all names together have too many.
        """
        reduced = {key: series.reduced() for key, series in self._series.items()}
        every = _union([each.ids for each in reduced.values()])
        check_count(len(every))
        wanted = every[::-1][offset : offset + max(0, limit)]
        starts_us = (wanted * self._bucket_us + self._origin_us).tolist()
        return Buckets(starts_us, {key: each.values_at(wanted) for key, each in reduced.items()}, len(every))


def _union(ids: Sequence[Ids]) -> Ids:
    """All that is in one of them, ascending, as each is; mostly all are alike."""
    if ids and all(np.array_equal(each, ids[0]) for each in ids[1:]):
        return ids[0]
    return each_once(ids)


class Reduced(NamedTuple):
    """One name's buckets: ascending ids, and one point for each (only its value counts, not its time)."""

    ids: Ids
    points: PointColumn

    def values_at(self, wanted: Ids) -> list[Value]:
        """The value of each of these buckets, None where there is none."""
        if not len(self.ids):
            return [None] * len(wanted)
        places = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        there = (self.ids[places] == wanted) & np.isfinite(self.points.numbers[places])
        values = plain_values(self.points, places)
        for place in (~there).nonzero()[0].tolist():
            values[place] = None
        return values


class Numeric:
    """Computes the sum, minimum, maximum or mean of each bucket's numbers and booleans."""

    def __init__(self, fn: Fn) -> None:
        self._fn = fn
        self._ufunc = {"min": np.minimum, "max": np.maximum}.get(fn, np.add)
        self._parts: list[tuple[Ids, NDArray[np.float64], NDArray[np.float64]]] = []
        self._held = 0

    def add(self, ids: Ids, column: PointColumn) -> None:
        """Adds the next piece of the range: its points, and the bucket of each."""
        numeric = column.kinds != TEXT
        if not numeric.all():
            ids, column = ids[numeric], column.where(numeric)
        if len(ids):
            starts = run_starts(ids)
            counts = np.append(starts[1:], len(ids)) - starts
            self._hold((ids[starts], self._combined(column.numbers, starts), counts.astype(np.float64)))

    def add_figures(self, ids: Ids, figures: Figures) -> None:
        """Adds the next piece of the range: its stretches, and the bucket of each."""
        row = {"min": LOWEST, "max": HIGHEST}.get(self._fn)
        numbers = figures.sums if row is None else figures.values[row]
        self._hold(self._reduce(ids, numbers, figures.counts.astype(np.float64)))

    def _hold(self, part: tuple[Ids, NDArray[np.float64], NDArray[np.float64]]) -> None:
        self._parts.append(part)
        self._held += len(part[0])
        if self._held > MOST_BUCKETS:
            self._merge()
            check_count(self._held)

    def _merge(self) -> None:
        if len(self._parts) > 1:
            ids, numbers, counts = (np.concatenate(each) for each in zip(*self._parts, strict=True))
            self._parts = [self._reduce(ids, numbers, counts)]
            self._held = len(self._parts[0][0])

    def _reduce(
        self, ids: Ids, numbers: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[Ids, NDArray[np.float64], NDArray[np.float64]]:
        starts = run_starts(ids)
        return ids[starts], self._combined(numbers, starts), np.add.reduceat(counts, starts)

    def _combined(self, numbers: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            found: NDArray[np.float64] = self._ufunc.reduceat(numbers, starts)
        return found

    def reduced(self) -> Reduced:
        """All buckets that have points, ascending."""
        self._merge()
        if not self._parts:
            return NOTHING
        ids, numbers, counts = self._parts[0]
        if self._fn == "mean":
            numbers = numbers / counts
        return Reduced(ids, PointColumn(ids, np.full(len(ids), NUMBER, np.uint8), numbers, []))


class Last:
    """Finds the last point of each bucket, of any type."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ids, NDArray[np.uint8], NDArray[np.float64]]] = []
        self._texts: list[str] = []
        self._held = 0

    def add(self, ids: Ids, column: PointColumn) -> None:
        """Adds the next piece of the range: its points, and the bucket of each."""
        lasts = np.append(run_starts(ids)[1:], len(ids)) - 1
        kinds, numbers = column.kinds[lasts], column.numbers[lasts]
        if (kinds == TEXT).any():
            numbers = np.where(kinds == TEXT, numbers + len(self._texts), numbers)
            self._texts += column.texts
        self._parts.append((ids[lasts], kinds, numbers))
        self._held += len(lasts)
        if self._held > MOST_BUCKETS:
            self._merge()
            check_count(self._held)

    def add_figures(self, ids: Ids, figures: Figures) -> None:
        """Adds the next piece of the range: its stretches, and the bucket of each."""
        self.add(ids, lasts(figures))

    def _merge(self) -> None:
        if len(self._parts) > 1:
            ids, kinds, numbers = (np.concatenate(each) for each in zip(*self._parts, strict=True))
            lasts = np.append(run_starts(ids)[1:], len(ids)) - 1
            self._parts = [(ids[lasts], kinds[lasts], numbers[lasts])]
            self._held = len(lasts)

    def reduced(self) -> Reduced:
        """All buckets that have points, ascending."""
        self._merge()
        if not self._parts:
            return NOTHING
        ids, kinds, numbers = self._parts[0]
        return Reduced(ids, PointColumn(ids, kinds, numbers, self._texts))


class MeanOrLastText:
    """Computes the mean of each bucket's numbers; for a bucket without numbers, its last text."""

    def __init__(self) -> None:
        self._numeric = Numeric("mean")
        self._last = Last()

    def add(self, ids: Ids, column: PointColumn) -> None:
        """Adds the next piece of the range: its points, and the bucket of each."""
        self._numeric.add(ids, column)
        texts = column.kinds == TEXT
        if texts.any():
            self._last.add(ids[texts], column.where(texts))

    def add_figures(self, ids: Ids, figures: Figures) -> None:
        """Adds the next piece of the range: its stretches, and the bucket of each."""
        self._numeric.add_figures(ids, figures)

    def reduced(self) -> Reduced:
        """All buckets that have points, ascending."""
        numeric, last = self._numeric.reduced(), self._last.reduced()
        if not len(last.ids):
            return numeric
        only_text = ~np.isin(last.ids, numeric.ids)
        ids = np.concatenate((numeric.ids, last.ids[only_text]))
        kinds = np.concatenate((numeric.points.kinds, last.points.kinds[only_text]))
        numbers = np.concatenate((numeric.points.numbers, last.points.numbers[only_text]))
        order = np.argsort(ids)
        return Reduced(ids[order], PointColumn(ids[order], kinds[order], numbers[order], last.points.texts))


_NONE: NDArray[Any] = np.zeros(0, np.int64)
NOTHING = Reduced(_NONE, PointColumn(_NONE, np.zeros(0, np.uint8), np.zeros(0), []))


def _series(fn: Fn | None) -> Numeric | Last | MeanOrLastText:
    if fn is None:
        return MeanOrLastText()
    return Last() if fn == "last" else Numeric(fn)
