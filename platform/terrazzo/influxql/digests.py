"""What windows have in few figures: enough for the functions that need no more, without a row for each point.

A digest stands where rows would: of each field and window the number of its points, their sum, and which are the first,
lowest, highest and last. Points are reduced as they come, and hours that a store has figures of come as these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.aggregates import first_of_equals
from terrazzo.influxql.vectors import TEXT, Mask, Times, Vector, of_numbers, run_starts
from terrazzo.influxql.windows import Windows
from terrazzo.ports.store import Figures, Points

FIRST, LOWEST, HIGHEST, LAST = range(4)

Floats = NDArray[np.float64]


class FieldDigest(NamedTuple):
    """A field's points by window, of which ``ids`` are the numbers, ascending.

    ``kinds``, ``numbers`` and ``times`` have four rows: the first, lowest, highest and last point, of equal ones the
    earliest. There are no texts among them.
    """

    ids: NDArray[np.int64]
    counts: Floats
    sums: Floats
    kinds: NDArray[np.uint8]
    numbers: Floats
    times: Times

    def vector(self, row: int) -> Vector:
        """The first, lowest, highest or last points."""
        return Vector(self.kinds[row], self.numbers[row])

    def take(self, places: NDArray[np.intp]) -> FieldDigest:
        """Some of the windows."""
        ids, counts, sums, kinds, numbers, times = self
        return FieldDigest(
            ids[places], counts[places], sums[places], kinds[:, places], numbers[:, places], times[:, places]
        )


_NONE = np.zeros(0, np.int64)
NO_POINTS = FieldDigest(
    _NONE, np.zeros(0), np.zeros(0), np.zeros((4, 0), np.uint8), np.zeros((4, 0)), np.zeros((4, 0), np.int64)
)


class Digest(NamedTuple):
    """What stands for the rows of one series, or of several."""

    fields: Mapping[str, FieldDigest]

    def field(self, name: str) -> FieldDigest:
        """A field's windows, none where it has no points."""
        return self.fields.get(name, NO_POINTS)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The windows that have points of any field, ascending."""
        return np.unique(np.concatenate([_NONE, *(field.ids for field in self.fields.values())]))


class DigestTable(NamedTuple):
    """The digest of one series of a measurement."""

    name: str
    tags: Mapping[str, str]
    digest: Digest


class DigestMaker:
    """Takes the points of one series piece by piece, oldest first.

    Args:
        windows: of GROUP BY time; None: all is one.
    """

    def __init__(self, windows: Windows | None) -> None:
        self._windows = windows
        self._parts: dict[str, list[FieldDigest]] = {}

    def undivided(self, starts_us: NDArray[np.int64], length_us: int) -> Mask:
        """Which stretches of time, of one length in microseconds, lie in one window each."""
        if self._windows is None:
            return np.ones(len(starts_us), np.bool_)
        return self._windows.hold(starts_us * 1_000, length_us * 1_000)

    def add(self, name: str, piece: Points | Figures) -> bool:
        """Takes a piece of a field; False if it has what a digest can't say."""
        if isinstance(piece, Points):
            if (piece.kinds == TEXT).any():
                return False
            found = self._of_points(piece)
        else:
            found = self._of_figures(piece)
        self._parts.setdefault(name, []).append(found)
        return True

    def finish(self) -> Digest | None:
        """The digest of all pieces; None where clocks that are put back would have a window begin twice."""
        fields = {name: _reduced(_concatenated(parts)) for name, parts in self._parts.items()}
        windows = self._windows
        if windows is None or all(
            windows.ascend(int(field.times.min()), int(field.times.max())) for field in fields.values()
        ):
            return Digest(fields)
        return None

    def _of_points(self, points: Points) -> FieldDigest:
        times, count = points.times_us * 1_000, len(points.times_us)
        four = FieldDigest(
            self._ids(times),
            np.ones(count),
            points.numbers,
            np.broadcast_to(points.kinds, (4, count)),
            np.broadcast_to(points.numbers, (4, count)),
            np.broadcast_to(times, (4, count)),
        )
        return _reduced(four)

    def _of_figures(self, figures: Figures) -> FieldDigest:
        kinds = np.full((4, len(figures.counts)), figures.kind, np.uint8)
        ids, counts = self._ids(figures.starts_us * 1_000), figures.counts.astype(np.float64)
        return FieldDigest(ids, counts, figures.sums, kinds, figures.values, figures.times_us * 1_000)

    def _ids(self, times: Times) -> NDArray[np.int64]:
        return np.zeros(len(times), np.int64) if self._windows is None else self._windows.ids(times)


def _concatenated(parts: Sequence[FieldDigest]) -> FieldDigest:
    if len(parts) == 1:
        return parts[0]
    return FieldDigest(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))


def _reduced(parts: FieldDigest) -> FieldDigest:
    """One of each window; parts are in the order of time, and none reaches over the next."""
    starts = run_starts(parts.ids)
    if len(starts) == len(parts.ids):
        return parts
    ends = np.append(starts[1:], len(parts.ids))
    lowest = first_of_equals(parts.numbers[LOWEST], starts, np.minimum)
    highest = first_of_equals(parts.numbers[HIGHEST], starts, np.maximum)
    return _summed(parts, starts, (starts, lowest, highest, ends - 1))


def _summed(parts: FieldDigest, starts: NDArray[np.intp], places: Sequence[NDArray[np.intp]]) -> FieldDigest:
    """One of each run of parts, with the points of which these are the places."""
    rows, chosen = np.arange(4)[:, None], np.stack(places)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(parts.sums, starts)
    return FieldDigest(
        parts.ids[starts],
        np.add.reduceat(parts.counts, starts),
        sums,
        parts.kinds[rows, chosen],
        parts.numbers[rows, chosen],
        parts.times[rows, chosen],
    )


def merged_digests(tables: Sequence[DigestTable]) -> Digest:
    """Several series taken together; of points of one time the order is that of the series."""
    if len(tables) == 1:
        return tables[0].digest
    names = dict.fromkeys(name for table in tables for name in table.digest.fields)
    return Digest({name: _merged([table.digest.field(name) for table in tables]) for name in names})


def _merged(fields: Sequence[FieldDigest]) -> FieldDigest:
    parts = _concatenated(fields)
    parts = parts.take(np.argsort(parts.ids, kind="stable"))
    starts = run_starts(parts.ids)
    ends = np.append(starts[1:], len(parts.ids)) - 1
    first = np.lexsort((parts.times[FIRST], parts.ids))
    lowest = np.lexsort((parts.times[LOWEST], parts.numbers[LOWEST], parts.ids))
    highest = np.lexsort((parts.times[HIGHEST], -parts.numbers[HIGHEST], parts.ids))
    last = np.lexsort((parts.times[LAST], parts.ids))
    return _summed(parts, starts, (first[starts], lowest[starts], highest[starts], last[ends]))


CHOSEN: Mapping[str, int] = {"first": FIRST, "last": LAST, "max": HIGHEST, "min": LOWEST}
"""Functions that choose a point which a digest has: the row that has it."""

REDUCED: Mapping[str, Callable[[FieldDigest], Vector]] = {
    "count": lambda field: of_numbers(field.counts),
    "mean": lambda field: of_numbers(field.sums / field.counts),
    "spread": lambda field: of_numbers(field.numbers[HIGHEST] - field.numbers[LOWEST]),
    "sum": lambda field: of_numbers(field.sums),
}
"""Functions to one value that a digest is enough for."""
