"""``SessionLog``: follows the sessions and wills of all nodes; does what is due, and what dead nodes have left, once.

Each change of a record names the one before, so that of all nodes that find something to be done one does it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

import msgspec

from terrazzo.embedded.sessions.follower import StreamFollower
from terrazzo.embedded.sessions.queue_sender import QueueSender, QueueStats
from terrazzo.embedded.sessions.record_writer import RecordStats, RecordWriters
from terrazzo.embedded.sessions.view import SessionView
from terrazzo.ports.stream import (
    LogFull,
    Logged,
    LogUnavailable,
    LogUnusable,
    QueueLog,
    RecordChanged,
    Records,
    StateLog,
)
from terrazzo.replication.front_events import leader_calls
from terrazzo.replication.front_lease import FRONT_PREFIX, decode_front
from terrazzo.replication.lease import KEY, decode_lease
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.session_record import (
    SESSION,
    WILL,
    SessionRecord,
    WillRecord,
    decode_group,
    decode_session,
    decode_will,
    encode_session,
    encode_will,
)
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.broker import Broker
from terrazzo_broker.core import BrokerCore
from terrazzo_broker.persistence.records import RecordError
from terrazzo_broker.persistence.records import decode_will as decode_body
from terrazzo_broker.scheduling.deadlines import Deadlines
from terrazzo_broker.settings import NEVER_EXPIRES_S
from terrazzo_broker.wills import PendingWill

_log = logging.getLogger(__name__)

_REMOVED_S = 3_600.0  # for so long the log keeps that there is nothing any more; each node has read it by then
_OTHERS_US = 2_000_000  # after which others do what a living node should have done
_JITTER_S = 0.5  # so that not all nodes begin at the same moment
_AT_A_LOOK = 1_000  # things that are done at a look; the next one follows
_LOOK_S = 0.2


class SessionStats(msgspec.Struct):
    """Counters since the start."""

    expired: int = 0  # sessions that this node has ended
    orphaned: int = 0  # sessions and wills of dead nodes that it has taken care of
    wills: int = 0  # wills of clients of other nodes, or whose time has come, that it has published
    damaged: int = 0  # records that can't be read


class SessionLog:
    """What a node does for the sessions of all.

    Args:
        states: of sessions and wills.
        queues: of sessions.
        records: of nodes.
        own: this node, and which of its starts.
        owner_bytes: what may wait for the log of one company.
        may_do_without: this node goes on where the servers have no room for sessions, until they have.
    """

    def __init__(
        self,
        states: StateLog,
        queues: QueueLog,
        records: Records,
        *,
        own: tuple[str, int],
        owner_bytes: int,
        now_us: Callable[[], int],
        may_do_without: bool = False,
    ) -> None:
        name = f"{own[0]}-{own[1]}"
        self.stats = SessionStats()
        self.queue_stats, self.record_stats = QueueStats(), RecordStats()
        self.sender = QueueSender(queues, name=name, owner_bytes=owner_bytes, stats=self.queue_stats)
        self.view = SessionView(self.sender)
        self.writers = RecordWriters(states, name=name, stats=self.record_stats)
        self.on_will_gone: Callable[[str, int], None] = _ignored
        self.own = own
        self.states = states
        self.queues = queues
        self._records = records
        self._now_us = now_us
        self._core: BrokerCore | None = None
        self.wills: dict[str, tuple[int, WillRecord]] = {}  # by client id, with the number of the message
        self._deadlines = Deadlines()
        self._followed = (
            StreamFollower(
                states,
                self._on_state,
                self._on_reset,
                again=lambda: self.record_stats.again,
                may_do_without=may_do_without,
            ),
            StreamFollower(
                queues,
                self._on_group,
                self._on_reset_queues,
                again=lambda: self.queue_stats.again,
                may_do_without=may_do_without,
            ),
        )
        self._published: dict[tuple[str, int], None] = {}  # wills whose records are to be removed
        self._ending: dict[str, int] = {}  # generations of sessions whose clients may have them no more
        self._leftovers: set[str] = set()  # that were seen at the last look
        self._failure_log = SparseLog(_log)

    def attach(self, broker: Broker) -> None:
        """Names the broker, once, before anything else."""
        self._core = broker.core
        self.view.attach(broker.core)

    async def follow(self) -> None:
        """Reads what all nodes say of sessions, until it is cancelled."""
        await self._followed[0].follow()

    async def follow_queues(self) -> None:
        """Reads what waits for sessions, once it is known which there are, until it is cancelled."""
        await self._followed[0].loaded.wait()
        await self._followed[1].follow()

    async def loaded(self) -> None:
        """Returns when all is known that was there at the start."""
        for each in self._followed:
            await each.loaded.wait()

    # What the log has

    def _on_state(self, logged: Logged) -> None:
        kind, client_id = logged.key if len(logged.key) == 2 else ("", "")
        try:
            if kind == SESSION:
                self._on_session(client_id, logged.sequence, decode_session(logged.body) if logged.body else None)
            elif kind == WILL:
                self._on_will(client_id, logged.sequence, decode_will(logged.body) if logged.body else None)
        except NodeMessageDamaged as error:
            self.stats.damaged += 1
            self._failure_log.warning("%s", error)

    def _on_session(self, client_id: str, sequence: int, record: SessionRecord | None) -> None:
        self.view.on_record(client_id, sequence, record)
        name = SESSION + client_id
        if record is None or not record.expires_us:
            self._deadlines.cancel(name)
        else:
            self._deadlines.set(name, record.expires_us)

    def _on_will(self, client_id: str, sequence: int, record: WillRecord | None) -> None:
        name = WILL + client_id
        if record is None:
            self.wills.pop(client_id, None)
            self._deadlines.cancel(name)
            self.on_will_gone(client_id, sequence)
            return
        self.wills[client_id] = sequence, record
        if not record.due_us or record.is_claimed:
            self._deadlines.cancel(name)
        else:
            is_others = record.node not in ("", self.own[0])
            self._deadlines.set(name, record.due_us + _OTHERS_US * is_others)

    def _on_group(self, logged: Logged) -> None:
        try:
            group = decode_group(logged.body)
        except NodeMessageDamaged as error:
            self.stats.damaged += 1
            self._failure_log.warning("%s", error)
            return
        if len(logged.key) == 1:
            self.view.on_group(logged, group)

    def _on_reset(self) -> None:
        self.view.forget_all()
        self.wills.clear()

    def _on_reset_queues(self) -> None:
        self.view.forget_groups()

    # What is due

    async def work(self) -> None:
        """Does what is due, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                for number, name in enumerate(self._deadlines.pop_due(self._now_us()), 1):
                    await self._on_due(name[0], name[1:])
                    if number >= _AT_A_LOOK:
                        break
                await self._remove_published()
                await self._end_all()
            except (LogFull, LogUnavailable, LogUnusable) as error:
                self._failure_log.warning("what is due of sessions waits: %s", error)

    async def _on_due(self, kind: str, client_id: str) -> None:
        try:
            if kind == WILL:
                await self._claim_will(client_id)
            else:
                await self._expire(client_id)
        except (LogFull, LogUnavailable, LogUnusable):
            self._deadlines.set(kind + client_id, self._now_us())
            raise

    async def _claim_will(self, client_id: str) -> None:
        """Publishes a will whose time has come, unless another node does."""
        if client_id not in self.wills:
            return
        last, record = self.wills[client_id]
        claimed = msgspec.structs.replace(record, node=self.own[0], epoch=self.own[1], is_claimed=True)
        sequence = await self._replace((WILL, client_id), encode_will(claimed), last)
        if sequence:
            self._on_will(client_id, sequence, claimed)
            self.publish(claimed, sequence)

    def publish(self, record: WillRecord, sequence: int) -> None:
        """Publishes a will that this node has claimed; its record, of this number, is removed when it is stored."""
        core, key = self._core, (record.client_id, sequence)
        assert core is not None  # attached
        try:
            pending = decode_body(record.body).pending(record.client_id, "")
        except RecordError as error:
            self.stats.damaged += 1
            self._failure_log.warning("%s", error)
            self._published[key] = None
            return
        self.stats.wills += 1
        is_kept = False

        def keep(_pending: PendingWill) -> Callable[[], None]:
            nonlocal is_kept
            is_kept = True
            return lambda: self._published.update({key: None})

        core.publish_pending(pending, None, keep)
        if not is_kept:
            self._published[key] = None

    async def _remove_published(self) -> None:
        for key in list(self._published):
            client_id, sequence = key
            await self._replace((WILL, client_id), b"", sequence)
            del self._published[key]

    async def _expire(self, client_id: str) -> None:
        known, core = self.view.find(client_id), self._core
        if known is None or known.record is None or core is None or known.record.node:
            return
        if not 0 < known.record.expires_us <= self._now_us():
            return
        await self._end(client_id, known.sequence)

    async def _end(self, client_id: str, last: int) -> bool:
        """Ends a session, if its record is still the one of this number."""
        before = self.view.last + 1
        sequence = await self._replace((SESSION, client_id), b"", last)
        if sequence:
            self.stats.expired += 1
            self._on_session(client_id, sequence, None)
            await self.queues.purge((client_id,), before=before)
        return bool(sequence)

    def end(self, client_id: str) -> None:
        """Has a session ended whose client may have it no more, if it is away: in a moment, by one of the nodes."""
        known = self.view.find(client_id)
        if known is not None and known.record is not None:
            self._ending[client_id] = known.generation

    async def _end_all(self) -> None:
        for client_id, generation in list(self._ending.items()):
            found = await self.states.get((SESSION, client_id))
            if found is not None and _is_of(found, generation) and not await self._end(client_id, found.sequence):
                continue  # its node has just written: at the next look
            del self._ending[client_id]

    async def _replace(self, key: tuple[str, str], body: bytes, last: int) -> int:
        """The number of a record that was changed; 0: another node was faster."""
        lasts_s = 0.0 if body else _REMOVED_S
        try:
            return await self.states.replace(key, body, last=last, message_id=self.writers.new_id(), lasts_s=lasts_s)
        except RecordChanged:
            return 0

    # What dead nodes have left

    async def look(self) -> None:
        """Takes care of what nodes have left that are dead."""
        try:
            dead = await self._dead()
            if not dead:
                return await self._remove_leftovers()
            await asyncio.sleep(random.uniform(0, _JITTER_S))  # nosec B311 - chooses no secret
            await self._take_care(dead)
        except (LogFull, LogUnavailable, LogUnusable) as error:
            self._failure_log.warning("what dead nodes have left is not known: %s", error)
        return None

    async def _dead(self) -> set[tuple[str, int]]:
        """The starts of nodes that are named in records, and are no more."""
        named = {(each.node, each.epoch) for each in self.view.records() if each.node}
        named |= {(each.node, each.epoch) for _, each in self.wills.values() if each.node}
        return {each for each in named if not await self.is_alive(*each)}

    async def is_alive(self, node: str, epoch: int) -> bool:
        """Whether this start of a node may still have connections.

        Raises:
            LogUnavailable: unknown.
        """
        if (node, epoch) == self.own:
            return True
        if node.startswith(leader_calls("")):
            found = await self._records.get(KEY)
            lease = None if found is None else decode_lease(found)
            return lease is not None and (leader_calls(lease.node), lease.epoch, lease.is_free) == (node, epoch, False)
        found = await self._records.get(FRONT_PREFIX + node)
        front = None if found is None else decode_front(found.value)
        return front is not None and (front.epoch, front.is_free) == (epoch, False)

    async def _take_care(self, dead: set[tuple[str, int]]) -> None:
        now_us = self._now_us()
        left = [each for each in self.view.records() if (each.node, each.epoch) in dead]
        for record in left[:_AT_A_LOOK]:
            known = self.view.find(record.client_id)
            if known is None or known.record is not record:
                continue
            expires_us = 0 if record.expiry_s == NEVER_EXPIRES_S else now_us + record.expiry_s * 1_000_000
            away = msgspec.structs.replace(record, node="", epoch=0, expires_us=expires_us)
            if not record.expiry_s:
                await self._end(record.client_id, known.sequence)
            elif sequence := await self._replace((SESSION, record.client_id), encode_session(away), known.sequence):
                self.stats.orphaned += 1
                self._on_session(record.client_id, sequence, away)
        wills = [(client_id, *each) for client_id, each in self.wills.items()]
        for client_id, last, will in [each for each in wills if (each[2].node, each[2].epoch) in dead][:_AT_A_LOOK]:
            if self.wills.get(client_id) != (last, will):
                continue
            due_us = will.due_us or now_us + will.delay_s * 1_000_000
            free = msgspec.structs.replace(will, node="", epoch=0, due_us=due_us, is_claimed=False)
            if sequence := await self._replace((WILL, client_id), encode_will(free), last):
                self.stats.orphaned += 1
                self._on_will(client_id, sequence, free)

    async def _remove_leftovers(self) -> None:
        """Removes what waits for sessions that have ended: it was under way then."""
        now = set(self.view.leftovers())
        for client_id in sorted(now & self._leftovers)[:_AT_A_LOOK]:
            await self.queues.purge((client_id,), before=self.view.last + 1)
            self.view.forget_leftovers(client_id)
        self._leftovers = now


def _is_of(found: Logged, generation: int) -> bool:
    """Whether a message has the state of this session of its client id."""
    try:
        return bool(found.body) and decode_session(found.body).generation == generation
    except NodeMessageDamaged:
        return False


def _ignored(client_id: str, sequence: int) -> None:
    pass
