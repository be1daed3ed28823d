"""``Node``: this process as one of several. It follows the log until it has the lease; then it serves.

A node that takes over is in the state of a platform that was killed and starts again: what the log had, its store has.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from terrazzo.config.sections import Config, ConfigError
from terrazzo.crypto.key_file import remove_drafts
from terrazzo.database.fence import DatabasePosition, Fence
from terrazzo.embedded.front_reader import FrontReaderStats
from terrazzo.embedded.front_terminals import FrontTerminalsStats
from terrazzo.embedded.peer_link import PeerLimits, PeerStats
from terrazzo.embedded.peers import Peers
from terrazzo.embedded.retained_log import RetainedLog, RetainedStats
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.ports.stream import (
    LogFull,
    LogState,
    LogUnavailable,
    LogUnusable,
    LogWentBack,
    RecordChanged,
    Revision,
    StaleWriter,
)
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.replication.checked_bytes import FrameDamaged
from terrazzo.replication.database_record import DatabaseRecords
from terrazzo.replication.follower import Follower
from terrazzo.replication.freshness import Freshness
from terrazzo.replication.front_events import HandOver, HandOverAnswer, leader_calls
from terrazzo.replication.leading import ReplicatedStore
from terrazzo.replication.lease import Lease, LeaseLost, LeaseRecord, LeaseWatch, decode_lease
from terrazzo.replication.members import LINEAGE, Member, NodeTaken, OwnRecord, members_of, trim_before
from terrazzo.replication.position import NOTE, JoinRefused, Lineage, join, read_position
from terrazzo.runtime.assembly.collectors import StatsCollector
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.cluster_metrics import CLUSTER, FRONT_TERMINALS, FRONTS, PEERS, READS, RETAINED, ClusterFigures
from terrazzo.runtime.fronts.leader import Fronts
from terrazzo.runtime.fronts.leader_sessions import open_leader_sessions
from terrazzo.runtime.fronts.sessions import new_session_log, session_collectors
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.replica.leader import LeadersReads, own_url
from terrazzo.runtime.replica.node import ReadsNode
from terrazzo.runtime.replica.replica import Replica
from terrazzo.runtime.replica.work import ReadsWork
from terrazzo.runtime.serve import Ports, open_store, open_stream
from terrazzo.runtime.standby_page import StandbyPage
from terrazzo.runtime.stream import Stream
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.access.folder_modes import close_to_others

T = TypeVar("T")

_log = logging.getLogger(__name__)

_BEAT_S = 1.0
_TRIM_S = 10.0
_AGAIN_S = 0.5
_ISOLATED_S = 30.0  # a leader that reaches no log for so long ends, so that its terminals find another node
_OUTDATED = "broker.outdated"


class Node:
    """One node. ``failed`` is set when the process has to end.

    Args:
        config: with ``stream.kind`` = jetstream.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lifetime = Lifetime()
        self.tasks: Tasks = self._lifetime.tasks
        self.failed = self._lifetime.failed
        self.collector = StatsCollector(CLUSTER, self._figures)
        self._run = secrets.token_hex(8)
        self._state = "it connects to the log"
        self._stream: Stream | None = None
        self._follower: Follower | None = None
        self._leading: ReplicatedStore | None = None
        self._fronts = (FrontReaderStats(), FrontTerminalsStats())
        self._renewed_s = 0.0  # when the last writing of the lease that succeeded began
        self._log_state = LogState("", 1, 0, 0, 0)
        self._failure_log = SparseLog(_log)
        self._successor = ""
        self._leader: LeaseRecord | None = None  # as it was seen last
        self._freshness = Freshness()
        self._reading: Task | None = None
        self._reads: ReadsNode | None = None
        self._work = ReadsWork(self._new_replica, lambda: StandbyPage(config, self.say, self.collector))
        self.handed_over = asyncio.Event()
        """Is set when this node, which leads, has to end in order, as another one is to lead."""

    async def stand_by(self, stopping: asyncio.Event) -> Ports | None:
        """Follows the log until this node has the lease: the platform's ports then. None: the process has to end.

        Raises:
            ConfigError: this node can't be one of the cluster; says why and what to do.
            StoreUnavailable, OSError: its own store can't be opened.
        """
        await self._work.start()
        try:
            return await self._unless_ended(self._lead(), stopping)
        except (LogUnusable, LogWentBack, JoinRefused, NodeTaken, FrameDamaged) as error:
            raise ConfigError(str(error)) from None
        finally:
            if self._reading is not None:
                await self._reading.stop()
            await self._work.stop()

    def say(self) -> str:
        """What the node does now, for whoever asks it for more than it can give."""
        reads, also = self._reads, ""
        if reads is not None and reads.stats.serves:
            age_s = reads.age_s()
            age = "" if age_s is None else f", {age_s:.1f} s old at most"
            also = f"; it answers reads, {reads.lag():,} frames behind{age}"
        return f"this node ({self._config.cluster.node}) stands by: {self._state}{also}"

    async def close(self) -> None:
        """Gives the lease back, so that another node takes it at once, and closes what it has opened."""
        await self._lifetime.aclose()

    async def _unless_ended(self, work: Coroutine[Any, Any, Ports], stopping: asyncio.Event) -> Ports | None:
        leading = asyncio.create_task(work, name="standing by")
        others = [asyncio.create_task(each.wait(), name="end of the process") for each in (stopping, self.failed)]
        await asyncio.wait((leading, *others), return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        if leading.done():
            return leading.result()
        leading.cancel()
        await asyncio.wait({leading})
        return None

    async def _lead(self) -> Ports:
        section, records = self._config.cluster, (await self._open_stream()).records
        own = OwnRecord(records, section.node)
        await self._again(lambda: own.claim(section.lease_s))
        kept = await self._open_store()
        follower = await self._again(lambda: self._join(kept))
        lease = Lease(records, node=section.node, run=self._run, url=own_url(self._config))
        self._lifetime.push_async_callback(lambda: self._write_record(own, has_ended=True))
        self._repeat("node record", _BEAT_S, lambda: self._write_record(own))
        following = self.tasks.spawn("follower", follower.follow, OnFailure.STOP)
        self._lifetime.push_async_callback(following.stop)
        if section.reads:
            self._start_reads(kept, follower)
        found = await self._take_lease(lease, kept)
        self._lifetime.push_async_callback(lambda: lease.give_back(self._successor))
        self._serve_calls()
        self._repeat("lease", section.lease_s / 3, self._renewal(lease))
        _log.warning("this node (%s) leads the cluster %s, epoch %d", section.node, section.name, lease.epoch)
        self._put_sessions_away(found)
        ports = await self._take_over(kept, follower, following, lease.epoch)
        await self._write_record(own)  # before it serves, so that nobody is told of a leader that follows
        return ports

    def _start_reads(self, kept: TimeSeriesStore, follower: Follower) -> None:
        """Answers reads, until this node takes over or ends."""
        calls = self._the_stream.calls
        self._kept = kept
        self._reads = ReadsNode(self._config, follower, self._freshness, calls, lambda: self._leader)
        self._reading = self.tasks.spawn("reads", self._work.work, OnFailure.RESTART)

    def _new_replica(self) -> Replica:
        assert self._reads is not None  # started
        assert self._follower is not None
        collectors = (self.collector, StatsCollector(READS, self._reads.figures))
        return Replica(self._config, self._kept, self._follower, self._reads, say=self.say, collectors=collectors)

    def _serve_calls(self) -> None:
        """Hands over to another node when it is asked to."""
        calls, name = self._the_stream.calls, leader_calls(self._config.cluster.node)
        serving = self.tasks.spawn("requests to this node", lambda: calls.serve(name, self._answer), OnFailure.RESTART)
        self._lifetime.push_async_callback(serving.stop)

    def _answer(self, body: bytes) -> bytes:
        try:
            asked = msgspec.msgpack.decode(body, type=HandOver)
        except msgspec.MsgspecError:
            return msgspec.msgpack.encode(HandOverAnswer(is_begun=False))
        _log.warning("this node (%s) hands over to %s", self._config.cluster.node, asked.successor)
        self._successor = asked.successor
        self.handed_over.set()
        return msgspec.msgpack.encode(HandOverAnswer(is_begun=True))

    def _repeat(self, name: str, interval_s: float, work: Callable[[], Awaitable[object]]) -> None:
        """Repeats some work until the node closes; what it raises ends the process."""
        self._lifetime.push_async_callback(self.tasks.repeat(name, interval_s, work, OnFailure.STOP).stop)

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """What some work finds, as soon as the log answers."""
        while True:
            try:
                return await work()
            except LogUnavailable as error:
                self._state = str(error)
                self._failure_log.warning("%s", error)
                await asyncio.sleep(_AGAIN_S)

    async def _open_stream(self) -> Stream:
        stream = await self._again(lambda: open_stream(self._config))
        self._lifetime.push_async_callback(stream.close)
        if not stream.sync.startswith("verified"):
            _log.warning("the log is %s", stream.sync)
        self._stream = stream
        return stream

    async def _open_store(self) -> TimeSeriesStore:
        self._config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_to_others(self._config.data_dir)
        remove_drafts(self._config.data_dir)
        kept = await open_store(self._config, self.tasks)
        self._lifetime.push_async_callback(kept.close)
        return kept

    async def _join(self, kept: TimeSeriesStore) -> Follower:
        """A follower at the store's place in the log; the first node of a cluster makes the record of what it is."""
        stream = self._the_stream
        log, found = await stream.log.state(), await stream.records.get(LINEAGE)
        lineage = None if found is None else msgspec.json.decode(found.value, type=Lineage)
        before = await read_position(kept)
        is_empty = not await kept.series("") and not set(await kept.notes("")) - {NOTE}
        position = join(before, lineage, log, is_empty=is_empty, new_id=secrets.token_hex(16))
        if position != before:
            await kept.append((), notes={NOTE: position.encode()})
        if lineage is None:
            made = Lineage(position.lineage, position.created, is_seeded=not is_empty)
            try:
                await stream.records.put(LINEAGE, msgspec.json.encode(made), revision=0)
            except RecordChanged:
                return await self._join(kept)
        self._follower = Follower(stream.log, kept, position)
        return self._follower

    async def _take_lease(self, lease: Lease, kept: TimeSeriesStore) -> Revision | None:
        """Waits until this node has the lease; what was found in its place."""
        section, clock = self._config.cluster, asyncio.get_running_loop().time
        watch = LeaseWatch(section.lease_s, section.node)
        while True:
            try:
                found = await lease.look()
                if watch.may_take(found, clock()):
                    await kept.check()
                    self._renewed_s = clock()
                    if await lease.take(found):
                        return found
                record = None if found is None else decode_lease(found)
                self._leader = None if record is None or record.is_free else record
                if record is not None:
                    self._state = f"the node {record.node!r} leads"
            except (LogUnavailable, StoreUnavailable) as error:
                watch.forget()
                self._state = str(error)
                self._failure_log.warning("%s", error)
            await asyncio.sleep(self._config.cluster.lease_s / 10)

    async def _take_over(self, kept: TimeSeriesStore, follower: Follower, following: Task, epoch: int) -> Ports:
        """Follows to the log's end and says there that this node leads, after which no former leader can write."""
        self._state = "it takes over"
        follower.end()
        await following.wait()
        section, log = self._config.cluster, self._the_stream.log
        while True:
            last = (await self._again(log.state)).last
            await follower.follow_to(last)
            store = ReplicatedStore(kept, log, follower.position, last=last, epoch=epoch, on_lost=self._lose)
            try:
                await store.begin(section.node, build_info().version)
            except (StaleWriter, LogUnavailable, LogFull) as error:
                self._state = str(error)
                self._failure_log.warning("%s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            break
        self._leading = store
        self._repeat("trimming of the log", _TRIM_S, self._trim)
        fence, fronts = await self._new_fence(epoch), await self._new_fronts(epoch)
        read, known = self._fronts
        of_fronts = (StatsCollector(FRONTS, lambda: read), StatsCollector(FRONT_TERMINALS, lambda: known))
        retained = StatsCollector(RETAINED, lambda: fronts.retained.stats)
        shared = (StatsCollector(PEERS, lambda: fronts.peers.stats), retained, *session_collectors(fronts.sessions))
        collectors = (self.collector, *of_fronts, *shared)
        reads = LeadersReads(self._the_stream.calls, section.node, store) if section.reads else None
        ports = Ports(fence=fence, collectors=collectors, fronts=fronts, reads=reads)

        async def opened(_config: Config, _tasks: Tasks) -> TimeSeriesStore:
            return store

        return replace(ports, open_store=opened)

    async def _new_fence(self, epoch: int) -> Fence:
        section, kept = self._config.cluster, DatabaseRecords(self._the_stream.records, now_us)
        position = DatabasePosition((await self._again(kept.read)).reached, kept.keep)
        return Fence(section.name, section.node, epoch, self._lose, position)

    async def _new_fronts(self, epoch: int) -> Fronts:
        stream, lease_s, name = self._the_stream, self._config.cluster.lease_s, leader_calls(self._config.cluster.node)
        peers = Peers(
            stream.calls,
            stream.records,
            name=name,
            epoch=epoch,
            lease_s=lease_s,
            clock=asyncio.get_running_loop().time,
            stats=PeerStats(),
            limits=PeerLimits(self._config.limits.queued_bytes),
        )
        retained = RetainedLog(
            stream.retained,
            name=f"{name}-{epoch}",
            owner_bytes=self._config.limits.queued_bytes,
            now_us=now_us,
            stats=RetainedStats(),
        )
        limits = self._config.limits
        sessions = new_session_log(stream, name, epoch, owner_bytes=limits.queued_bytes, may_do_without=True)
        shared = await open_leader_sessions(
            stream, sessions, self._again, limits=limits, lease_s=lease_s, is_held=lambda: self._is_held
        )
        logged = (stream.reports, stream.records, stream.calls)
        return Fronts(*logged, epoch, lease_s, self._lose, *self._fronts, name, peers, retained, sessions, shared)

    @property
    def _is_held(self) -> bool:
        """Whether nobody can have taken this node's lease by now."""
        return asyncio.get_running_loop().time() - self._renewed_s < self._config.cluster.lease_s

    def _renewal(self, lease: Lease) -> Callable[[], Awaitable[None]]:
        clock = asyncio.get_running_loop().time

        async def renew() -> None:
            began_s = clock()
            try:
                await lease.renew()
                self._renewed_s = began_s
            except LeaseLost as error:
                self._lose(str(error))
            except LogUnavailable as error:
                self._failure_log.warning("the lease is not renewed: %s", error)
                if clock() - self._renewed_s > max(_ISOLATED_S, 3 * self._config.cluster.lease_s):
                    self._lose(f"the log has not answered for {clock() - self._renewed_s:.0f} s")

        return renew

    def _lose(self, why: str) -> None:
        """Ends the process: another node leads, or has to."""
        if not self.failed.is_set():
            _log.critical("this node (%s) ends: %s", self._config.cluster.node, why)
            self.failed.set()

    async def _write_record(self, own: OwnRecord, *, has_ended: bool = False) -> None:
        assert self._follower is not None  # joined
        figures, clock = self._figures(), asyncio.get_running_loop().time
        age_s = None if self._reads is None else self._reads.age_s()
        member = Member(
            self._config.cluster.node,
            self._run,
            build_info().version,
            figures.sequence,
            leads=bool(figures.leads),
            seen_us=now_us(),
            sync=self._the_stream.sync,
            has_ended=has_ended,
            url=own_url(self._config),
            reads=self._reads is not None and bool(self._reads.stats.serves),
            age_s=-1.0 if age_s is None or figures.leads else age_s,
            fronts_sequence=self._fronts[0].sequence if figures.leads else -1,
        )
        try:
            await own.write(member)
            asked_s = clock()
            self._log_state = log = await self._the_stream.log.state()
            self._freshness.on_state(asked_s, log.last, self._follower.position.sequence)
        except LogUnavailable as error:
            self._failure_log.warning("%s", error)
        except NodeTaken as error:
            self._lose(str(error))

    async def _trim(self) -> None:
        stream = self._the_stream
        try:
            before = trim_before(await stream.log.state(), members_of(await stream.records.all()))
            if before:
                await stream.log.trim(before)
        except LogUnavailable as error:
            self._failure_log.warning("the log is not trimmed: %s", error)

    def _put_sessions_away(self, found: Revision | None) -> None:
        """Puts the broker's sessions and retained messages aside if another node has served since they were kept."""
        before = None if found is None else decode_lease(found).node
        folder, aside = self._config.data_dir / "broker", self._config.data_dir / _OUTDATED
        if before is None or before == self._config.cluster.node or not folder.is_dir():
            return
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        _log.warning(
            "sessions and retained messages of this node are older than those of %s, which led last: they are in %s and"
            " not used",
            before,
            aside,
        )

    @property
    def _the_stream(self) -> Stream:
        assert self._stream is not None  # opened first of all
        return self._stream

    def _figures(self) -> ClusterFigures:
        figures = ClusterFigures()
        if self._stream is not None:
            for name, value in msgspec.structs.asdict(self._stream.stats).items():
                setattr(figures, name, value)
            figures.is_verified = int(self._stream.sync.startswith("verified"))
        if self._follower is not None:
            stats, position = self._follower.stats, self._follower.position
            figures.follower_operations, figures.follower_refused = stats.operations, stats.refused
            figures.follower_failures = stats.failures
            figures.sequence, figures.epoch = position.sequence, position.epoch
        if self._leading is not None:
            led = self._leading.stats_of_log
            figures.leads, figures.leader_operations, figures.full = 1, led.operations, led.full
            figures.settled, figures.again, figures.store_again = led.settled, led.again, led.store_again
            figures.sequence, figures.epoch = self._leading.position.sequence, self._leading.position.epoch
        log = self._log_state
        figures.log_first, figures.log_bytes, figures.log_limit = log.first, log.size, log.most
        figures.lag = max(0, log.last - figures.sequence)
        return figures
