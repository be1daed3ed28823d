"""What differs between two runs of the suite by more than their spread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from terrazzo_bench.report import Report
from terrazzo_bench.result import OURS, Better, Series

FEWEST = 3  # runs that a spread can be told of


class Verdict(StrEnum):
    """What became of a figure."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "within the spread"
    UNKNOWN = "too few runs"
    GONE = "not measured now"


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure, before and now. ``ratio``: the medians', now to before; zero where there is none."""

    name: str
    unit: str
    peer: str
    before: float
    now: float
    ratio: float
    verdict: Verdict

    @property
    def is_regression(self) -> bool:
        """Whether it is ours and worse, or can't be told any more."""
        return self.peer == OURS and self.verdict in (Verdict.WORSE, Verdict.GONE)


def compare(before: Report, now: Report, *, measured: frozenset[str] | None = None) -> Iterator[Difference]:
    """All figures of the earlier run, judged by ``verdict_of``.

    Args:
        measured: names of figures that were asked for now; others are left out, those that lack are ``GONE``.
    """
    found = {series.key: series for series in now.series}
    for old in before.series:
        new = found.get(old.key)
        if new is not None:
            ratio = new.spread.median / old.spread.median if old.spread.median else 0.0
            verdict = verdict_of(old, new)
            yield Difference(*old.key, old.spread.median, new.spread.median, ratio, verdict)
        elif measured is None or old.name in measured:
            yield Difference(*old.key, old.spread.median, 0.0, 0.0, Verdict.GONE)


def verdict_of(before: Series, now: Series) -> Verdict:
    """Better or worse where neither median lies among the other's values."""
    if min(len(before.values), len(now.values)) < FEWEST:
        return Verdict.UNKNOWN
    old, new = before.spread, now.spread
    if new.least <= old.median <= new.most or old.least <= new.median <= old.most:
        return Verdict.SAME
    risen = new.median > old.median
    return Verdict.BETTER if risen == (now.better is Better.HIGHER) else Verdict.WORSE
