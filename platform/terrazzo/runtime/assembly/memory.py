"""Whose memory it is: where the parts count it, what it costs, and what is given up first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from terrazzo.api.kernel.long_answers.remembered import RememberedAnswers
from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from terrazzo.commands.dispatcher import CommandDispatcher
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.live.hub import LiveHub
from terrazzo.memory_shares import Account, Cost, Kept, MemoryShares
from terrazzo.metadata.entities import Entities
from terrazzo.ports.bridge import Bridge
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.assembly.gateway import GatewayServers
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.objects import Objects
from terrazzo.runtime.heap import TRIM_LOOK_S, HeapTrimmer
from terrazzo.runtime.lifetime import Lifetime
from terrazzo_broker.broker import Broker
from terrazzo_broker.owner_memory import Round

LOOK_S = 0.25

# What a thing costs in memory beside its bytes, and per byte: benchmarks/memory.py measures it.
REPORTS = Cost(1.0, 350)
INFLIGHT = Cost(1.0, 110)
PARTIAL = Cost(1.1, 0)
EFFECTS = Cost(1.0, 450)
BRIDGES = Cost(1.2, 250)  # for each message on disk: its place in the list
STATES = Cost(2.0, 120)  # of an object's variables: bytes as they are kept, and rows
COMMANDS = Cost(1.0, 700)  # answers that wait for the database
MAPPINGS = Cost(1.0, 600)  # of tables and plans mapping/scripts.py counts what they take
QUEUED = Cost(1.0, 90)  # the broker counts 120 bytes for each message itself
RETAINED = Cost(0.6)  # the broker counts 400 bytes for each level of a topic, of which most share some
UNREAD = Cost(1.0, 1_000)
LATE = Cost(1.0, 300)  # of spans that came late, and notes of them
LIVE = Cost(1.0, 0)  # a feed counts what its frames take


def share_memory(
    memory: MemoryShares,
    lifetime: Lifetime,
    *,
    ingest: IngestPipeline,
    live: LiveHub,
    broker: Broker,
    gateway: GatewayServers,
    objects: Objects,
    bridges: Sequence[Bridge],
    store: TimeSeriesStore,
    metadata: Metadata,
    commands: CommandDispatcher,
) -> None:
    """Adds all accounts, what is cheapest to lose first, and starts to look after them."""
    of_broker, unread, entities = broker.memory, gateway.connection_limiter.unread, metadata.entities
    mapper = objects.mapper
    memory.add(Account(kind="rows", read=entities.kept_rows, give_up=entities.give_up_rows))
    memory.add(Account(kind="segments", read=partial(_of_store, store), give_up=store.give_up))
    remembered = gateway.services.remembered
    memory.add(Account(kind="remembered", read=remembered.kept, give_up=remembered.give_up))
    memory.add(Account(kind="live", read=live.kept, cost=LIVE, give_up=live.give_up))
    memory.add(
        Account(kind="queued", read=_by_company(of_broker.queued), cost=QUEUED, give_up=_of(of_broker.drop_queued))
    )
    memory.add(Account(kind="answers", read=unread.kept, cost=UNREAD, give_up=unread.give_up))
    memory.add(
        Account(kind="unread", read=_by_company(of_broker.unread), cost=UNREAD, give_up=_of(of_broker.end_unread))
    )
    memory.add(Account(kind="retained", read=_by_company(of_broker.retained), cost=RETAINED))
    memory.add(Account(kind="inflight", read=_by_company(of_broker.inflight), cost=INFLIGHT))
    memory.add(Account(kind="partial", read=_by_company(of_broker.partial), cost=PARTIAL))
    memory.add(Account(kind="received", read=_by_company(ingest.taken.by_owner), cost=REPORTS))
    memory.add(Account(kind="effects", read=_by_company(mapper.effect_queue.waiting), cost=EFFECTS))
    memory.add(Account(kind="states", read=_round(mapper.engine.catalogue.memory), cost=STATES))
    memory.add(Account(kind="late", read=objects.marks.kept, cost=LATE))
    memory.add(Account(kind="commands", read=commands.kept, cost=COMMANDS))
    scripts = mapper.engine.catalogue.scripts
    memory.add(Account(kind="mappings", read=scripts.kept, cost=MAPPINGS))
    metadata.quotas.memory_of_mappings = lambda company_id, used: scripts.use(company_id, used, memory.most_bytes)
    memory.add(Account(kind="analyses", read=objects.analysis.kept))
    memory.add(Account(kind="bridges", read=lambda: _sum(_of_bridges(bridges)), cost=BRIDGES))
    memory.add(Account(kind="requests", read=_round(partial(_of_requests, gateway.connection_limiter)), cost=UNREAD))
    memory.add(Account(kind="made", read=lambda: _not_written(gateway.kept_answers(), unread.kept())))

    async def look() -> None:
        await _look(memory, store, entities)
        of_broker.refuse({str(owner) for owner in memory.over() if owner})

    _look_after(lifetime, look)


def share_memory_of_reads(
    memory: MemoryShares,
    lifetime: Lifetime,
    *,
    live: LiveHub,
    limiter: ConnectionLimiter,
    kept_answers: Callable[[], Mapping[int, Kept]],
    remembered: RememberedAnswers,
    store: TimeSeriesStore,
    entities: Entities,
) -> None:
    """The same for a node that answers reads alone."""
    unread = limiter.unread
    memory.add(Account(kind="rows", read=entities.kept_rows, give_up=entities.give_up_rows))
    memory.add(Account(kind="segments", read=partial(_of_store, store), give_up=store.give_up))
    memory.add(Account(kind="remembered", read=remembered.kept, give_up=remembered.give_up))
    memory.add(Account(kind="live", read=live.kept, cost=LIVE, give_up=live.give_up))
    memory.add(Account(kind="answers", read=unread.kept, cost=UNREAD, give_up=unread.give_up))
    memory.add(Account(kind="requests", read=_round(partial(_of_requests, limiter)), cost=UNREAD))
    memory.add(Account(kind="made", read=lambda: _not_written(kept_answers(), unread.kept())))
    _look_after(lifetime, partial(_look, memory, store, entities))


def _look_after(lifetime: Lifetime, look: Callable[[], Awaitable[None]]) -> None:
    """Looks at all owners now and then, and gives back to the system what was freed and is not needed again."""
    looking = lifetime.tasks.repeat("memory shares", LOOK_S, look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)
    trimming = lifetime.tasks.repeat("free memory", TRIM_LOOK_S, HeapTrimmer().look, OnFailure.RESTART)
    lifetime.push_async_callback(trimming.stop)


async def _look(memory: MemoryShares, store: TimeSeriesStore, entities: Entities) -> None:
    memory.look()
    for owner in memory.over():  # what is read again costs less than being refused
        memory.stats.given_up["rows"] += entities.give_up_rows(owner, memory.most_bytes)
        memory.stats.given_up["segments"] += store.give_up(owner, store.kept().get(owner, (0, 0))[0])


def _of_store(store: TimeSeriesStore) -> Mapping[int, Kept]:
    return {company_id: Kept(*kept) for company_id, kept in store.kept().items()}


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


def _round(begin: Callable[[], Iterator[tuple[int, int, int]]]) -> Callable[[], Mapping[int, Kept]]:
    """What many have who are looked at in rounds, some at each look."""
    going_round = Round(begin)
    return lambda: {owner: Kept(*found) for owner, found in going_round.step().items()}


def _sum(found: Iterable[tuple[int, int, int]]) -> Mapping[int, Kept]:
    sums: dict[int, Kept] = {}
    for owner, size, items in found:
        before = sums.get(owner, Kept())
        sums[owner] = Kept(before.bytes + size, before.items + items)
    return sums


def _of_bridges(bridges: Sequence[Bridge]) -> Iterator[tuple[int, int, int]]:
    for bridge in bridges:
        yield bridge.company_id, *bridge.kept()


def _of_requests(limiter: ConnectionLimiter) -> Iterator[tuple[int, int, int]]:
    for keeper in list(limiter.requests):
        yield keeper.kept()


def _not_written(made: Mapping[int, Kept], unread: Mapping[int, Kept]) -> Mapping[int, Kept]:
    """What was made and is counted nowhere else: an answer that is written counts where its peer doesn't read it."""
    return {owner: Kept(max(0, kept.bytes - unread.get(owner, Kept()).bytes)) for owner, kept in made.items()}


def _of(give_up: Callable[[str, int], int]) -> Callable[[int, int], int]:
    return lambda company_id, size: give_up(str(company_id) if company_id else "", size)
