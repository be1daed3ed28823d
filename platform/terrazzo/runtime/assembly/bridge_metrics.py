"""The metrics of other brokers: bridges', with the bridge's name as label, and of what brokers ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.ports.bridge import Bridge
from terrazzo.runtime.assembly.metric_names import Figure

_NUMBERS = {
    "terrazzo_bridge_queued": Figure("queued", "Messages that wait for the remote broker's acknowledgement"),
    "terrazzo_bridge_queued_bytes": Figure("queued_bytes", "Bytes of the messages that wait for the remote broker"),
    "terrazzo_bridge_connects_total": Figure("connects", "Times that the link to the remote broker was made"),
    "terrazzo_bridge_sent_total": Figure("sent", "Messages acknowledged by the remote broker, or sent at QoS 0"),
    "terrazzo_bridge_received_total": Figure("received", "Messages that came over the bridge and were taken"),
    "terrazzo_bridge_dropped_total": Figure("dropped", "Messages given up because the bridge's queue was full"),
    "terrazzo_bridge_expired_total": Figure("expired", "Messages that expired while they waited for the link"),
    "terrazzo_bridge_refused_by_remote_total": Figure("refused_by_remote", "Messages that the remote broker refused"),
    "terrazzo_bridge_refused_here_total": Figure(
        "refused_here", "Messages of unknown terminals, or on topics that the bridge has no rule for"
    ),
    "terrazzo_bridge_withheld_total": Figure(
        "withheld", "Times that the link was made anew, because what came in could not be stored and must be sent again"
    ),
    "terrazzo_bridge_looped_total": Figure("looped", "Messages of this platform that came back over the bridge"),
    "terrazzo_bridge_spool_failures_total": Figure("spool_failures", "Writes to the bridge's queue that were repeated"),
}
"""Each metric's name to the field of ``BridgeStatus`` and its text; ``_total`` ends the names of counters."""

REMOTE_ACCESS = {
    "terrazzo_remote_logins_allowed_total": Figure("logins_allowed", "Logins at other brokers that were allowed"),
    "terrazzo_remote_logins_denied_total": Figure("logins_denied", "Logins at other brokers that were denied"),
    "terrazzo_remote_topics_allowed_total": Figure("topics_allowed", "Topics at other brokers that were allowed"),
    "terrazzo_remote_topics_denied_total": Figure("topics_denied", "Topics at other brokers that were denied"),
    "terrazzo_remote_askers_refused_total": Figure(
        "askers_refused", "Questions about logins and topics from whoever may not ask"
    ),
    "terrazzo_remote_malformed_total": Figure(
        "malformed", "Questions of other brokers that could not be read, and were denied"
    ),
}


class BridgeCollector(Collector):
    """Whether each bridge is connected, since when, and its numbers."""

    def __init__(self, bridges: Sequence[Bridge]) -> None:
        self._bridges = bridges

    def collect(self) -> Iterable[Metric]:
        """The metrics of all bridges, read when Prometheus scrapes."""
        statuses = [(bridge.name, bridge.status()) for bridge in self._bridges]
        since = {name: (status.connected_since_us or 0) / 1e6 for name, status in statuses}
        connected = {name: float(seconds > 0) for name, seconds in since.items()}
        yield _family("terrazzo_bridge_connected", "1 while the link to the remote broker stands", connected)
        yield _family(
            "terrazzo_bridge_connected_since_seconds",
            "Unix time since which the link stands, 0 while it is down",
            since,
        )
        for metric, (field, text) in _NUMBERS.items():
            yield _family(metric, text, {name: getattr(status, field) for name, status in statuses})


def _family(metric: str, text: str, values: Mapping[str, float]) -> Metric:
    kind = CounterMetricFamily if metric.endswith("_total") else GaugeMetricFamily
    family = kind(metric, text, labels=["bridge"])
    for bridge, value in values.items():
        family.add_metric([bridge], value)
    return family


def bridge_metrics(bridges: Sequence[Bridge]) -> list[Collector]:
    """The collector of all bridges; none without bridges."""
    return [BridgeCollector(bridges)] if bridges else []
