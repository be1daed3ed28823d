"""How many requests there were and how long they took, kept as plain counters and read at scrape time."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Durations:
    """A histogram of durations in seconds, with the bounds ``BOUNDS_S``."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Counts one duration."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def cumulated(self) -> list[tuple[str, float]]:
        """Upper bound and count up to it, as Prometheus wants them."""
        total, rows = 0, []
        for bound, count in zip([*map(str, BOUNDS_S), "+Inf"], self.counts, strict=True):
            total += count
            rows.append((bound, float(total)))
        return rows


class Traffic(Collector):
    """Requests by operation and code (both from closed sets, so labels can't explode), and refusals by status."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, Durations] = {}
        self._refusals: Counter[int] = Counter()

    def count(self, operation: str, code: int, seconds: float) -> None:
        """A request that reached an operation."""
        self._requests[operation, code] += 1
        durations = self._durations.get(operation)
        if durations is None:
            durations = self._durations[operation] = Durations()
        durations.add(seconds)

    def refuse(self, status: int) -> None:
        """A request that reached none, by HTTP status."""
        self._refusals[status] += 1

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        requests = CounterMetricFamily(
            "terrazzo_api_requests_total", "Requests by operation and code", labels=["operation", "code"]
        )
        for (operation, code), count in self._requests.items():
            requests.add_metric([operation, str(code)], count)
        seconds = HistogramMetricFamily("terrazzo_api_seconds", "Time to answer, by operation", labels=["operation"])
        for operation, durations in self._durations.items():
            seconds.add_metric([operation], durations.cumulated(), durations.sum_s)
        refusals = CounterMetricFamily(
            "terrazzo_api_refused_total", "Requests that reached no operation, by HTTP status", labels=["status"]
        )
        for status, count in self._refusals.items():
            refusals.add_metric([str(status)], count)
        return requests, seconds, refusals
