"""``SessionView``: the sessions of all nodes, as the log has them; each queues for them what is published there."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from terrazzo.embedded.sessions.journal import subscription_of
from terrazzo.embedded.sessions.queue_sender import QueueSender
from terrazzo.ports.stream import Logged
from terrazzo.replication.session_record import (
    QueuedMessage,
    QueueGroup,
    SessionRecord,
    place_of,
)
from terrazzo_broker.core import BrokerCore
from terrazzo_broker.delivery.connection_port import Origin, SessionConnection
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.topics.names import split_shared
from terrazzo_broker.topics.tree import TopicSubscription


class ViewStats(msgspec.Struct):
    """How it is now, and counters since the start."""

    sessions: int = 0  # of all nodes
    filters: int = 0  # topic filters that they have subscribed to
    messages: int = 0  # that wait in the log, for all of them
    bytes: int = 0  # of these
    refused: int = 0  # messages that a session, or its company, had no room for


class Waiting(NamedTuple):
    """A group in a session's queue."""

    sequence: int
    messages: int
    size: int
    generation: int

    @property
    def last_place(self) -> int:
        """Of its last message."""
        return place_of(self.sequence, self.messages - 1)


class KnownSession:
    """A session, and what waits for it."""

    __slots__ = (
        "client_id",
        "filters",
        "generation",
        "groups",
        "messages",
        "newest",
        "receiver",
        "record",
        "sequence",
        "size",
    )

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.sequence = 0  # of the record
        self.record: SessionRecord | None = None
        self.generation = 0
        self.groups: deque[Waiting] = deque()  # bounded as what may wait is
        self.messages = 0
        self.size = 0
        self.newest: dict[str, int] = {}  # number of the last group, by the start of the node that has put it there
        self.receiver: QueueReceiver | None = None
        self.filters: dict[str, TopicSubscription] = {}  # that the receiver is in the tree with


class QueueReceiver:
    """Stands in the tree of subscriptions for a session, wherever its client is: what it is handed goes into the
    session's queue in the log. At QoS 0 only while the client is connected."""

    __slots__ = ("_known", "_view", "client_id", "connection", "has_ended", "owner")

    is_local = False
    is_elsewhere = True  # what comes from another node is queued there already
    is_persistent = False  # it is the log that keeps it

    def __init__(self, known: KnownSession, owner: str, view: SessionView) -> None:
        self.client_id = known.client_id
        self.owner = owner
        self.connection: SessionConnection | None = None
        self.has_ended = False
        self._known = known
        self._view = view

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Puts it into the log; False: there is no room."""
        return self._view.queue(self._known, message)


class SessionView:
    """What all nodes know of sessions, a moment behind the log.

    ``on_waiting`` is told of a session for which something waits anew.
    """

    def __init__(self, sender: QueueSender) -> None:
        self.stats = ViewStats()
        self.on_waiting: Callable[[KnownSession, int, bytes], None] = _ignored
        self._sender = sender
        self.last = 0  # number of the group that was read last
        self._core: BrokerCore | None = None
        self._sessions: dict[str, KnownSession] = {}
        self._messages: Counter[str] = Counter()  # that wait, by owner
        self._bytes: Counter[str] = Counter()

    def attach(self, core: BrokerCore) -> None:
        """Names the broker, once."""
        self._core = core

    def find(self, client_id: str) -> KnownSession | None:
        """A session, or what waits for one that isn't known."""
        return self._sessions.get(client_id)

    def records(self) -> Iterable[SessionRecord]:
        """All sessions."""
        return [each.record for each in self._sessions.values() if each.record is not None]

    def leftovers(self) -> list[str]:
        """Client ids for which something waits that no session is to have."""
        return [each.client_id for each in self._sessions.values() if each.record is None and each.groups]

    # What is published here

    def queue(self, known: KnownSession, message: ApplicationMessage) -> bool:
        """Puts a message into a session's queue; False: there is no room, or no such session."""
        record, core = known.record, self._core
        if record is None or core is None:
            return True
        if not message.qos and not record.node:
            return True
        queued = QueuedMessage(
            message.topic, message.payload, message.qos, message.retain, message.properties, message.expires_us
        )
        if not self._has_room(known, record, queued.size, core):
            self.stats.refused += 1
            core.stats.drop("queue full")
            return not message.qos
        return self._sender.offer(known.client_id, known.generation, record.owner, queued) or not message.qos

    def _has_room(self, known: KnownSession, record: SessionRecord, size: int, core: BrokerCore) -> bool:
        settings, owner = core.settings, record.owner
        limits = core.limits_of(owner)
        if known.size + size > settings.queued_bytes or (
            not record.node and known.messages >= settings.queued_messages
        ):
            return False
        if self._messages[owner] >= limits.queued_messages:
            return False
        return self._bytes[owner] + size <= limits.queued_bytes

    # What the log has

    def on_record(self, client_id: str, sequence: int, record: SessionRecord | None) -> int:
        """A session's state is another, or it has ended (None). How many groups nobody needs any more."""
        known = self._known(client_id)
        if sequence <= known.sequence:
            return 0
        before = len(known.groups)
        self._count(known, -1)
        least = known.generation + 1 if record is None else record.generation
        needed = 0 if record is None else first_needed(record)
        known.groups = deque(each for each in known.groups if each.generation >= least and each.last_place >= needed)
        known.sequence, known.record = sequence, record
        known.generation = 0 if record is None else record.generation
        known.messages = sum(each.messages for each in known.groups)
        known.size = sum(each.size for each in known.groups)
        self._count(known, 1)
        self.stats.filters -= len(known.filters)
        self._subscribe(known, record)
        self.stats.filters += len(known.filters)
        if record is None and not known.groups:
            del self._sessions[client_id]
        return before - len(known.groups)

    def on_group(self, logged: Logged, group: QueueGroup) -> None:
        """Something waits anew for a session; what is there twice, as an answer was lost, counts once."""
        client_id, sequence = logged.key[0], logged.sequence
        self.last = sequence
        known = self._known(client_id)
        node, _, number = logged.message_id.rpartition("-q")
        if number.isdecimal():
            if int(number) <= known.newest.get(node, 0):
                return
            known.newest[node] = int(number)
        if group.generation < known.generation or (known.groups and sequence <= known.groups[-1].sequence):
            return
        if known.record is not None and place_of(sequence, group.count) <= first_needed(known.record):
            return
        self._count(known, -1)
        known.groups.append(Waiting(sequence, group.count, group.size, group.generation))
        known.messages += group.count
        known.size += group.size
        self._count(known, 1)
        self.on_waiting(known, sequence, logged.body)

    def forget_all(self) -> None:
        """The log was made anew."""
        for known in list(self._sessions.values()):
            self.on_record(known.client_id, known.sequence + 1, None)

    def forget_groups(self) -> None:
        """The queues were made anew."""
        self.last = 0
        for known in self._sessions.values():
            self._count(known, -1)
            known.groups.clear()
            known.messages = known.size = 0
            self._count(known, 1)

    def forget_leftovers(self, client_id: str) -> None:
        """What waited for nobody is removed."""
        known = self._sessions.get(client_id)
        if known is not None and known.record is None:
            self._count(known, -1)
            del self._sessions[client_id]

    def _known(self, client_id: str) -> KnownSession:
        found = self._sessions.get(client_id)
        if found is None:
            found = self._sessions[client_id] = KnownSession(client_id)
        return found

    def _count(self, known: KnownSession, sign: int) -> None:
        """Counts a session, or counts it off as it was counted before."""
        self.stats.messages += sign * known.messages
        self.stats.bytes += sign * known.size
        if known.record is None:
            return
        owner = known.record.owner
        self.stats.sessions += sign
        self._messages[owner] += sign * known.messages
        self._bytes[owner] += sign * known.size
        if not self._messages[owner]:
            del self._messages[owner], self._bytes[owner]

    def _subscribe(self, known: KnownSession, record: SessionRecord | None) -> None:
        """Brings the tree up to date."""
        core = self._core
        assert core is not None  # attached before anything is read
        wanted: dict[str, TopicSubscription] = {}
        for each in () if record is None else record.subscriptions:
            if not each.filter.startswith("$share/") or (record is not None and record.node):  # it has a share of it
                wanted[each.filter] = subscription_of(each)
        receiver = known.receiver
        if receiver is not None and (record is None or receiver.owner != record.owner):
            self._unsubscribe(core, receiver, list(known.filters), known)
            receiver.has_ended = True
            receiver = known.receiver = None
        if record is None:
            return
        if receiver is None:
            receiver = known.receiver = QueueReceiver(known, record.owner, self)
        self._unsubscribe(core, receiver, [each for each in known.filters if each not in wanted], known)
        for pattern, subscription in wanted.items():
            if known.filters.get(pattern) != subscription:
                known.filters[pattern] = subscription
                core.add_receiver(receiver, subscription)

    def _unsubscribe(self, core: BrokerCore, receiver: QueueReceiver, patterns: list[str], known: KnownSession) -> None:
        for pattern in patterns:
            del known.filters[pattern]
            shared = split_shared(pattern)
            if shared is not None:
                core.tree.remove(shared.filter, shared.group, receiver)
        core.stats.subscriptions = core.tree.count


def first_needed(record: SessionRecord) -> int:
    """The first place of a session's queue that somebody may still ask for."""
    return min([record.handled + 1, *(place for _, place in record.sent if place)])


def _ignored(known: KnownSession, sequence: int, body: bytes) -> None:
    pass
