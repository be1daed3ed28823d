"""Who may come in: how many connections the APIs have over all their ports, and which were cut off and why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from enum import Enum

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)


class Cut(Enum):
    """Why the server ended a connection."""

    CONNECTIONS = "connections"  # limits.connections
    HEAD_TIMEOUT = "head_timeout"  # the head of an HTTP request did not arrive in time
    BODY_TIMEOUT = "body_timeout"  # the body, or the rest of a line, did not arrive in time
    HEAD_TOO_LONG = "head_too_long"
    TOO_LONG = "too_long"  # limits.body_bytes, where the rest can't be skipped
    IDLE = "idle"
    UNREAD = "unread"  # the peer does not take its answers
    MALFORMED = "malformed"  # not HTTP


class ConnectionLimiter(Collector):
    """Counts and bounds the connections of all API ports together.

    Args:
        most: connections at the same time.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.open = 0
        self.pauses = 0  # times that a connection had as many requests under way as it may
        self._by_port: Counter[str] = Counter()
        self._cuts: Counter[Cut] = Counter(dict.fromkeys(Cut, 0))
        self._logs = {cut: SparseLog(_log) for cut in Cut}

    def enter(self, port: str, address: str) -> bool:
        """Whether one more may come in; who may calls ``leave`` in the end."""
        if self.open >= self.most:
            self.cut(Cut.CONNECTIONS, address, f"{self.most} connections are open (limits.connections)")
            return False
        self.open += 1
        self._by_port[port] += 1
        return True

    def leave(self, port: str) -> None:
        """A connection has ended."""
        self.open -= 1
        self._by_port[port] -= 1

    def cut(self, why: Cut, address: str, info: str) -> None:
        """Counts a connection that the server ends, and says so now and then."""
        self._cuts[why] += 1
        self._logs[why].warning("cut off %s: %s", address, info)

    def pause(self) -> None:
        """A connection has too many requests under way and is not read for a moment."""
        self.pauses += 1

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        connections = GaugeMetricFamily("terrazzo_api_connections", "Open connections, by port", labels=["port"])
        for port, count in self._by_port.items():
            connections.add_metric([port], count)
        cuts = CounterMetricFamily("terrazzo_api_cut_total", "Connections that the server ended", labels=["reason"])
        for why, count in self._cuts.items():
            cuts.add_metric([why.value], count)
        pauses = CounterMetricFamily("terrazzo_api_pipeline_pauses_total", "Waits for limits.pipelined_requests")
        pauses.add_metric([], self.pauses)
        return connections, cuts, pauses
