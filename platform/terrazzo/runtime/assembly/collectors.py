"""The parts' plain counters as Prometheus metrics, read when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Numbers = Mapping[str, float]


class StatsCollector(Collector):
    """A part's plain numbers.

    Args:
        names: the full name of each metric, to the field that it is read from; names that end in ``_total`` are
            counters, which only rise, the others gauges.
        read: what the part counts, as an object with these fields.
    """

    def __init__(self, names: Mapping[str, str], read: Callable[[], object]) -> None:
        self._names = names
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        stats = self._read()
        for name, field in self._names.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(name, field.replace("_", " "), value=getattr(stats, field))


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
