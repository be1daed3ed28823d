"""Has the leader store what fronts have taken, from the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.front_reader import SOURCE, FrontReader, FrontReaderStats
from terrazzo.embedded.front_terminals import FrontTerminals, FrontTerminalsStats
from terrazzo.embedded.peers import Peers
from terrazzo.embedded.retained_log import RetainedLog
from terrazzo.embedded.sessions.log import SessionLog
from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.ports.stream import (
    Calls,
    LogUnavailable,
    LogUnusable,
    LogWentBack,
    RecordChanged,
    Records,
    ReportLog,
)
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.checked_bytes import FrameDamaged
from terrazzo.replication.front_events import Connected
from terrazzo.replication.front_lease import FOLLOWED, FRONT_PREFIX, decode_front
from terrazzo.replication.in_position import IN_NOTE, InPosition, read_in_position
from terrazzo.replication.lease import LeaseWatch
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.fronts.leader_sessions import LeaderSessions
from terrazzo.runtime.fronts.peers import attach_peers, start_peers
from terrazzo.runtime.fronts.retained import attach_retained, start_retained
from terrazzo.runtime.fronts.sessions import attach_sessions, start_sessions
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.broker import Broker

_log = logging.getLogger(__name__)

_LOOK_S = 1.0  # for a log that no front has made yet
_TRIM_S = 10.0


class Fronts(msgspec.Struct, frozen=True):
    """What fronts have taken, and who they are; ``epoch``: of this node's lease; ``lose`` ends the process, with why;
    ``stats``: counters; ``name``: this node's among ``peers``, which hear what its clients publish."""

    log: ReportLog
    records: Records
    calls: Calls
    epoch: int
    lease_s: float
    lose: Callable[[str], None]
    stats: FrontReaderStats
    terminal_stats: FrontTerminalsStats
    name: str
    peers: Peers
    retained: RetainedLog
    sessions: SessionLog
    shared: LeaderSessions | None  # of this node's own clients; None: they keep them here


def begin_fronts(fronts: Fronts, lifetime: Lifetime) -> None:
    """Starts what tells other nodes, before there is a broker: what happens while that one closes is told, too."""
    start_peers(fronts.peers, fronts.calls, lifetime, name=fronts.name, lease_s=fronts.lease_s)
    start_retained(fronts.retained, lifetime)
    start_sessions(fronts.sessions, lifetime)


async def attach_fronts(
    fronts: Fronts, lifetime: Lifetime, *, bus: EmbeddedBus, broker: Broker, registry: Registry
) -> None:
    """Has the broker's clients hear those at other nodes, and share with them what is retained and what sessions have;
    nobody is let in before."""
    attach_peers(fronts.peers, bus, broker)
    await attach_retained(fronts.retained, lifetime, bus, broker, ends_of=registry)
    if fronts.shared is not None:
        fronts.shared.attach(broker, bus, lifetime)
    await attach_sessions(fronts.sessions, lifetime, bus, broker, lease_s=fronts.lease_s, ends_of=registry)
    if fronts.shared is not None:

        def owner_of(client_id: str) -> str:
            terminal = registry.terminal(client_id)
            return "" if terminal is None else terminal.owner

        await fronts.shared.move_former(broker, owner_of)


def start_fronts(
    fronts: Fronts, lifetime: Lifetime, *, store: TimeSeriesStore, messaging: TerminalMessaging, registry: Registry
) -> None:
    """Follows the log of reports from now on, as soon as there is one."""
    failure_log = SparseLog(_log)

    async def follow() -> None:
        position = await _find(fronts.log, store, failure_log)
        terminals = _new_terminals(fronts, messaging, registry)
        reader = FrontReader(
            fronts.log,
            position,
            ingest=messaging.ingest,
            registry=registry,
            presence=messaging.presence,
            terminals=terminals,
            stats=fronts.stats,
            lose=fronts.lose,
        )
        _log.info("what fronts have taken is stored up to frame %d", position.sequence)
        messaging.ingest.noter = reader
        messaging.bus.add_source(SOURCE, reader.cut)
        sending = lifetime.tasks.spawn("messages to fronts", terminals.work, OnFailure.RESTART)
        lifetime.push_async_callback(sending.stop)
        watch = FrontWatch(fronts.records, terminals, lease_s=fronts.lease_s, clock=asyncio.get_running_loop().time)
        watching = lifetime.tasks.repeat("leases of fronts", fronts.lease_s / 3, watch.look, OnFailure.RESTART)
        lifetime.push_async_callback(watching.stop)
        lifetime.callback(reader.end)
        await reader.follow()

    async def work() -> None:
        try:
            await follow()
        except (LogWentBack, LogUnusable, FrameDamaged) as error:
            fronts.lose(str(error))

    async def trim() -> None:
        try:
            note = (await store.notes(IN_NOTE)).get(IN_NOTE)
            if note is not None:
                await fronts.log.trim(msgspec.msgpack.decode(note, type=InPosition).sequence + 1)
        except (LogUnavailable, StoreUnavailable) as error:
            failure_log.warning("the fronts' log is not trimmed: %s", error)

    following = lifetime.tasks.spawn("reports of fronts", work, OnFailure.STOP)
    trimming = lifetime.tasks.repeat("trimming of the fronts' log", _TRIM_S, trim, OnFailure.RESTART)
    lifetime.push_async_callback(following.stop)
    lifetime.push_async_callback(trimming.stop)


def _new_terminals(fronts: Fronts, messaging: TerminalMessaging, registry: Registry) -> FrontTerminals:
    terminals = FrontTerminals(
        fronts.calls,
        epoch=fronts.epoch,
        stats=fronts.terminal_stats,
        registry=registry,
        presence=messaging.presence,
        end_older=partial(end_older, messaging.bus, None if fronts.shared is None else fronts.shared.logins),
        on_ready=messaging.on_ready,
        on_late_fate=messaging.commands.on_late_fate,
        is_alone=fronts.shared is not None,
    )
    messaging.bus.elsewhere = messaging.commands.elsewhere = terminals
    return terminals


def end_older(bus: EmbeddedBus, logins: SharedLogins | None, event: Connected) -> bool:
    """Ends this node's connection of a terminal that is at a front by now; False where it came here after that.

    Which is later the records of client ids say; clocks do where a node that keeps its own sessions has no record.
    """
    if logins is None or not event.claim:
        return bus.end_older(event.uid, event.connected_us)
    if logins.has_since(event.uid, event.claim):
        return False
    bus.end_taken_over(event.uid)
    return True


class FrontWatch:
    """Has fronts name their terminals once, and finds out which of them are dead."""

    def __init__(
        self, records: Records, terminals: FrontTerminals, *, lease_s: float, clock: Callable[[], float]
    ) -> None:
        self._records = records
        self._terminals = terminals
        self._lease_s = lease_s
        self._clock = clock
        self._watches: dict[str, LeaseWatch] = {}  # by front
        self._is_said = False
        self._failure_log = SparseLog(_log)

    async def look(self) -> None:
        """Looks at the records of the fronts that have terminals."""
        try:
            await self._say_once()
            nodes = self._terminals.nodes()
            self._watches = {node: self._watches.get(node) or LeaseWatch(self._lease_s) for node in nodes}
            for node, watch in self._watches.items():
                await self._look_at(node, watch)
        except LogUnavailable as error:
            for watch in self._watches.values():
                watch.forget()
            self._failure_log.warning("which fronts live is not known: %s", error)

    async def _say_once(self) -> None:
        if self._is_said:
            return
        found = await self._records.get(FOLLOWED)
        try:
            await self._records.put(FOLLOWED, b"1", revision=found.revision if found is not None else 0)
        except RecordChanged:
            return  # said by another leader: once more, the next time
        self._is_said = True

    async def _look_at(self, node: str, watch: LeaseWatch) -> None:
        found = await self._records.get(FRONT_PREFIX + node)
        if not watch.may_take(found, self._clock()):
            return
        if found is not None and not decode_front(found.value).is_free:
            dead = msgspec.structs.replace(decode_front(found.value), is_free=True)
            try:
                await self._records.put(FRONT_PREFIX + node, msgspec.json.encode(dead), revision=found.revision)
            except RecordChanged:
                return  # it lives
            _log.warning("the front %s has not shown for %g s that it lives", node, self._lease_s)
        self._terminals.on_front_gone(node)


async def _find(log: ReportLog, store: TimeSeriesStore, failure_log: SparseLog) -> InPosition:
    """Where the store is in the log, as soon as there is one."""
    while True:
        try:
            if await log.is_there():
                return await read_in_position(store, await log.state())
        except (LogUnavailable, StoreUnavailable) as error:
            failure_log.warning("what fronts have taken is not read: %s", error)
        await asyncio.sleep(_LOOK_S)
