"""``Front``: a process that speaks MQTT to terminals, and puts what they report into the log, from which the leader
stores it. It has the registry from the database, and neither store nor APIs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from prometheus_client.registry import Collector

from terrazzo.config.sections import Config, ConfigError
from terrazzo.crypto.key_file import remove_drafts
from terrazzo.embedded.front_drain import FrontDrain
from terrazzo.embedded.front_hooks import FrontAnswers
from terrazzo.embedded.front_log import FrontLog, FrontLogStats
from terrazzo.embedded.peer_link import PeerLimits, PeerStats
from terrazzo.embedded.peers import Peers
from terrazzo.embedded.retained_log import RetainedLog, RetainedStats
from terrazzo.ports.stream import LogUnavailable, LogUnusable, Records
from terrazzo.ports.tasks import OnFailure, Tasks
from terrazzo.replication.front_lease import FOLLOWED, FrontLease
from terrazzo.replication.holders import Holder
from terrazzo.replication.members import NodeTaken
from terrazzo.runtime.assembly import metric_names as names
from terrazzo.runtime.assembly.collectors import BuildCollector, StatsCollector
from terrazzo.runtime.assembly.metadata import FrontMetadata, open_front_metadata
from terrazzo.runtime.assembly.mqtt_listeners import listen_mqtt
from terrazzo.runtime.assembly.part_metrics import rejects_metric
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.cluster_metrics import FRONT, PEERS, RETAINED, STREAM
from terrazzo.runtime.descriptors import prepare_descriptors
from terrazzo.runtime.fronts.peers import start_peers
from terrazzo.runtime.fronts.retained import attach_retained, start_retained
from terrazzo.runtime.fronts.sessions import (
    FrontSessions,
    attach_sessions,
    check_room,
    new_holders,
    new_session_log,
    session_collectors,
    start_sessions,
)
from terrazzo.runtime.fronts.terminals import FrontTerminals, start_front_terminals
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.serve import open_stream
from terrazzo.runtime.standby_page import StandbyPage
from terrazzo.runtime.stream import Stream
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.access.folder_modes import close_to_others

T = TypeVar("T")

_log = logging.getLogger(__name__)

_AGAIN_S = 0.5


class Front:
    """One front: ``start``, then ``stop``. ``failed`` is set when the process has to end."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lifetime = Lifetime()
        self.tasks: Tasks = self._lifetime.tasks
        self.failed = self._lifetime.failed
        self._run = secrets.token_hex(8)
        self._state = "it connects to the log"
        self._stats, self._peer_stats = FrontLogStats(), PeerStats()
        self._lease: FrontLease | None = None
        self._metadata: FrontMetadata | None = None
        self._terminals: FrontTerminals | None = None
        self._records: Records | None = None
        self._log: FrontLog | None = None
        self._followed = 0  # revision of the record of who follows what fronts tell
        self._drain: FrontDrain | None = None
        self._failure_log = SparseLog(_log)

    @property
    def _is_draining(self) -> bool:
        return self._drain is not None and self._drain.is_begun

    def say(self) -> str:
        """What this process does, for whoever asks it for more than it can give."""
        front = f"this is the front {self._config.cluster.node}: terminals connect here, all else is at the leader"
        return f"{front}; {self._state}" if self._state else front

    async def start(self) -> list[str]:
        """Opens everything and listens; the addresses for terminals.

        Raises:
            ConfigError, DatabaseUnusable, OSError: what can't be opened, and why.
        """
        config = self._config = self._prepared()
        page = StandbyPage(config, self.say, BuildCollector(build_info()), self._unready)
        await page.start()
        self._lifetime.push_async_callback(page.stop)
        try:
            stream = await self._again(lambda: open_stream(config))
            self._lifetime.push_async_callback(stream.close)
            await self._again(stream.reports.open)
            await self._again(stream.clients.open)
            check_room(stream.reports.most_bytes, config.limits)
            lease = await self._claim(stream)
        except (LogUnusable, NodeTaken) as error:
            raise ConfigError(str(error)) from None
        self._state = "it opens the database"
        metadata = self._metadata = await open_front_metadata(config, self._lifetime)
        log = FrontLog(
            stream.reports,
            node=config.cluster.node,
            epoch=lease.epoch,
            stats=self._stats,
            is_held=lambda: lease.is_held,
        )
        lease_s = config.cluster.lease_s
        holders = new_holders(stream, Holder(config.cluster.node, lease.epoch), lease_s=lease_s)
        peers, retained = self._start_peers(stream, lease), self._start_retained(stream, lease)
        sessions = self._start_sessions(stream, lease)
        terminals = await start_front_terminals(
            config,
            self._lifetime,
            metadata=metadata,
            log=log,
            holders=holders,
            peers=peers,
            sessions=sessions,
            clock=now_us,
        )
        self._terminals = terminals
        self._state = "it reads what is retained"
        await attach_retained(retained, self._lifetime, terminals.bus, terminals.broker)
        self._state = "it reads sessions"
        await attach_sessions(sessions.log, self._lifetime, terminals.bus, terminals.broker, lease_s=lease_s)
        page.add_collectors(self._collectors(stream, terminals, retained, sessions))
        drain = self._start_drain(terminals)
        answers = FrontAnswers(terminals.bus, log, holders, drain)
        calls, node = stream.calls, config.cluster.node
        serving = self.tasks.spawn(
            "requests of other nodes", lambda: calls.serve(node, answers.answer), OnFailure.RESTART
        )
        self._lifetime.push_async_callback(serving.stop)
        self._records, self._log = stream.records, log
        _, addresses = await listen_mqtt(terminals.broker, config.mqtt)
        self._state = ""
        return addresses

    def _collectors(
        self, stream: Stream, terminals: FrontTerminals, retained: RetainedLog, sessions: FrontSessions
    ) -> list[Collector]:
        return [
            StatsCollector(STREAM, lambda: stream.stats),
            StatsCollector(FRONT, lambda: self._stats),
            StatsCollector(PEERS, lambda: self._peer_stats),
            StatsCollector(RETAINED, lambda: retained.stats),
            *session_collectors(sessions.log),
            StatsCollector(names.BROKER, lambda: terminals.broker.stats),
            StatsCollector(names.INGEST, lambda: terminals.ingest.stats),
            rejects_metric(terminals.ingest.stats),
        ]

    async def stop(self) -> None:
        """Stops reading, has the log acknowledge what was taken, closes connections."""
        await self._lifetime.aclose()

    def reload_certificates(self) -> None:
        """Reads the TLS files of MQTT again, for connections still to come."""
        if self._terminals is not None and self._config.mqtt.has_tls:
            self._terminals.broker.reload_certificates()

    def _prepared(self) -> Config:
        """The configuration with as many connections as there are descriptors for; makes the data folder."""
        plan = prepare_descriptors(self._config.limits)
        folder = self._config.data_dir
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_to_others(folder)
        remove_drafts(folder)
        return self._config.with_connections(plan.connections, plan.of_apis)

    async def _claim(self, stream: Stream) -> FrontLease:
        section, clock = self._config.cluster, asyncio.get_running_loop().time
        self._state = "it waits until an earlier start of it is over"
        lease = FrontLease(stream.records, node=section.node, run=self._run, lease_s=section.lease_s, clock=clock)
        await self._again(lambda: lease.claim(now_us()))
        self._lease = lease
        self._lifetime.push_async_callback(lease.give_back)
        renewing = self.tasks.repeat("lease of this front", section.lease_s / 3, self._renew, OnFailure.STOP)
        self._lifetime.push_async_callback(renewing.stop)
        return lease

    def _start_drain(self, terminals: FrontTerminals) -> FrontDrain:
        """One that waits until an operator asks for it."""
        drain = self._drain = FrontDrain(
            terminals.broker.stop_listening,
            bus=terminals.bus,
            ingest=terminals.ingest,
            presence=terminals.presence,
        )
        draining = self.tasks.spawn("drain of this front", drain.work, OnFailure.RESTART)
        self._lifetime.push_async_callback(draining.stop)
        return drain

    def _start_peers(self, stream: Stream, lease: FrontLease) -> Peers:
        section = self._config.cluster
        peers = Peers(
            stream.calls,
            stream.records,
            name=section.node,
            epoch=lease.epoch,
            lease_s=section.lease_s,
            clock=asyncio.get_running_loop().time,
            stats=self._peer_stats,
            limits=PeerLimits(self._config.limits.queued_bytes),
        )
        start_peers(peers, stream.calls, self._lifetime, name=section.node, lease_s=section.lease_s)
        return peers

    def _start_retained(self, stream: Stream, lease: FrontLease) -> RetainedLog:
        retained = RetainedLog(
            stream.retained,
            name=f"{self._config.cluster.node}-{lease.epoch}",
            owner_bytes=self._config.limits.queued_bytes,
            now_us=now_us,
            stats=RetainedStats(),
        )
        start_retained(retained, self._lifetime)
        return retained

    def _start_sessions(self, stream: Stream, lease: FrontLease) -> FrontSessions:
        node, queued = self._config.cluster.node, self._config.limits.queued_bytes
        log = new_session_log(stream, node, lease.epoch, owner_bytes=queued)
        sessions = FrontSessions(log, now_us, lambda: lease.is_held)
        start_sessions(sessions.log, self._lifetime)
        return sessions

    async def _renew(self) -> None:
        assert self._lease is not None  # claimed
        clients = 0 if self._terminals is None else len(self._terminals.presence)
        try:
            await self._lease.renew(
                version=build_info().version,
                seen_us=now_us(),
                clients=clients,
                frames=self._stats.frames,
                drains=self._is_draining,
            )
            await self._look_for_leader()
        except LogUnavailable as error:
            self._failure_log.warning("%s", error)
        except NodeTaken as error:
            _log.critical("this front ends: %s", error)
            self.failed.set()

    async def _look_for_leader(self) -> None:
        """Names all terminals to a leader that has just begun to follow."""
        if self._records is None or self._log is None:
            return
        found = await self._records.get(FOLLOWED)
        if found is not None and found.revision != self._followed:
            self._followed = found.revision
            self._log.tell_all()

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """What some work finds, as soon as the log answers."""
        while True:
            try:
                return await work()
            except LogUnavailable as error:
                self._state = str(error)
                self._failure_log.warning("%s", error)
                await asyncio.sleep(_AGAIN_S)

    def _unready(self) -> dict[str, str]:
        """The parts of a front that aren't ready."""
        found = {"front": self._state} if self._state else {}
        terminals = self._terminals
        if self._is_draining and terminals is not None:
            clients = len(terminals.presence)
            left = f"{clients:,} are still connected" if clients else "it is empty"
            found["front"] = f"it is drained: no terminal is let in any more, {left}"
        elif terminals is not None and not terminals.broker.is_listening:
            found["mqtt"] = "the broker does not listen"
        if terminals is not None and not terminals.ingest.is_healthy:
            found["ingest"] = (
                "the log does not take what terminals report: nothing is acknowledged, and they aren't read"
            )
        return found
