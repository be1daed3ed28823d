"""The bridges' metrics for ``/metrics``, with the bridge's name as label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.ports.bridge import Bridge

_NUMBERS = {
    "terrazzo_bridge_queued": "queued",
    "terrazzo_bridge_queued_bytes": "queued_bytes",
    "terrazzo_bridge_connects_total": "connects",
    "terrazzo_bridge_sent_total": "sent",
    "terrazzo_bridge_received_total": "received",
    "terrazzo_bridge_dropped_total": "dropped",
    "terrazzo_bridge_expired_total": "expired",
    "terrazzo_bridge_refused_by_remote_total": "refused_by_remote",
    "terrazzo_bridge_refused_here_total": "refused_here",
    "terrazzo_bridge_looped_total": "looped",
    "terrazzo_bridge_spool_failures_total": "spool_failures",
}
"""Each metric's name to the field of ``BridgeStatus``; those that end in ``_total`` are counters, the others gauges."""


class BridgeCollector(Collector):
    """Whether each bridge is connected, since when, and its numbers."""

    def __init__(self, bridges: Sequence[Bridge]) -> None:
        self._bridges = bridges

    def collect(self) -> Iterable[Metric]:
        """The metrics of all bridges, read when Prometheus scrapes."""
        statuses = [(bridge.name, bridge.status()) for bridge in self._bridges]
        since = {name: (status.connected_since_us or 0) / 1e6 for name, status in statuses}
        connected = {name: float(seconds > 0) for name, seconds in since.items()}
        yield _family("terrazzo_bridge_connected", "connected", connected)
        yield _family("terrazzo_bridge_connected_since_seconds", "connected since seconds", since)
        for metric, field in _NUMBERS.items():
            values = {name: getattr(status, field) for name, status in statuses}
            yield _family(metric, field.replace("_", " "), values)


def _family(metric: str, text: str, values: Mapping[str, float]) -> Metric:
    kind = CounterMetricFamily if metric.endswith("_total") else GaugeMetricFamily
    family = kind(metric, text, labels=["bridge"])
    for bridge, value in values.items():
        family.add_metric([bridge], value)
    return family


def bridge_metrics(bridges: Sequence[Bridge]) -> list[Collector]:
    """The collector of all bridges; none without bridges."""
    return [BridgeCollector(bridges)] if bridges else []
