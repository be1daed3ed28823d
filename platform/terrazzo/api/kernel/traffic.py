"""How many requests there were and how long they took, kept as plain counters and read at scrape time."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.durations import BOUNDS_S, Durations


class Traffic(Collector):
    """Requests by operation and code (both from closed sets, so labels can't explode), and refusals by status."""

    def __init__(self) -> None:
        self._durations: dict[tuple[str, int], Durations] = {}
        self._refusals: Counter[int] = Counter()
        self._abandoned = 0
        self._overdue = 0

    def count(self, operation: str, code: int, seconds: float) -> None:
        """A request that reached an operation."""
        durations = self._durations.get((operation, code))
        if durations is None:
            durations = self._durations[operation, code] = Durations()
        durations.counts[bisect_left(BOUNDS_S, seconds)] += 1  # ``add``, which a call of its own is dear for
        durations.sum_s += seconds

    def refuse(self, status: int) -> None:
        """A request that reached none, by HTTP status."""
        self._refusals[status] += 1

    def abandon(self) -> None:
        """A request whose answer nobody waits for any more."""
        self._abandoned += 1

    def count_overdue(self) -> None:
        """A request that was ended, as it read for longer than it may."""
        self._overdue += 1

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        requests = CounterMetricFamily(
            "terrazzo_api_requests_total",
            "Requests that reached an operation, by it and the code of the answer",
            labels=["operation", "code"],
        )
        by_operation: dict[str, Durations] = {}
        for (operation, code), durations in self._durations.items():
            requests.add_metric([operation, str(code)], sum(durations.counts))
            by_operation.setdefault(operation, Durations()).include(durations)
        seconds = HistogramMetricFamily(
            "terrazzo_api_seconds", "Time to answer a request, by operation", labels=["operation"]
        )
        for operation, durations in by_operation.items():
            seconds.add_metric([operation], durations.cumulated(), durations.sum_s)
        refusals = CounterMetricFamily(
            "terrazzo_api_refused_total", "Requests that reached no operation, by HTTP status", labels=["status"]
        )
        for status, count in self._refusals.items():
            refusals.add_metric([str(status)], count)
        abandoned = CounterMetricFamily(
            "terrazzo_api_abandoned_total", "Requests that ended with their connection, before an answer"
        )
        abandoned.add_metric([], self._abandoned)
        overdue = CounterMetricFamily(
            "terrazzo_api_overdue_total", "Requests that were ended because they read for longer than limits.reading_s"
        )
        overdue.add_metric([], self._overdue)
        return requests, seconds, refusals, abandoned, overdue
