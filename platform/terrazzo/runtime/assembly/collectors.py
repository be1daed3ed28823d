"""The parts' plain counters as Prometheus metrics, read when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Numbers = Mapping[str, float]


class Numbered(Collector):
    """A part's numbers under ``<prefix>_<name>``; those named in ``gauges`` may fall, the others only rise."""

    def __init__(self, prefix: str, read: Callable[[], Numbers], *, gauges: frozenset[str] = frozenset()) -> None:
        self._prefix = prefix
        self._read = read
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        for name, value in self._read().items():
            kind = GaugeMetricFamily if name in self._gauges else CounterMetricFamily
            yield kind(f"{self._prefix}_{name}", name.replace("_", " "), value=value)


class Labelled(Collector):
    """One counter with one label from a closed set: messages dropped by reason, commands by state."""

    def __init__(self, name: str, label: str, read: Callable[[], Numbers]) -> None:
        self._name = name
        self._label = label
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        family = CounterMetricFamily(self._name, f"by {self._label}", labels=[self._label])
        for value, count in self._read().items():
            family.add_metric([value], count)
        yield family
