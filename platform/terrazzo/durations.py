"""Histograms of durations, kept as plain counters; ``/metrics`` shows them."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Durations:
    """A histogram of durations in seconds, with the bounds ``BOUNDS_S``."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Counts one duration, or as many equal ones."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += count
        self.sum_s += seconds * count

    def include(self, others: Durations) -> None:
        """Counts those of another histogram, too."""
        self.counts = [count + more for count, more in zip(self.counts, others.counts, strict=True)]
        self.sum_s += others.sum_s

    def cumulated(self) -> list[tuple[str, float]]:
        """Upper bound and count up to it, as Prometheus wants them."""
        total, rows = 0, []
        for bound, count in zip([*map(str, BOUNDS_S), "+Inf"], self.counts, strict=True):
            total += count
            rows.append((bound, float(total)))
        return rows
