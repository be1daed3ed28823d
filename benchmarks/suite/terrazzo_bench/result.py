"""The one shape of what a benchmark finds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

OURS = "Terrazzo"


class Better(StrEnum):
    """Which way is good."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Result:
    """One figure of one run.

    Attributes:
        peer: whose it is, ``OURS`` or another's name.
        versions: of what it was measured on, as in ``Mosquitto 2.0.11``.
    """

    name: str
    unit: str
    value: float
    better: Better
    peer: str = OURS
    versions: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A figure's values in the order of the runs."""

    name: str
    unit: str
    better: Better
    peer: str
    versions: str
    values: tuple[float, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is found by in another run of the suite."""
        return self.name, self.unit, self.peer

    @property
    def spread(self) -> Spread:
        """Of the values."""
        return spread_of(self.values)


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, quartiles and extremes."""

    least: float
    low: float
    median: float
    high: float
    most: float


def spread_of(values: Sequence[float]) -> Spread:
    """Of at least one value; the quartiles are of the values as a whole population.

    Raises:
        ValueError: there is none.
    """
    if not values:
        raise ValueError("no value has no spread")
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return Spread(min(values), low, median, high, max(values))


def series_of(runs: Iterable[Iterable[Result]]) -> list[Series]:
    """The figures of several runs, each with its values, in the order in which they came first."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for run in runs:
        for result in run:
            found.setdefault((result.name, result.unit, result.peer), []).append(result)
    return [
        Series(
            name=each[0].name,
            unit=each[0].unit,
            better=each[0].better,
            peer=each[0].peer,
            versions=each[0].versions,
            values=tuple(result.value for result in each),
        )
        for each in found.values()
    ]


def times_better(ours: Series, theirs: Series) -> Spread | None:
    """How many times better ours is, run by run; above 1 is in our favour. None where a value of either is zero."""
    pairs = list(zip(ours.values, theirs.values, strict=False))
    if not pairs or not all(mine > 0 and other > 0 for mine, other in pairs):
        return None
    higher = ours.better is Better.HIGHER
    return spread_of([mine / other if higher else other / mine for mine, other in pairs])
