"""Consecutive periods from a store's digests: whole hours as a few figures, and points of the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from terrazzo.analysis.tally import PeriodTally, Summary
from terrazzo.ports.store import Figures, Points, Value

_FIRST, _LOWEST, _HIGHEST, _LAST = range(4)
_FLAG, _TEXT = 1, 2
_EXACT = 2.0**53  # beyond, records may have whole numbers that columns don't


class DigestSummarizer:
    """Takes pieces oldest first, then ``finish``. Any thread may feed it, one at a time.

    Args:
        bounds: beginnings of the periods, and the end of the last, in UTC microseconds.
    """

    def __init__(self, bounds: Sequence[int]) -> None:
        self._bounds = np.array(bounds, np.int64)
        self._summaries = [Summary() for _ in bounds[1:]]

    def undivided(self, starts_us: NDArray[np.int64], length_us: int) -> NDArray[np.bool_]:
        """Which stretches of time, of one length in microseconds, lie in one period each."""
        return np.asarray(self._places(starts_us) == self._places(starts_us + (length_us - 1)))

    def feed(self, piece: Mapping[str, Points | Figures]) -> bool:
        """Takes the next piece; False where numbers are so large that only records have them exactly."""
        for code, points in piece.items():
            if isinstance(points, Points):
                numbers, times_us = points.numbers[points.kinds != _TEXT], points.times_us
            else:
                numbers, times_us = points.values, points.starts_us
            if numbers.size and float(np.abs(numbers).max()) > _EXACT:
                return False
            for place, part in _runs(self._places(times_us)):
                tally = _of_points(points, part) if isinstance(points, Points) else _of_figures(points, part)
                self._summaries[place].tallies.setdefault(code, PeriodTally()).join(tally)
        return True

    def finish(self) -> list[Summary]:
        """The summaries of all periods, in their order."""
        return self._summaries

    def _places(self, times_us: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.asarray(np.searchsorted(self._bounds, times_us, "right") - 1)


def _runs(places: NDArray[np.intp]) -> Iterator[tuple[int, slice]]:
    """The periods, and which elements lie in each."""
    starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
        yield int(places[start]), slice(start, end)


def _of_points(points: Points, part: slice) -> PeriodTally:
    kinds, numbers = points.kinds[part], points.numbers[part]
    first, last = (_value(int(kinds[place]), float(numbers[place]), points.texts) for place in (0, -1))
    tally = PeriodTally(count=len(kinds), first=first, last=last)
    numeric = numbers[kinds != _TEXT]
    if len(numeric):
        tally.numbers, tally.total = len(numeric), float(numeric.sum())
        tally.lowest, tally.highest = float(numeric.min()), float(numeric.max())
        tally.first_number, tally.last_number = float(numeric[0]), float(numeric[-1])
    return tally


def _of_figures(figures: Figures, part: slice) -> PeriodTally:
    values, count = figures.values[:, part], int(figures.counts[part].sum())
    first, last = float(values[_FIRST, 0]), float(values[_LAST, -1])
    return PeriodTally(
        count=count,
        numbers=count,
        total=float(figures.sums[part].sum()),
        lowest=float(values[_LOWEST].min()),
        highest=float(values[_HIGHEST].max()),
        first=_value(figures.kind, first, ()),
        last=_value(figures.kind, last, ()),
        first_number=first,
        last_number=last,
    )


def _value(kind: int, number: float, texts: Sequence[str]) -> Value:
    return texts[int(number)] if kind == _TEXT else bool(number) if kind == _FLAG else number
