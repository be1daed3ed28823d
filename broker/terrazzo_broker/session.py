"""What a client is owed across connections: subscriptions, unacknowledged and queued messages. [MQTT-4.1]"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .codec.publish import PublishEncoder, Rendered, Wire
from .codec.writer import PUBACK, PUBCOMP, PUBREC, PUBREL, ack
from .hooks import Outcome
from .message import Message, TrackedMessage
from .settings import NEVER_EXPIRES_S, BrokerSettings
from .stats import Stats
from .topics.tree import Subscription

if TYPE_CHECKING:
    from .acknowledgements import DurableBatch
    from .connection import Connection


_HIGHEST_ID = 65_535
_UNKNOWN: Any = object()


class Session:
    """One client's session. It does no I/O: what is to be sent goes into the list that a method is given.

    ``inflight`` keeps, in the order of sending, what the client hasn't acknowledged; None stands for a QoS 2 message
    that it has received, so that only PUBREL and PUBCOMP are left. ``quota`` is how many more may be on the way.
    [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-5]; [MQTT-4.3.2-1] [MQTT-4.3.3-1] of 3.1.1
    """

    is_persistent = False  # whether it is on disk, beside memory
    is_local = False  # whether it is the embedding program's own

    __slots__ = (
        "client_id",
        "connection",
        "expires_us",
        "expiry_s",
        "incoming",
        "inflight",
        "last_id",
        "queue",
        "queued_bytes",
        "queued_qos0",
        "quota",
        "redeliver",
        "settings",
        "stats",
        "subscriptions",
        "window",
    )

    def __init__(self, client_id: str, settings: BrokerSettings, stats: Stats) -> None:
        self.client_id = client_id
        self.settings = settings
        self.stats = stats
        self.connection: Connection | None = None
        self.expiry_s = 0
        self.expires_us = 0  # while offline; 0 is never
        self.subscriptions: dict[str, Subscription] = {}
        self.inflight: dict[int, Message | None] = {}
        self.incoming: dict[int, DurableBatch | None] = {}  # QoS 2 publishes received and not yet released
        self.queue: deque[Message] | None = None
        self.queued_bytes = 0
        self.queued_qos0 = 0
        self.redeliver: deque[int] | None = None  # identifiers to be sent again when the quota allows
        self.last_id = 0
        self.window = self.quota = 0

    @property
    def queued(self) -> int:
        """How many messages wait for the client."""
        return len(self.queue) if self.queue else 0

    def subscribe(self, subscription: Subscription) -> None:
        """Adds a subscription, or replaces the one to the same filter. [MQTT-3.8.4-3]"""
        self.subscriptions[subscription.filter] = subscription

    def unsubscribe(self, pattern: str) -> bool:
        """Removes a subscription, not what was begun under it; False where there was none. [MQTT-3.10.4-3] of both"""
        return self.subscriptions.pop(pattern, None) is not None

    def takes_as_new(self, identifiers: Sequence[int], *, version: int) -> bool:
        """Whether QoS 2 publishes with these identifiers are neither repeated nor too many. [MQTT-4.3.3-10]"""
        if version == 5 and len(self.incoming) + len(identifiers) > self.settings.inflight_from_client:
            return False
        return len(set(identifiers)) == len(identifiers) and self.incoming.keys().isdisjoint(identifiers)

    def receive(self, identifier: int, batch: DurableBatch | None = None) -> None:
        """Notes a QoS 2 publish from the client, with the batch that must be settled before it counts as received."""
        self.incoming[identifier] = batch

    def release(self, identifier: int) -> bool:
        """The client has let go of an identifier; False: it wasn't in use."""
        return self.incoming.pop(identifier, _UNKNOWN) is not _UNKNOWN

    def transmit(self, wires: Sequence[Wire], out: list[bytes]) -> list[int] | None:
        """Sends rendered messages, or queues them; the indexes of those that there is no room for."""
        refused: list[int] | None = None
        for index, (qos, head, tail, message) in enumerate(wires):
            if not qos:  # [MQTT-3.3.4-10] [MQTT-4.9.0-3]
                out.append(head + tail)
            elif self.quota > 0 and not self.queue:  # [MQTT-3.3.4-9] [MQTT-4.9.0-2]
                out.append(head + self._assign(message) + tail)
            elif not self.enqueue(message):
                refused = [*(refused or ()), index]
        return refused

    def transmit_all(self, rendered: Rendered) -> bytes | None:
        """The packets of messages that can all be sent now, joined; None: it takes ``transmit``.

        Receivers that stand at the same identifier, as those of a fan-out do, are sent the same bytes.
        """
        count, first = len(rendered.wires), self.last_id + 1
        if self.quota < count or self.queue or first + count > _HIGHEST_ID or not rendered.is_acknowledged:
            return None
        identifiers = range(first, first + count)
        if self.inflight and not self.inflight.keys().isdisjoint(identifiers):
            return None
        self.inflight.update(zip(identifiers, rendered.messages, strict=True))
        self.last_id += count
        self.quota -= count
        return rendered.joined(first)

    def send(self, message: Message, encoder: PublishEncoder, out: list[bytes], now_us: int) -> bool:
        """Sends one message to a receiver with wishes of its own, or queues it; False where there is no room."""
        if message.qos and (self.quota <= 0 or self.queue):  # [MQTT-3.3.4-9] [MQTT-4.9.0-2]
            return self.enqueue(message)
        self._send(message, encoder, out, now_us)
        return True

    def _send(self, message: Message, encoder: PublishEncoder, out: list[bytes], now_us: int) -> None:
        identifier = self._next_id() if message.qos else 0
        packet = encoder.encode(message, identifier, now_us)
        if packet is None:  # as if it had been delivered [MQTT-3.1.2-25]
            self.lose(message, "too large for the client")
            return
        if identifier:
            self.inflight[identifier] = message
            self.last_id = identifier
            self.quota -= 1
        out.append(packet)

    def _assign(self, message: Message) -> bytes:
        """The identifier that goes between head and tail, which have no DUP. [MQTT-4.3.2-2] [MQTT-4.3.3-2]"""
        identifier = self.last_id = self._next_id()
        self.inflight[identifier] = message
        self.quota -= 1
        return identifier.to_bytes(2, "big")

    def _next_id(self) -> int:
        identifier = self.last_id % 65_535 + 1
        # [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]; [MQTT-2.3.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1] of 3.1.1
        while identifier in self.inflight:
            identifier = identifier % 65_535 + 1
        return identifier

    def enqueue(self, message: Message) -> bool:
        """Queues a message; a full queue gives up its oldest QoS 0 message first. False: no room.

        [MQTT-3.1.2-5] of 3.1.1
        """
        queue = self.queue
        if queue is None:
            queue = self.queue = deque()
        if self._is_full(queue, message) and not self._give_up_oldest(queue):
            if not message.qos:
                self.stats.drop("queue full")
                return True
            return False
        queue.append(message)
        self.queued_bytes += message.size
        self.queued_qos0 += not message.qos
        return True

    def _is_full(self, queue: deque[Message], message: Message) -> bool:
        if self.queued_bytes + message.size > self.settings.queued_bytes:
            return True
        return self.connection is None and len(queue) >= self.settings.queued_messages

    def _give_up_oldest(self, queue: deque[Message]) -> bool:
        if not self.queued_qos0:
            return False
        for index, queued in enumerate(queue):
            if not queued.qos:
                del queue[index]
                self.queued_bytes -= queued.size
                self.queued_qos0 -= 1
                self.stats.drop("queue full")
                return True
        return False

    def open(self, window: int) -> None:
        """Starts over on a new connection that takes ``window`` unacknowledged messages at a time."""
        self.window = self.quota = window  # [MQTT-4.9.0-1]
        self.expires_us = 0
        self.redeliver = deque(self.inflight) if self.inflight else None

    def pump(self, encoder: PublishEncoder, out: list[bytes], now_us: int) -> int:
        """Sends what the quota allows, unacknowledged messages first and in their order; how many were sent.

        [MQTT-4.4.0-1] [MQTT-4.6.0-1] of both
        """
        before = len(out)
        while self.redeliver:
            if self.quota <= 0 and self.inflight.get(self.redeliver[0]) is not None:
                return len(out) - before
            self._redeliver(self.redeliver.popleft(), encoder, out, now_us)
        queue = self.queue
        while queue and (self.quota > 0 or not queue[0].qos):
            message = queue.popleft()
            self.queued_bytes -= message.size
            self.queued_qos0 -= not message.qos
            if message.expires_us and message.expires_us <= now_us:  # [MQTT-3.3.2-5]
                self.lose(message, "expired")
            else:
                self._send(message, encoder, out, now_us)
        if not queue:
            self.queue = None
        return len(out) - before

    def _redeliver(self, identifier: int, encoder: PublishEncoder, out: list[bytes], now_us: int) -> None:
        if identifier not in self.inflight:
            return
        message = self.inflight[identifier]
        if message is None:  # [MQTT-4.3.3-6]; [MQTT-4.3.3-1] of 3.1.1
            out.append(ack(PUBREL, identifier, 0, encoder.version))
            return
        # Even if it has expired by now [MQTT-4.3.3-7].
        packet = encoder.encode(message, identifier, now_us, duplicate=True)  # [MQTT-3.3.1-1] of both
        if packet is None:
            del self.inflight[identifier]
            self.lose(message, "too large for the client")
            return
        self.quota -= 1
        out.append(packet)

    def due(self, identifier: int) -> int:
        """The first byte of what the client owes for an identifier: PUBACK, PUBREC or PUBCOMP; 0 is nothing."""
        if identifier not in self.inflight:
            return 0
        message = self.inflight[identifier]
        if message is None:
            return PUBCOMP
        return PUBREC if message.qos == 2 else PUBACK

    def acknowledge(self, identifier: int, reason: int = 0) -> bool:
        """PUBACK, PUBCOMP, or a PUBREC that refuses: the message is done, and goes to nobody else.

        False: no such identifier. [MQTT-4.4.0-2] [MQTT-4.8.2-6]
        """
        if identifier not in self.inflight:
            return False
        message = self.inflight.pop(identifier)
        if self.quota < self.window:
            self.quota += 1
        if isinstance(message, TrackedMessage):
            message.on_outcome(Outcome(acknowledged=True, reason=reason))
        return True

    def acknowledge_all(self, kind: int, identifiers: Sequence[int]) -> int:
        """Several PUBACKs or PUBCOMPs (``kind``) without a reason; the first that another packet is due for, or 0."""
        inflight, done = self.inflight, 0
        for identifier in identifiers:
            message = inflight.get(identifier, _UNKNOWN)
            if message is _UNKNOWN:
                continue
            if (PUBCOMP if message is None else PUBACK if message.qos == 1 else 0) != kind:
                return identifier
            del inflight[identifier]
            done += 1
            if isinstance(message, TrackedMessage):
                message.on_outcome(Outcome(acknowledged=True))
        self.quota = min(self.window, self.quota + done)
        return 0

    def mark_all_received(self, identifiers: Sequence[int]) -> tuple[set[int], int]:
        """Several PUBRECs: the identifiers that there aren't, and the first that PUBACK is due for, or 0."""
        inflight, unknown = self.inflight, set()
        for identifier in identifiers:
            message = inflight.get(identifier, _UNKNOWN)
            if message is _UNKNOWN:
                unknown.add(identifier)
            elif message is not None:
                if message.qos != 2:
                    return unknown, identifier
                inflight[identifier] = None
        return unknown, 0

    def mark_received(self, identifier: int) -> bool:
        """PUBREC: the message itself needn't be sent again. False: no such identifier."""
        if identifier not in self.inflight:
            return False
        message = self.inflight[identifier]
        self.inflight[identifier] = None
        if isinstance(message, TrackedMessage):
            message.on_outcome(Outcome(acknowledged=True))
        return True

    def lose(self, message: Message, reason: str) -> None:
        """Counts a message that won't be delivered, and tells its sender."""
        self.stats.drop(reason)
        if isinstance(message, TrackedMessage):
            message.on_outcome(Outcome(acknowledged=False))

    def end(self) -> None:
        """Loses all that was still to be delivered; none of it goes to another member of a share. [MQTT-4.8.2-5]"""
        waiting = [message for message in self.inflight.values() if message is not None]
        waiting.extend(self.queue or ())
        self.inflight.clear()
        self.queue = None
        self.queued_bytes = self.queued_qos0 = 0
        for message in waiting:
            self.lose(message, "session ended")

    def set_expiry(self, expiry_s: int) -> None:
        """Sets the Session Expiry Interval, within what the broker allows."""
        self.expiry_s = min(expiry_s, self.settings.max_session_expiry_s)

    def close(self, now_us: int) -> None:
        """The connection has gone; from now on the expiry counts."""  # what was begun waits for it [MQTT-4.8.2-4]
        self.connection = None
        self.redeliver = None
        self.expires_us = 0 if self.expiry_s == NEVER_EXPIRES_S else now_us + self.expiry_s * 1_000_000
