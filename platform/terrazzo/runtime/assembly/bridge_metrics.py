"""The bridges' metrics for ``/metrics``, with the bridge's name as label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.ports.bridge import Bridge, BridgeStatus

_GAUGES = frozenset({"queued", "queued_bytes"})
_COUNTERS = [
    field.name for field in msgspec.structs.fields(BridgeStatus) if field.type is int and field.name not in _GAUGES
]


class BridgeCollector(Collector):
    """``terrazzo_bridge_connected``, ``..._connected_since_seconds``, ``..._queued`` and the counters."""

    def __init__(self, bridges: Sequence[Bridge]) -> None:
        self._bridges = bridges

    def collect(self) -> Iterable[Metric]:
        """The metrics of all bridges, read when Prometheus scrapes."""
        statuses = [(bridge.name, bridge.status()) for bridge in self._bridges]
        since = {name: (status.connected_since_us or 0) / 1e6 for name, status in statuses}
        yield _gauge("connected", {name: float(seconds > 0) for name, seconds in since.items()})
        yield _gauge("connected_since_seconds", since)
        for gauge in sorted(_GAUGES):
            yield _gauge(gauge, {name: getattr(status, gauge) for name, status in statuses})
        for counter in _COUNTERS:
            family = CounterMetricFamily(f"terrazzo_bridge_{counter}", counter.replace("_", " "), labels=["bridge"])
            for name, status in statuses:
                family.add_metric([name], getattr(status, counter))
            yield family


def _gauge(name: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"terrazzo_bridge_{name}", name.replace("_", " "), labels=["bridge"])
    for bridge, value in values.items():
        family.add_metric([bridge], value)
    return family


def bridge_metrics(bridges: Sequence[Bridge]) -> list[Collector]:
    """The collector of all bridges; none without bridges."""
    return [BridgeCollector(bridges)] if bridges else []
