"""Starts what keeps persistent sessions and wills of several nodes in the log."""

from __future__ import annotations

import logging
from asyncio import get_running_loop, timeout
from collections.abc import Callable

import msgspec

from terrazzo.config.limits import LimitsSection
from terrazzo.domain.registry import Registry
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.sessions.log import SessionLog
from terrazzo.embedded.sessions.storage import LogStorage
from terrazzo.embedded.sessions.takeover import SessionTakeover
from terrazzo.ports.stream import LogUnavailable, LogUnusable
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.front_events import EndRequest, FrontAnswer, holder_calls
from terrazzo.replication.holders import Holder, Holders
from terrazzo.replication.in_frame import most_in_frame
from terrazzo.runtime.assembly.collectors import StatsCollector
from terrazzo.runtime.cluster_metrics import SESSION_QUEUES, SESSION_RECORDS, SESSION_VIEW, SESSIONS
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.stream import Stream
from terrazzo.times import now_us
from terrazzo_broker.broker import Broker

_log = logging.getLogger(__name__)

_LAST_S = 1.5  # for what was published last


def check_room(most_bytes: int, limits: LimitsSection) -> None:
    """Refuses servers whose messages (their bodies) are too small for the largest report.

    Raises:
        LogUnusable: names the keys.
    """
    needed = most_in_frame(limits.mqtt_packet_bytes, limits.topic_bytes)
    if most_bytes < needed:
        raise LogUnusable(
            f"stream.url: the servers' max_payload leaves {most_bytes:,} bytes, and a report may take {needed:,}"
            " with its topic: set max_payload to 8MB, or limits.mqtt_packet_bytes or limits.topic_bytes to less"
        )


def new_session_log(
    stream: Stream, name: str, epoch: int, *, owner_bytes: int, may_do_without: bool = False
) -> SessionLog:
    """What this node does for the sessions of all."""
    return SessionLog(
        stream.sessions,
        stream.queues,
        stream.records,
        own=(name, epoch),
        owner_bytes=owner_bytes,
        now_us=now_us,
        may_do_without=may_do_without,
    )


def session_collectors(sessions: SessionLog) -> list[StatsCollector]:
    """Its figures in ``/metrics``."""
    return [
        StatsCollector(SESSIONS, lambda: sessions.stats),
        StatsCollector(SESSION_VIEW, lambda: sessions.view.stats),
        StatsCollector(SESSION_RECORDS, lambda: sessions.record_stats),
        StatsCollector(SESSION_QUEUES, lambda: sessions.queue_stats),
    ]


def start_sessions(sessions: SessionLog, lifetime: Lifetime) -> None:
    """Starts putting changes into the log, before there is a broker: what happens while it closes goes there, too."""
    for name, work in (
        ("states of sessions to the log", sessions.writers.work),
        ("messages for sessions to the log", sessions.sender.work),
    ):
        lifetime.push_async_callback(lifetime.tasks.spawn(name, work, OnFailure.RESTART).stop)
    lifetime.push_async_callback(_send_last, sessions)


def new_holders(stream: Stream, own: Holder, *, lease_s: float) -> Holders:
    """The client ids of this node, among those of all."""

    async def end(node: str, uid: str, timeout_s: float) -> bool:
        """Has another node end a connection."""
        try:
            body = msgspec.msgpack.encode(EndRequest(uid))
            answer = await stream.calls.ask(holder_calls(node), body, timeout_s=timeout_s)
            return msgspec.msgpack.decode(answer, type=FrontAnswer).is_done
        except (LogUnavailable, msgspec.MsgspecError):
            return False

    clock = get_running_loop().time
    return Holders(stream.clients, stream.records, end, own=own, lease_s=lease_s, clock=clock)


async def attach_sessions(
    sessions: SessionLog,
    lifetime: Lifetime,
    bus: EmbeddedBus,
    broker: Broker,
    *,
    lease_s: float,
    ends_of: Registry | None = None,
) -> None:
    """Has a broker queue for the sessions of all, from the return on, and this node do what is due. ``ends_of``: it
    ends those of terminals that are not in the registry any more; None: another node does."""
    sessions.attach(broker)
    bus.holders.append(sessions.sender)
    bus.session_ends = sessions.end
    for name, work in (
        ("sessions of all nodes", sessions.follow),
        ("what waits for sessions", sessions.follow_queues),
        ("what is due of sessions", sessions.work),
    ):
        lifetime.push_async_callback(lifetime.tasks.spawn(name, work, OnFailure.RESTART).stop)
    looking = lifetime.tasks.repeat("sessions of dead nodes", lease_s / 3, sessions.look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)
    await sessions.loaded()
    for record in [] if ends_of is None else list(sessions.view.records()):
        terminal = ends_of.terminal(record.client_id)  # type: ignore[union-attr]
        if terminal is None or terminal.owner != record.owner:
            sessions.end(record.client_id)


class FrontSessions:
    """The sessions of a broker: its storage, and how it takes them over. ``is_held``: as ``LogStorage`` has."""

    def __init__(self, sessions: SessionLog, clock: Callable[[], int], is_held: Callable[[], bool]) -> None:
        self.log = sessions
        self.storage = LogStorage(
            sessions.writers,
            sessions.queues,
            sessions.view,
            sessions.sender,
            own=sessions.own,
            is_held=is_held,
            now_us=clock,
        )
        self.takeover = SessionTakeover(
            sessions.states,
            sessions.writers,
            self.storage,
            sessions.view,
            own=sessions.own,
            is_alive=sessions.is_alive,
            publish_will=sessions.publish,
            now_us=clock,
        )
        sessions.on_will_gone = self.storage.wills.on_gone

    def attach(self, broker: Broker, lifetime: Lifetime) -> None:
        """Names the broker, and feeds its sessions."""
        self.storage.feeder.attach(broker.core)
        self.takeover.attach(broker.core)
        for name, work in (
            ("messages for sessions from the log", self.storage.feeder.work),
            ("removal of what sessions have", self.storage.work),
        ):
            lifetime.push_async_callback(lifetime.tasks.spawn(name, work, OnFailure.RESTART).stop)


async def _send_last(sessions: SessionLog) -> None:
    try:
        async with timeout(_LAST_S):
            await sessions.sender.idle()
    except TimeoutError:
        _log.warning("not all of what was published for sessions is in the log")
