"""The parts' plain counters as Prometheus metrics, read when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Numbers = Mapping[str, float]


class CounterCollector(Collector):
    """A part's numbers as ``<prefix>_<name>``: gauges where ``gauges`` names them, all others counters."""

    def __init__(self, prefix: str, read: Callable[[], Numbers], *, gauges: frozenset[str] = frozenset()) -> None:
        self._prefix = prefix
        self._read = read
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """The part's metrics, read when Prometheus scrapes."""
        for name, value in self._read().items():
            kind = GaugeMetricFamily if name in self._gauges else CounterMetricFamily
            yield kind(f"{self._prefix}_{name}", name.replace("_", " "), value=value)


class LabelledCollector(Collector):
    """One counter with one label from a closed set: messages dropped by reason, commands by state."""

    def __init__(self, name: str, label: str, read: Callable[[], Numbers]) -> None:
        self._name = name
        self._label = label
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The counter with all its labels, read when Prometheus scrapes."""
        family = CounterMetricFamily(self._name, f"by {self._label}", labels=[self._label])
        for value, count in self._read().items():
            family.add_metric([value], count)
        yield family
