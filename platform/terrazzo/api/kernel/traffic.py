"""How many requests there were and how long they took, kept as plain counters and read at scrape time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.durations import Durations


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
            "terrazzo_api_requests_total",
            "Requests that reached an operation, by it and the code of the answer",
            labels=["operation", "code"],
        )
        for (operation, code), count in self._requests.items():
            requests.add_metric([operation, str(code)], count)
        seconds = HistogramMetricFamily(
            "terrazzo_api_seconds", "Time to answer a request, by operation", labels=["operation"]
        )
        for operation, durations in self._durations.items():
            seconds.add_metric([operation], durations.cumulated(), durations.sum_s)
        refusals = CounterMetricFamily(
            "terrazzo_api_refused_total", "Requests that reached no operation, by HTTP status", labels=["status"]
        )
        for status, count in self._refusals.items():
            refusals.add_metric([str(status)], count)
        return requests, seconds, refusals
