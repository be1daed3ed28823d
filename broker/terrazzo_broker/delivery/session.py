"""A client's session: subscriptions, unacknowledged and queued messages, across connections. [MQTT-4.1]"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..codec.writer import PUBREL, ack
from ..hooks import Outcome
from ..message import ApplicationMessage, TrackedMessage
from ..scheduling.turns import Steps
from ..settings import NEVER_EXPIRES_S, BrokerSettings
from ..stats import Stats
from ..topics.tree import TopicSubscription
from .connection_port import Origin, SessionConnection
from .empty import NOTHING
from .encoder import LONG_BYTES, PublishEncoder, Rendered, Wire
from .qos import Received, SenderStep, SenderSteps, Sent
from .queue_share import QueueShare
from .sent_messages import MayRead, MessageJournal, SentMessages, always

_HIGHEST_ID = 65_535
_UNKNOWN: Any = object()
_FREE, _PUBCOMP_DUE = int(Sent.FREE), int(Sent.PUBCOMP_DUE)
_DONE, _RELEASE = SenderStep.DONE, SenderStep.RELEASE


class SessionJournal(MessageJournal, Protocol):
    """Makes the changes of one session durable.

    ``origin``: the connection whose packet caused the change; ``connection``: the session's own. Where the protocol
    promises durability, their answers wait for the commit.
    """

    def opened(self, session: Session) -> None:
        """A connection has taken the session over."""

    def closed(self, session: Session) -> None:
        """The session's connection has ended; its expiry interval begins."""

    def expiry_set(self, session: Session, origin: Origin | None) -> None:
        """The Session Expiry Interval was set."""

    def ended(self, origin: Origin | None) -> None:
        """The session has ended: all its records are deleted."""

    def subscribed(self, subscription: TopicSubscription, connection: Origin | None) -> None:
        """A subscription was added, in the place of one to the same filter."""

    def unsubscribed(self, pattern: str, connection: Origin | None) -> None:
        """The subscription to this filter was removed."""

    def received(self, identifier: int, connection: Origin | None) -> None:
        """A QoS 2 publish from the client was taken; PUBREC follows."""

    def released(self, identifier: int, connection: Origin | None) -> None:
        """The client has released a QoS 2 publish (PUBREL); PUBCOMP follows."""


class Session(SentMessages):
    """One client's session. It does no I/O: what is to be sent goes into the list that a method is given.

    ``owner`` is whose client it belongs to, ``share`` what may wait in all of the owner's sessions. ``journal`` makes
    changes durable; None: the session is in memory only. ``origin``, where a method takes it, is the connection whose
    packet causes the change.
    """

    is_local = False  # whether it is the embedding program's own
    is_elsewhere = False  # whether it stands for clients of another broker

    __slots__ = (
        "client_id",
        "connection",
        "expires_us",
        "expiry_s",
        "has_ended",
        "incoming",
        "journal",
        "owner",
        "queue",
        "queued_bytes",
        "queued_qos0",
        "stats",
        "subscriptions",
    )

    def __init__(
        self,
        client_id: str,
        settings: BrokerSettings,
        stats: Stats,
        journal: SessionJournal | None = None,
        *,
        owner: str = "",
        share: QueueShare | None = None,
    ) -> None:
        super().__init__(settings, share or QueueShare(owner))
        self.client_id = client_id
        self.owner = owner
        self.stats = stats
        self.journal = journal
        self.connection: SessionConnection | None = None
        self.expiry_s = 0
        self.expires_us = 0  # while offline; 0 is never
        self.subscriptions: dict[str, TopicSubscription] = NOTHING
        self.incoming: dict[int, object | None] = NOTHING  # QoS 2 publishes not yet released; the batch storing them
        self.queue: deque[ApplicationMessage] | None = None
        self.queued_bytes = 0
        self.queued_qos0 = 0
        self.has_ended = False  # it takes nothing any more

    @property
    def is_persistent(self) -> bool:
        """Whether it is kept on disk as well."""
        return self.journal is not None

    @property
    def queued(self) -> int:
        """How many messages are queued for the client."""
        return len(self.queue) if self.queue else 0

    def subscribe(self, subscription: TopicSubscription) -> None:
        """Adds a subscription, or replaces the one to the same filter. [MQTT-3.8.4-3]"""
        subscriptions = self.subscriptions = {} if self.subscriptions is NOTHING else self.subscriptions
        subscriptions[subscription.filter] = subscription
        if self.journal is not None:
            self.journal.subscribed(subscription, self.connection)

    def unsubscribe(self, pattern: str) -> bool:
        """Removes a subscription, not what was begun under it; False where there was none. [MQTT-3.10.4-3] of both"""
        if pattern not in self.subscriptions:
            return False
        del self.subscriptions[pattern]
        if self.journal is not None:
            self.journal.unsubscribed(pattern, self.connection)
        return True

    # From the client

    def takes_as_new(self, identifiers: Sequence[int], *, version: int) -> bool:
        """Whether QoS 2 publishes with these identifiers are neither repeated nor too many. [MQTT-4.3.3-10]"""
        if version == 5 and len(self.incoming) + len(identifiers) > self.settings.inflight_from_client:
            return False
        return len(set(identifiers)) == len(identifiers) and self.incoming.keys().isdisjoint(identifiers)

    def received(self, identifier: int) -> Received:
        """The state of the QoS 2 publish with this identifier."""
        batch = self.incoming.get(identifier, _UNKNOWN)
        return Received.NEW if batch is _UNKNOWN else Received.TAKEN if batch is None else Received.STORING

    def receive(self, identifier: int, batch: object | None = None) -> None:
        """Notes a QoS 2 publish from the client, with the batch that must be settled before it counts as received."""
        incoming = self.incoming = {} if self.incoming is NOTHING else self.incoming
        incoming[identifier] = batch
        if batch is None and self.journal is not None:
            self.journal.received(identifier, self.connection)

    def release(self, identifier: int) -> None:
        """Frees the identifier of a QoS 2 publish."""
        if identifier not in self.incoming:
            return
        del self.incoming[identifier]
        if self.journal is not None:
            self.journal.released(identifier, self.connection)

    # To the client

    def transmit(self, wires: Sequence[Wire], out: list[bytes], origin: Origin | None) -> list[int] | None:
        """Sends rendered messages, or queues them; the indexes of those without room, None where all had room."""
        refused: list[int] | None = None
        for index, (qos, head, tail, message) in enumerate(wires):
            if not qos:  # [MQTT-3.3.4-10] [MQTT-4.9.0-3]
                out.append(head + tail)
            elif self._may_send(message):  # [MQTT-3.3.4-9] [MQTT-4.9.0-2]
                out.append(head + self._assign(message, origin) + tail)
            elif not self.enqueue(message, origin):
                refused = [*(refused or ()), index]
        return refused

    def transmit_all(self, rendered: Rendered) -> bytes | None:
        """The joined packets of messages that can all be sent now; None where ``transmit`` has to be used, because some
        would be queued or each has to be journaled.

        Receivers whose next identifier is the same, as in a fan-out, share the bytes.
        """
        if self.journal is not None:
            return None
        count, first = len(rendered.wires), self.last_id + 1
        if self.quota < count or self.queue or first + count > _HIGHEST_ID or not rendered.is_plain:
            return None
        identifiers, inflight = range(first, first + count), self.inflight
        if inflight and not inflight.keys().isdisjoint(identifiers):
            return None
        if inflight is NOTHING:
            inflight = self.inflight = {}
        inflight.update(zip(identifiers, rendered.messages, strict=True))
        self.last_id += count
        self.quota -= count
        return rendered.joined(first)

    def send(
        self, message: ApplicationMessage, encoder: PublishEncoder, out: list[bytes], now_us: int, origin: Origin | None
    ) -> bool:
        """Sends one message by the receiver's own encoder, or queues it; False where there is no room."""
        if message.qos:
            is_plain = self.quota > 0 and not self.queue and len(message.payload) <= LONG_BYTES
            if not is_plain and not self._may_send(message):  # [MQTT-3.3.4-9] [MQTT-4.9.0-2]
                return self.enqueue(message, origin)
        self._send(message, encoder, out, now_us, origin)
        return True

    def _may_send(self, message: ApplicationMessage) -> bool:
        """Whether a new QoS 1 or 2 message goes out now: none waits, and there is room in number and bytes."""
        if self.quota <= 0 or self.queue:
            return False
        if len(message.payload) <= LONG_BYTES:
            return True
        if self.share.is_closed and self.inflight_bytes:  # whoever acknowledges gets on, one by one
            return False
        return self.share.bytes + message.size <= self.share.most_bytes and self._has_window(message)

    def _send(
        self, message: ApplicationMessage, encoder: PublishEncoder, out: list[bytes], now_us: int, origin: Origin | None
    ) -> None:
        identifier = self._next_id() if message.qos else 0
        packet = encoder.encode(message, identifier, now_us)
        if packet is None:  # as if it had been delivered [MQTT-3.1.2-25]
            self.lose(message, "too large for the client")
            return
        if identifier:
            self._note_sent(message, identifier, origin)
        out.append(packet)

    def _assign(self, message: ApplicationMessage, origin: Origin | None) -> bytes:
        """Assigns a message its packet identifier; as two bytes. DUP is 0. [MQTT-4.3.2-2] [MQTT-4.3.3-2]"""
        identifier = self._next_id()
        self._note_sent(message, identifier, origin)
        return identifier.to_bytes(2, "big")

    def _note_sent(self, message: ApplicationMessage, identifier: int, origin: Origin | None) -> None:
        if self.journal is not None:
            message = self.journal.sent(message, identifier, self.connection, origin)
        if self.inflight is NOTHING:
            self.inflight = {}
        self.inflight[identifier] = message
        if len(message.payload) > LONG_BYTES:
            self._add_inflight(message, 1)
        self.last_id = identifier
        self.quota -= 1

    def enqueue(self, message: ApplicationMessage, origin: Origin | None) -> bool:
        """Queues a message; a full queue drops its oldest QoS 0 message first. False: no room.

        [MQTT-3.1.2-5] of 3.1.1
        """
        if self.journal is not None:
            message = self.journal.storable(message)
        queue = self.queue
        if queue is None:
            queue = self.queue = deque()
        size, share = message.size, self.share
        if self._is_full(queue, size) and not self._give_up_oldest(queue):
            if not message.qos:
                self.stats.drop("queue full")
                return True
            return False
        if share.is_closed or share.messages >= share.most_messages or share.bytes + size > share.most_bytes:
            share.tell_full()
            self.stats.limited_owner_queues += 1
            return not message.qos
        queue.append(message)
        self.queued_bytes += size
        share.messages += 1
        share.bytes += size
        self.queued_qos0 += not message.qos
        if self.journal is not None:
            self.journal.queued(message, origin)
        return True

    def _is_full(self, queue: deque[ApplicationMessage], size: int) -> bool:
        if self.queued_bytes + size > self.settings.queued_bytes:
            return True
        return self.connection is None and len(queue) >= self.settings.queued_messages

    def _give_up_oldest(self, queue: deque[ApplicationMessage]) -> bool:
        if not self.queued_qos0:
            return False
        for index, queued in enumerate(queue):
            if not queued.qos:
                del queue[index]
                self.queued_bytes -= queued.size
                self.share.take(queued.size)
                self.queued_qos0 -= 1
                self.stats.drop("queue full")
                return True
        return False

    def open(self, window: int) -> None:
        """Continues on a new connection; ``window``: how many unacknowledged messages the client takes at a time."""
        self.window = self.quota = window  # [MQTT-4.9.0-1]
        self.kept_quota = 0
        self.expires_us = 0
        self.redeliver = deque(self.inflight) if self.inflight else None
        if self.journal is not None:
            self.journal.opened(self)

    def pump(self, encoder: PublishEncoder, out: list[bytes], now_us: int, may_read: MayRead = always) -> int:
        """Sends what the quota allows, unacknowledged messages first and in their order; how many were sent.

        [MQTT-4.4.0-1] [MQTT-4.6.0-1] of both

        Raises:
            StorageError: a payload can't be read; its message stays where it is.
        """
        before = len(out)
        if self.redeliver and not self._send_again(encoder, out, now_us, may_read):
            return len(out) - before
        queue = self.queue
        while queue and (not (message := queue[0]).qos or (self.quota > 0 and self._has_window(message))):
            if not message.payload and message.disk_bytes:
                if not self._send_stored(queue, encoder, out, now_us, may_read):
                    break
                continue
            queue.popleft()
            size = message.size
            self.queued_bytes -= size
            self.share.take(size)
            self.queued_qos0 -= not message.qos
            if message.expires_us and message.expires_us <= now_us:  # [MQTT-3.3.2-5]
                self.lose(message, "expired")
            else:
                self._send(message, encoder, out, now_us, None)  # it is written down, if it is to be
        if not queue:
            self.queue = None
        return len(out) - before

    def _send_stored(
        self,
        queue: deque[ApplicationMessage],
        encoder: PublishEncoder,
        out: list[bytes],
        now_us: int,
        may_read: MayRead,
    ) -> bool:
        """Sends the first queued message, whose payload is on disk and stays there alone; False: not now."""
        message = queue[0]
        is_over = 0 < message.expires_us <= now_us  # [MQTT-3.3.2-5]
        whole = message if is_over else self._read(message, may_read)
        if whole is None:
            return False
        queue.popleft()
        self.queued_bytes -= message.size
        self.share.take(message.size, message.disk_bytes)
        identifier = self._next_id()
        packet = None if is_over else encoder.encode(whole, identifier, now_us)
        if packet is None:
            self.lose(message, "expired" if is_over else "too large for the client")
            return True
        self._note_sent(message, identifier, None)
        self._add_inflight(message, 1)
        out.append(packet)
        return True

    def _read(self, message: ApplicationMessage, may_read: MayRead) -> ApplicationMessage | None:
        """A message with its payload; None where that isn't to be read now."""
        if not message.disk_bytes or self.journal is None:
            return message
        return self.journal.read(message) if may_read(message.disk_bytes) else None

    def _send_again(self, encoder: PublishEncoder, out: list[bytes], now_us: int, may_read: MayRead) -> bool:
        """Sends what former connections have left unacknowledged; False: not all of it now."""
        self.quota, self.kept_quota = min(self.window, self.quota + self.kept_quota), 0
        while self.redeliver:
            identifier = self.redeliver[0]
            message = whole = self.inflight.get(identifier)
            if message is not None:
                if self.quota <= 0:
                    return False
                whole = message if message.payload else self._read(message, may_read)
                if whole is None:  # nothing new overtakes it meanwhile
                    self.quota, self.kept_quota = 0, self.quota
                    return False
            self.redeliver.popleft()
            if identifier in self.inflight:
                self._redeliver(identifier, whole, encoder, out, now_us)
        return True

    def _redeliver(
        self, identifier: int, whole: ApplicationMessage | None, encoder: PublishEncoder, out: list[bytes], now_us: int
    ) -> None:
        if whole is None:  # [MQTT-4.3.3-6]; [MQTT-4.3.3-1] of 3.1.1
            out.append(ack(PUBREL, identifier, 0, encoder.version))
            return
        # Even if it has expired by now [MQTT-4.3.3-7].
        packet = encoder.encode(whole, identifier, now_us, duplicate=True)  # [MQTT-3.3.1-1] of both
        if packet is None:
            message = self.inflight.pop(identifier)
            assert message is not None
            self._add_inflight(message, -1)
            self.lose(message, "too large for the client")
            return
        self.quota -= 1
        out.append(packet)

    def acknowledge(self, steps: SenderSteps, identifiers: Sequence[int], reason: int = 0) -> tuple[set[int], int]:
        """Applies acknowledgements of one kind, whose row of the table is ``steps``; returns the identifiers that are
        not found, and the first one for which another packet is due (those after it are not applied), or 0.

        A message that is done goes to nobody else. [MQTT-4.4.0-2] [MQTT-4.8.2-6]
        """
        inflight, journal, is_done, is_released = self.inflight, self.journal, _DONE, _RELEASE
        unknown: set[int] = set()
        done = 0
        for identifier in identifiers:
            message = inflight.get(identifier, _UNKNOWN)
            if message is _UNKNOWN:
                if steps[_FREE] is SenderStep.NOT_FOUND:
                    unknown.add(identifier)
                continue
            step = steps[_PUBCOMP_DUE if message is None else message.qos]
            if self.inflight_bytes and step in (is_done, is_released):
                self._add_inflight(message, -1)
            if step is is_done:
                del inflight[identifier]
                done += 1
                if journal is not None:
                    journal.done(message, identifier)
            elif step is is_released:
                inflight[identifier] = None
                if journal is not None and message is not None:
                    journal.confirmed(message, identifier, self.connection)
            else:
                return unknown, identifier
            if type(message) is TrackedMessage:
                message.on_outcome(Outcome(acknowledged=True, reason=reason))
        self.quota = min(self.window, self.quota + done)
        return unknown, 0

    def lose(self, message: ApplicationMessage, reason: str) -> None:
        """Drops a message: counts it by ``reason``, and tells the sender of a tracked one."""
        if self.journal is not None:
            self.journal.lost(message)
        self.stats.drop(reason)
        if isinstance(message, TrackedMessage):
            message.on_outcome(Outcome(acknowledged=False))

    def drop_forbidden(self, may_receive: Callable[[bytes], bool]) -> None:
        """Drops the messages that wait or aren't acknowledged on topics (UTF-8) that the client may not receive."""
        kept: deque[ApplicationMessage] = deque()
        forbidden: list[ApplicationMessage] = []
        for each in self.queue or ():
            (kept if may_receive(each.topic) else forbidden).append(each)
        if forbidden:
            for each in forbidden:
                self.share.take(each.size, each.disk_bytes)
            self.queue = kept or None
            self.queued_bytes = sum(each.size for each in kept)
            self.queued_qos0 = sum(not each.qos for each in kept)
        for identifier, message in list(self.inflight.items()):
            if message is not None and not may_receive(message.topic):
                del self.inflight[identifier]
                self._add_inflight(message, -1)
                forbidden.append(message)
        for message in forbidden:
            self.lose(message, "not permitted any more")

    def end(self, origin: Origin | None) -> Steps[None]:
        """Drops all that was still to be delivered; none of it goes to another member of a share. [MQTT-4.8.2-5]"""
        self.has_ended = True
        if self.journal is not None:
            self.journal.ended(origin)
        waiting = [message for message in self.inflight.values() if message is not None]
        for sent in waiting:
            self._add_inflight(sent, -1)
        for queued in self.queue or ():
            waiting.append(queued)
            self.share.take(queued.size, queued.disk_bytes)
        self.inflight = NOTHING
        self.queue = None
        self.queued_bytes = self.queued_qos0 = 0
        self.incoming = NOTHING  # a batch that is settled later finds nothing to write down
        for message in waiting:
            self.lose(message, "session ended")
            yield

    def set_expiry(self, expiry_s: int, origin: Origin | None) -> None:
        """Sets the Session Expiry Interval, within what the broker allows."""
        self.expiry_s = min(expiry_s, self.settings.max_session_expiry_s)
        if self.journal is not None:
            self.journal.expiry_set(self, origin)

    def close(self, now_us: int) -> None:
        """Detaches the connection, which has ended; the expiry interval begins at ``now_us``."""
        # what was begun waits for the client to come back [MQTT-4.8.2-4]
        self.connection = None
        self.redeliver = None
        self.expires_us = 0 if self.expiry_s == NEVER_EXPIRES_S else now_us + self.expiry_s * 1_000_000
        if self.journal is not None:
            self.journal.closed(self)
