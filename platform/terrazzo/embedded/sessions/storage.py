"""``LogStorage``: the storage of a front's broker. Sessions that outlive their connections are in the log."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path

import mqtt5

from terrazzo.embedded.sessions.feeder import Feeder
from terrazzo.embedded.sessions.journal import LoggedJournal, LoggedSession
from terrazzo.embedded.sessions.queue_sender import QueueSender
from terrazzo.embedded.sessions.record_writer import RecordWriter, RecordWriters
from terrazzo.embedded.sessions.view import SessionView
from terrazzo.embedded.sessions.wills import LoggedWills
from terrazzo.ports.stream import LogUnavailable, LogUnusable, QueueLog
from terrazzo.replication.session_record import SESSION, QueuedMessage, decode_session
from terrazzo_broker.delivery.connection_port import Origin
from terrazzo_broker.delivery.queue_share import QueueShares
from terrazzo_broker.delivery.routing import MessageReceiver
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.hooks import Client, FormerOwners
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.scheduling.deadlines import Deadlines
from terrazzo_broker.scheduling.turns import Turns
from terrazzo_broker.settings import BrokerSettings
from terrazzo_broker.stats import Stats
from terrazzo_broker.topics.retained import RetainedMessages
from terrazzo_broker.topics.tree import SubscriptionTree
from terrazzo_broker.wills import PendingWill

_log = logging.getLogger(__name__)

_LAST_S = 1.5  # for what is written when the broker closes
_SWEEP_WRITERS = 1_000


class LogStorage:
    """Sessions by client id: those in the log while their clients are connected here, others in memory.

    Args:
        own: this node, and which of its starts.
        is_held: whether no other node can have its sessions by now. One that stood still sends nothing more of them.
        now_us: UTC microseconds.
    """

    def __init__(
        self,
        writers: RecordWriters,
        queues: QueueLog,
        view: SessionView,
        sender: QueueSender,
        *,
        own: tuple[str, int],
        is_held: Callable[[], bool],
        now_us: Callable[[], int],
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.queues = QueueShares()
        self.retained: RetainedMessages[ApplicationMessage] = RetainedMessages()
        self.deadlines = Deadlines()
        self.feeder = Feeder(queues, view, is_held)
        self.wills = LoggedWills(writers, own=own, is_held=is_held)
        self._writers = writers
        self._log = queues
        self._view = view
        self._sender = sender
        self._own = own
        self._now_us = now_us
        self._states: dict[str, RecordWriter] = {}  # of sessions here, and of those that have just gone
        self._over: deque[str] = deque()  # client ids whose writers may be forgotten
        self._purges: dict[str, int] = {}  # client id, and up to which group nobody needs anything
        self._purging = asyncio.Event()

    @property
    def is_failing(self) -> bool:
        """Whether the log takes nothing now."""
        return self._writers.is_failing

    def restore(
        self,
        settings: BrokerSettings,
        stats: Stats,
        tree: SubscriptionTree[MessageReceiver],
        owners: FormerOwners,
        turns: Turns,
    ) -> None:
        """Does nothing: a session is read when its client comes."""

    # Sessions

    def writer(self, client_id: str) -> RecordWriter:
        """That of a client's state, to go on with."""
        found = self._states.get(client_id)
        if found is None:
            found = self._states[client_id] = RecordWriter(self._writers, (SESSION, client_id))
        self._over.append(client_id)
        return found

    def create(self, client_id: str, settings: BrokerSettings, stats: Stats, *, outlives: bool, owner: str) -> Session:
        """A new session, in the log if it is to outlive its connection."""
        share = self.queues.of(owner, settings)
        if not outlives:
            session = self.sessions[client_id] = Session(client_id, settings, stats, owner=owner, share=share)
            return session
        made = self.new_session(client_id, settings, stats, owner, max(1, self._now_us()))
        self.sessions[client_id] = made
        return made

    def new_session(
        self, client_id: str, settings: BrokerSettings, stats: Stats, owner: str, generation: int
    ) -> LoggedSession:
        """A session whose state this node writes."""
        writer, view = self.writer(client_id), self._view

        def on_ended() -> None:
            self.purge(client_id, view.last + 1)

        def put(message: ApplicationMessage) -> bool:
            queued = QueuedMessage(
                message.topic, message.payload, message.qos, message.retain, message.properties, message.expires_us
            )
            return self._sender.offer(client_id, generation, owner, queued)

        journal = LoggedJournal(
            writer, own=self._own, on_room=lambda: self.feeder.feed_soon(client_id), on_ended=on_ended
        )
        session = LoggedSession(
            client_id,
            settings,
            stats,
            journal,
            owner=owner,
            share=self.queues.of(owner, settings),
            generation=generation,
            put=put,
        )
        journal.attach(session)
        writer.on_written = lambda sequence, body: self._on_written(client_id, sequence, body)
        writer.on_lost = lambda: self._on_lost(session)
        return session

    def _on_written(self, client_id: str, sequence: int, body: bytes) -> None:
        record = decode_session(body) if body else None
        dropped = self._view.on_record(client_id, sequence, record)
        known = self._view.find(client_id)
        if dropped and known is not None:
            self.purge(client_id, known.groups[0].sequence if known.groups else self._view.last + 1)
        if record is not None and record.node:
            self.feeder.feed_soon(client_id)

    def _on_lost(self, session: LoggedSession) -> None:
        """Another node has it."""
        connection = session.connection
        if connection is not None:
            connection.close("taken over", reason=mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER)

    def discard(self, session: Session) -> None:
        """Forgets a session that has ended, or goes on elsewhere."""
        if self.sessions.get(session.client_id) is session:
            del self.sessions[session.client_id]
            self._over.append(session.client_id)

    # What nobody needs any more

    def purge(self, client_id: str, before: int) -> None:
        """Has what waits in a session's queue removed up to a group."""
        self._purges[client_id] = max(before, self._purges.get(client_id, 0))
        self._purging.set()

    async def work(self) -> None:
        """Removes from the log what clients have, until it is cancelled."""
        while True:
            await self._purging.wait()
            self._purging.clear()
            purges, self._purges = self._purges, {}
            for client_id, before in purges.items():
                try:
                    await self._log.purge((client_id,), before=before)
                except (LogUnavailable, LogUnusable):
                    self.purge(client_id, before)
            await asyncio.sleep(1.0)  # what comes meanwhile goes together

    # Wills

    def note_will(self, will: mqtt5.Will, client: Client, origin: Origin | None) -> None:
        """Has the log keep a connected client's will, for whoever finds this node dead."""
        session = self.sessions[client.client_id]
        self.wills.note(will, client, session.expiry_s, origin if session.is_shared else None)

    def leave_will(self, pending: PendingWill, due_us: int) -> None:
        """Keeps the will of a client that is no longer connected, until ``due_us`` (UTC microseconds)."""
        self.wills.leave(pending, due_us, self._now_us())

    def take_will(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where its client is no longer connected."""
        return self.wills.take(client_id)

    def keep_published(self, pending: PendingWill) -> Callable[[], None]:
        """Keeps a will that is published, until what is returned is called."""
        return self.wills.keep(pending.client.client_id)

    # Time

    def on_sweep(self, now_us: int) -> None:
        """Forgets writers of sessions that are elsewhere; feeds sessions that took no more."""
        self.feeder.look_again()
        self.wills.sweep()
        for _ in range(min(len(self._over), _SWEEP_WRITERS)):
            client_id = self._over.popleft()
            writer = self._states.get(client_id)
            if writer is None or client_id in self.sessions:
                continue
            if writer.is_idle and not writer.is_held:
                del self._states[client_id]
            else:
                self._over.append(client_id)

    async def checkpoint(self, path: Path) -> None:
        """Nothing to do: nothing is on this node's disk."""

    async def close(self) -> None:
        """Waits a moment until the log has all."""
        try:
            async with asyncio.timeout(_LAST_S):
                for writer in list(self._states.values()):
                    await writer.idle()
                await self.wills.idle()
        except TimeoutError:
            _log.warning("not all of what sessions are is in the log: what isn't is sent again")
