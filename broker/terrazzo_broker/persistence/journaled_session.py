"""A session that writes down what changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..codec.publish import PublishEncoder, Rendered
from ..codec.writer import PUBACK
from ..message import Message, TrackedMessage
from ..session import Session
from ..settings import BrokerSettings
from ..stats import Stats
from ..topics.tree import Subscription
from . import keys
from .image import SessionImage
from .journal import Journal
from .records import StoredMessage, StoredSession, encode_session, encode_subscription

if TYPE_CHECKING:
    from ..acknowledgements import DurableBatch


class JournaledSession(Session):
    """A session on disk. QoS 0 and tracked messages are in memory only.

    Of a QoS 2 exchange each state is durable before the packet that follows from it leaves: after a crash both sides
    agree on which messages have arrived. At QoS 1 a message may be sent again, so it needn't wait.
    """

    is_persistent = True

    __slots__ = ("_journal", "_places", "number", "prefix")

    def __init__(
        self,
        client_id: str,
        settings: BrokerSettings,
        stats: Stats,
        *,
        journal: Journal,
        number: int,
        places: Iterator[int],
    ) -> None:
        super().__init__(client_id, settings, stats)
        self.number = number
        self.prefix = keys.session_prefix(number)
        self._journal = journal
        self._places = places

    # Itself

    def restore(self, image: SessionImage) -> None:
        """Takes over what was stored."""
        assert image.head is not None
        self.expiry_s = image.head.expiry_s
        self.expires_us = image.head.expires_us
        self.subscriptions = image.subscriptions
        self.incoming = dict.fromkeys(image.received)
        self.inflight = dict(image.inflight)
        waiting = image.waiting
        self.queue = deque(waiting) if waiting else None
        self.queued_bytes = sum(message.size for message in waiting)
        for place in image.assigned:
            self._journal.changes.note_assigned(self.prefix + keys.QUEUED + place)

    def set_expiry(self, expiry_s: int) -> None:
        super().set_expiry(expiry_s)
        self.write()
        self._journal.promise()

    def open(self, window: int) -> None:
        super().open(window)
        self.write()
        self._journal.wait(self.connection)

    def close(self, now_us: int) -> None:
        super().close(now_us)
        self.write()
        self._journal.later()

    def write(self) -> None:
        """Writes down the session's own record."""
        stored = StoredSession(self.client_id, self.expiry_s, self.expires_us, self.connection is not None)
        self._journal.changes.put(self.prefix + keys.HEAD, encode_session(stored))

    def end(self) -> None:
        self._journal.changes.end(self.number)
        self._journal.promise()
        super().end()
        self.incoming.clear()  # a batch that is settled later finds nothing to write down

    def subscribe(self, subscription: Subscription) -> None:
        super().subscribe(subscription)
        key = self.prefix + keys.SUBSCRIPTION + subscription.filter.encode()
        self._journal.changes.put(key, encode_subscription(subscription))
        self._journal.wait(self.connection)

    def unsubscribe(self, pattern: str) -> bool:
        existed = super().unsubscribe(pattern)
        if existed:
            self._journal.changes.delete(self.prefix + keys.SUBSCRIPTION + pattern.encode())
            self._journal.wait(self.connection)
        return existed

    # From the client

    def receive(self, identifier: int, batch: DurableBatch | None = None) -> None:
        super().receive(identifier, batch)
        if batch is None:
            self._journal.changes.put(self._key(keys.RECEIVED, identifier), b"")
            self._journal.wait(self.connection)

    def release(self, identifier: int) -> bool:
        known = super().release(identifier)
        if known:
            self._journal.changes.delete(self._key(keys.RECEIVED, identifier))
            self._journal.wait(self.connection)
        return known

    # To the client

    def enqueue(self, message: Message) -> bool:
        if not _is_storable(message):
            return super().enqueue(message)
        stored = self._stored(message)
        if not super().enqueue(stored):
            return False
        self._journal.changes.keep(stored, 0)
        self._journal.promise()
        return True

    def transmit_all(self, rendered: Rendered) -> bytes | None:
        return None  # each is written down by itself

    def _assign(self, message: Message) -> bytes:
        if not _is_storable(message):
            return super()._assign(message)
        stored = self._stored(message)
        identifier = super()._assign(stored)
        self._write_sent(stored, self.last_id, is_new=stored is not message)
        return identifier

    def _send(self, message: Message, encoder: PublishEncoder, out: list[bytes], now_us: int) -> None:
        if not _is_storable(message):
            return super()._send(message, encoder, out, now_us)
        stored = self._stored(message)
        super()._send(stored, encoder, out, now_us)
        if self.inflight.get(self.last_id) is stored:
            self._write_sent(stored, self.last_id, is_new=stored is not message)
        return None

    def _stored(self, message: Message) -> StoredMessage:
        if isinstance(message, StoredMessage):
            return message
        return StoredMessage(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.properties,
            message.expires_us,
            key=self.prefix + keys.QUEUED + next(self._places).to_bytes(8, "big"),
        )

    def _write_sent(self, stored: StoredMessage, identifier: int, *, is_new: bool) -> None:
        journal = self._journal
        if is_new:
            journal.changes.keep(stored, identifier)
            journal.promise()
        else:
            journal.changes.assign(stored, identifier)
            journal.later()
        if stored.qos == 2:
            journal.wait(self.connection)

    def mark_received(self, identifier: int) -> bool:
        message = self.inflight.get(identifier)
        known = super().mark_received(identifier)
        if isinstance(message, StoredMessage):
            self._journal.changes.drop(message)
            self._journal.changes.put(self._key(keys.CONFIRMED, identifier), message.key[keys.PLACE_AT :])
            self._journal.wait(self.connection)
        return known

    def acknowledge(self, identifier: int, reason: int = 0) -> bool:
        message = self.inflight.get(identifier)
        known = super().acknowledge(identifier, reason)
        if isinstance(message, StoredMessage):
            self._drop(message)
        elif known and message is None:
            self._journal.changes.delete(self._key(keys.CONFIRMED, identifier))
            self._journal.later()
        return known

    def acknowledge_all(self, kind: int, identifiers: Sequence[int]) -> int:
        for identifier in identifiers:
            if self.due(identifier) not in (kind, 0):
                return identifier
            self.acknowledge(identifier)
        return 0

    def mark_all_received(self, identifiers: Sequence[int]) -> tuple[set[int], int]:
        unknown: set[int] = set()
        for identifier in identifiers:
            if self.due(identifier) == PUBACK:
                return unknown, identifier
            if not self.mark_received(identifier):
                unknown.add(identifier)
        return unknown, 0

    def lose(self, message: Message, reason: str) -> None:
        if isinstance(message, StoredMessage):
            self._drop(message)
        super().lose(message, reason)

    def _drop(self, message: StoredMessage) -> None:
        self._journal.changes.drop(message)
        self._journal.later()

    def _key(self, kind: bytes, identifier: int) -> bytes:
        return self.prefix + kind + identifier.to_bytes(2, "big")


def _is_storable(message: Message) -> bool:
    return message.qos > 0 and not isinstance(message, TrackedMessage)
