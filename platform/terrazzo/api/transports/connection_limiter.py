"""Who may come in: how many connections the APIs have over all their ports, and which were cut off and why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.conversation import RequestKeeper
from terrazzo.api.transports.peers.shares import ConnectionSlot, Full, Shares
from terrazzo.api.transports.peers.unread import Unread
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.peer_address import TrustedProxies, share_of

MOST_GOODBYES = 32  # at the same time, of peers that are refused

_log = logging.getLogger(__name__)


class Cut(Enum):
    """Why the server ended a connection."""

    CONNECTIONS = "connections"  # limits.connections
    ADDRESS = "address"  # limits.unauthenticated_connections, or most of limits.connections
    GAVE_WAY = "gave_way"  # unauthenticated, where another address had none
    HEAD_TIMEOUT = "head_timeout"  # the head of an HTTP request did not arrive in time
    BODY_TIMEOUT = "body_timeout"  # the body, or the rest of a line, did not arrive in time
    HEAD_TOO_LONG = "head_too_long"
    TOO_LONG = "too_long"  # limits.body_bytes, where the rest can't be skipped
    IDLE = "idle"
    UNREAD = "unread"  # the peer does not take its answers
    MEMORY = "memory"  # the peer does not take its answers, and its company has most of limits.memory_mib
    MALFORMED = "malformed"  # not HTTP
    TLS = "tls"  # the TLS handshake failed, or took too long


class ConnectionLimiter(Collector):
    """Counts and bounds the connections of all API ports together, and what one address may have of them.

    Args:
        most: connections at the same time.
        unauthenticated: of one address, as long as no good token came on them.
        proxies: whose connections are not one address's.
        limit: the key of the configuration that says ``most``.
    """

    def __init__(
        self, most: int, unauthenticated: int, proxies: TrustedProxies, *, limit: str = "limits.connections"
    ) -> None:
        self.most = most
        self._limit = limit
        self.unauthenticated = unauthenticated
        self.pauses = 0  # times that a connection had as many requests under way as it may
        self._proxies = proxies
        self.unread = Unread(self._on_unread)
        self.requests: dict[RequestKeeper, None] = {}  # connections that stay, and their conversations
        self._goodbyes = 0
        self._shares = Shares(most, min(unauthenticated, most), self._on_gave_way)
        self._by_port: Counter[str] = Counter()
        self._cuts: Counter[Cut] = Counter(dict.fromkeys(Cut, 0))
        self._logs = {cut: SparseLog(_log) for cut in Cut}

    @classmethod
    def of(cls, limits: ApiLimits, proxies: TrustedProxies) -> ConnectionLimiter:
        """As the configuration says."""
        limit = "limits.api_connections" if limits.api_connections else "limits.connections"
        return cls(limits.connections_of_apis, limits.unauthenticated_connections, proxies, limit=limit)

    @property
    def open(self) -> int:
        """How many connections are open."""
        return self._shares.open

    def enter(
        self, port: str, address: str, *, give_way: Callable[[], None], is_idle: Callable[[], bool]
    ) -> ConnectionSlot | Full:
        """A place for a connection; who gets one calls ``leave`` in the end."""
        share = "" if address in self._proxies else share_of(address)
        return self._counted(port, address, self._shares.enter(share, give_way=give_way, is_idle=is_idle))

    def enter_behind_proxy(
        self, address: str, *, give_way: Callable[[], None], is_idle: Callable[[], bool]
    ) -> ConnectionSlot | Full:
        """A place for one client's request on a proxy's connection; who gets one calls its ``leave`` in the end."""
        share = share_of(address)
        place = self._shares.enter(share, weight=0, give_way=give_way, is_idle=is_idle)
        return self._counted("", address, place)

    def enter_reserve(self, port: str, address: str, *, give_way: Callable[[], None]) -> ConnectionSlot | None:
        """A place in which health alone is answered, where there is no other."""
        share = "" if address in self._proxies else share_of(address)
        slot = self._shares.enter_reserve(share, give_way=give_way)
        if slot is not None:
            self._by_port[port] += 1
        return slot

    def _counted(self, port: str, address: str, place: ConnectionSlot | Full) -> ConnectionSlot | Full:
        if isinstance(place, Full):
            self.cut(Cut.CONNECTIONS if place is Full.ALL else Cut.ADDRESS, address, self.why(place))
        elif port:
            self._by_port[port] += 1
        return place

    def why(self, full: Full) -> str:
        """What a peer is told for whom there is no place."""
        if full is Full.ALL:
            return say("connections_open", most=self.most, limit=self._limit)
        most = self._shares.most_of_address
        return say("connections_of_address", unauthenticated=self.unauthenticated, most=most, limit=self._limit)

    def leave(self, port: str, slot: ConnectionSlot) -> None:
        """A connection has ended."""
        slot.leave()
        self._by_port[port] -= 1

    def _on_gave_way(self, slot: ConnectionSlot) -> None:
        self.cut(Cut.GAVE_WAY, slot.share, f"gave way to another address: no token came on it ({self._limit})")

    def _on_unread(self) -> None:
        self.cut(Cut.MEMORY, "a client", "does not take its answers, and memory is short (limits.memory_mib)")

    def begin_goodbye(self) -> bool:
        """Whether one more that is refused may be told why, which takes a while; ``end_goodbye`` when it is gone."""
        if self._goodbyes >= MOST_GOODBYES:
            return False
        self._goodbyes += 1
        return True

    def end_goodbye(self) -> None:
        """Somebody who was refused is gone."""
        self._goodbyes -= 1

    def cut(self, why: Cut, address: str, info: str) -> None:
        """Counts a connection that the server ends, and says so now and then."""
        self._cuts[why] += 1
        self._logs[why].warning("cut off %s: %s", address, info)

    def pause(self) -> None:
        """A connection has too many requests under way and is not read for a moment."""
        self.pauses += 1

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        connections = GaugeMetricFamily(
            "terrazzo_api_connections", "Connections of the APIs open now, by port", labels=["port"]
        )
        for port, count in self._by_port.items():
            connections.add_metric([port], count)
        waiting = GaugeMetricFamily(
            "terrazzo_api_unauthenticated_connections", "Connections on which no good token has come"
        )
        waiting.add_metric([], self._shares.unproven)
        cuts = CounterMetricFamily(
            "terrazzo_api_cut_total", "Connections of the APIs that the server ended, by reason", labels=["reason"]
        )
        for why, count in self._cuts.items():
            cuts.add_metric([why.value], count)
        pauses = CounterMetricFamily(
            "terrazzo_api_pipeline_pauses_total",
            "Times that a connection was not read because limits.pipelined_requests were under way",
        )
        pauses.add_metric([], self.pauses)
        return connections, waiting, cuts, pauses
