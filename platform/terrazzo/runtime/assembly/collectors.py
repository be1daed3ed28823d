"""The parts' plain counters as Prometheus metrics, read when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.durations import Durations
from terrazzo.ports.store import StoreStats
from terrazzo.runtime.assembly.metric_names import Figure
from terrazzo.runtime.build_info import BuildInfo

Numbers = Mapping[str, float]


class StatsCollector(Collector):
    """A part's plain numbers.

    Args:
        names: the full name of each metric, to the field that it is read from and its text; names that end in
            ``_total`` are counters, which only rise, the others gauges.
        read: what the part counts, as an object with these fields.
    """

    def __init__(self, names: Mapping[str, Figure], read: Callable[[], object]) -> None:
        self._names = names
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        stats = self._read()
        for name, (field, text) in self._names.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(name, text, value=getattr(stats, field))


class LabelledCollector(Collector):
    """One counter with one label from a closed set: messages dropped by reason, commands by state."""

    def __init__(self, name: str, label: str, text: str, read: Callable[[], Numbers]) -> None:
        self._name = name
        self._text = text
        self._label = label
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The counter with all its labels, read when Prometheus scrapes."""
        family = CounterMetricFamily(self._name, self._text, labels=[self._label])
        for value, count in self._read().items():
            family.add_metric([value], count)
        yield family


class DurationCollector(Collector):
    """One histogram of durations in seconds."""

    def __init__(self, name: str, text: str, durations: Durations) -> None:
        self._name = name
        self._text = text
        self._durations = durations

    def collect(self) -> Iterable[Metric]:
        """The histogram, read when Prometheus scrapes."""
        family = HistogramMetricFamily(self._name, self._text)
        family.add_metric([], self._durations.cumulated(), self._durations.sum_s)
        yield family


class QueryCollector(Collector):
    """How long queries to the time-series store took."""

    def __init__(self, read: Callable[[], StoreStats]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        family = HistogramMetricFamily(
            "terrazzo_query_seconds", "Time of a query to the time-series store, by its kind", labels=["query"]
        )
        for query, durations in self._read().query_times.items():
            family.add_metric([query], durations.cumulated(), durations.sum_s)
        yield family


class BuildCollector(Collector):
    """``terrazzo_build_info``: 1, with what runs here as labels."""

    def __init__(self, build: BuildInfo) -> None:
        self._build = build

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        family = GaugeMetricFamily(
            "terrazzo_build_info",
            "1, with version, Python and commit (empty where it is not known) as labels",
            labels=BuildInfo._fields,
        )
        family.add_metric(list(self._build), 1)
        yield family
