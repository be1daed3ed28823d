"""Whose memory it is: where the parts count it, what it costs, and what is given up first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.live.hub import LiveHub
from terrazzo.memory_shares import Account, Cost, Kept, MemoryShares
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.lifetime import Lifetime
from terrazzo_broker.broker import Broker

LOOK_S = 0.25
MOST_COMPANIES = 20  # in /metrics

# What a thing costs in memory beside its bytes, and per byte: benchmarks/memory.py measures it.
REPORTS = Cost(1.0, 350)
QUEUED = Cost(1.0, 90)  # the broker counts 120 bytes for each message itself
RETAINED = Cost(0.6)  # the broker counts 400 bytes for each level of a topic, of which most share some
UNREAD = Cost(1.0, 1_000)
LIVE = Cost(1.0, 0)  # a feed counts what its frames take


def share_memory(
    memory: MemoryShares,
    lifetime: Lifetime,
    *,
    ingest: IngestPipeline,
    live: LiveHub,
    broker: Broker,
    connection_limiter: ConnectionLimiter,
) -> None:
    """Adds all accounts, what is cheapest to lose first, and starts to look after them."""
    of_broker, unread = broker.memory, connection_limiter.unread
    memory.add(Account(kind="live", read=live.kept, cost=LIVE, give_up=live.give_up))
    memory.add(
        Account(kind="queued", read=_by_company(of_broker.queued), cost=QUEUED, give_up=_of(of_broker.drop_queued))
    )
    memory.add(Account(kind="answers", read=unread.kept, cost=UNREAD, give_up=unread.give_up))
    memory.add(
        Account(kind="unread", read=_by_company(of_broker.unread), cost=UNREAD, give_up=_of(of_broker.end_unread))
    )
    memory.add(Account(kind="retained", read=_by_company(of_broker.retained), cost=RETAINED))
    memory.add(Account(kind="received", read=_by_company(ingest.taken.by_owner), cost=REPORTS))

    async def look() -> None:
        memory.look()
        of_broker.refuse({str(owner) for owner in memory.over() if owner})

    looking = lifetime.tasks.repeat("memory shares", LOOK_S, look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)


def _by_company(read: Callable[[], Mapping[str, tuple[int, int]]]) -> Callable[[], Mapping[int, Kept]]:
    """What the broker counts by the text of a company's id; what is nobody's is the platform's."""

    def read_by_company() -> Mapping[int, Kept]:
        found: dict[int, Kept] = {}
        for owner, (size, items) in read().items():
            company_id = int(owner) if owner.isdecimal() else 0
            before = found.get(company_id, Kept())
            found[company_id] = Kept(before.bytes + size, before.items + items)
        return found

    return read_by_company


def _of(give_up: Callable[[str, int], int]) -> Callable[[int, int], int]:
    return lambda company_id, size: give_up(str(company_id) if company_id else "", size)


class MemoryCollector(Collector):
    """What of memory is whose."""

    def __init__(self, memory: MemoryShares) -> None:
        self._memory = memory

    def collect(self) -> Iterable[Metric]:
        """What Prometheus scrapes."""
        memory = self._memory
        kinds = GaugeMetricFamily("terrazzo_memory_bytes", "Memory of what waits or is kept, by kind", labels=["kind"])
        for kind, size in memory.by_kind().items():
            kinds.add_metric([kind], size)
        companies = GaugeMetricFamily(
            "terrazzo_memory_company_bytes", "The same of the companies that have most", labels=["company"]
        )
        for owner, size in memory.largest(MOST_COMPANIES):
            companies.add_metric([str(owner)], size)
        ceiling = GaugeMetricFamily("terrazzo_memory_ceiling_bytes", "limits.memory_mib")
        ceiling.add_metric([], memory.most_bytes)
        refused = CounterMetricFamily(
            "terrazzo_memory_refused_total", "What companies past their share asked for in vain", labels=["kind"]
        )
        for kind, count in memory.stats.refused.items():
            refused.add_metric([kind], count)
        given = CounterMetricFamily(
            "terrazzo_memory_given_up_bytes_total", "What the largest owners gave up", labels=["kind"]
        )
        for kind, size in memory.stats.given_up.items():
            given.add_metric([kind], size)
        return kinds, companies, ceiling, refused, given
