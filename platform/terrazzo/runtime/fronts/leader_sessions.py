"""Has a leader's own clients share their sessions and wills with those at fronts, and with the next leader."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from terrazzo.config.limits import LimitsSection
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.sessions.former import FormerSessions
from terrazzo.embedded.sessions.leader_storage import LeaderStorage
from terrazzo.embedded.sessions.log import SessionLog
from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.ports.stream import Calls, LogUnusable
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.front_events import EndRequest, FrontAnswer, holder_calls
from terrazzo.replication.holders import Holder
from terrazzo.runtime.fronts.sessions import FrontSessions, check_room, new_holders
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.stream import Stream
from terrazzo.times import now_us
from terrazzo_broker.broker import Broker
from terrazzo_broker.persistence import DiskStorage

_log = logging.getLogger(__name__)

_decode = msgspec.msgpack.Decoder(EndRequest).decode


class LeaderSessions:
    """Sessions, wills and client ids of a leader's own clients, among those of all nodes.

    Args:
        sessions: what this node does for the sessions of all.
        is_held: whether nobody can have taken this node's lease by now.
    """

    def __init__(self, stream: Stream, sessions: SessionLog, *, lease_s: float, is_held: Callable[[], bool]) -> None:
        self._own = Holder(*sessions.own)
        self._sessions = FrontSessions(sessions, now_us, is_held)
        self._calls: Calls = stream.calls
        self._folder: DiskStorage | None = None
        self.logins = SharedLogins(new_holders(stream, self._own, lease_s=lease_s), self._sessions.takeover)

    def storage(self, folder: DiskStorage) -> LeaderStorage:
        """That of the broker, which has a folder of its own as well."""
        self._folder = folder
        return LeaderStorage(self._sessions.storage, folder)

    def attach(self, broker: Broker, bus: EmbeddedBus, lifetime: Lifetime) -> None:
        """Names the broker, feeds its sessions, and ends connections that other nodes take over."""
        self._sessions.attach(broker, lifetime)

        def answer(body: bytes) -> bytes:
            try:
                uid = _decode(body).uid
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return msgspec.msgpack.encode(FrontAnswer(is_done=False))
            self.logins.holders.let_go(uid)
            bus.end_taken_over(uid)
            return msgspec.msgpack.encode(FrontAnswer(is_done=True))

        name = holder_calls(self._own.node)
        serving = lifetime.tasks.spawn(
            "client ids that other nodes take", lambda: self._calls.serve(name, answer), OnFailure.RESTART
        )
        lifetime.push_async_callback(serving.stop)

    async def move_former(self, broker: Broker, owner_of: Callable[[str], str]) -> None:
        """Has in the log what the folder has of sessions and wills; before anybody is let in."""
        assert self._folder is not None  # the storage was made
        log, name = self._sessions.log, f"{self._own.node}-{self._own.epoch}"
        former = FormerSessions(self._folder, log.states, log.queues, name=name, owner_of=owner_of, now_us=now_us)
        await former.move(broker.core)


async def open_leader_sessions(
    stream: Stream,
    sessions: SessionLog,
    again: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
    *,
    limits: LimitsSection,
    lease_s: float,
    is_held: Callable[[], bool],
) -> LeaderSessions | None:
    """What a leader's own clients share; None, and said: the servers have no room for that, so that their sessions
    stay with this node. ``again``: does some work as soon as the log answers; ``limits``: what a report may take."""
    try:
        check_room(stream.reports.most_bytes, limits)
        for each in (stream.sessions, stream.queues, stream.clients):
            await again(each.open)
    except LogUnusable as error:
        _log.warning("sessions of terminals at this node are kept by it alone: %s", error)
        return None
    return LeaderSessions(stream, sessions, lease_s=lease_s, is_held=is_held)
