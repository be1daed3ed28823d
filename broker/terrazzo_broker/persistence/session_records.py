"""Stores changes of one session, and has the answers that depend on them wait for the commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..delivery.connection_port import Origin
from ..delivery.empty import NOTHING
from ..delivery.session import Session
from ..message import ApplicationMessage, StoredMessage, TrackedMessage
from ..topics.tree import TopicSubscription
from . import keys
from .absence import Absence
from .group_commit import GroupCommit
from .image import SessionImage
from .payloads import MEMORY_BYTES, whole
from .records import StoredSession, encode_session, encode_subscription


class SessionRecords:
    """The ``SessionJournal`` of a session on disk. QoS 0 and tracked messages are in memory only.

    Each state of a QoS 2 exchange is durable before the packet that follows from it is sent: after a crash both sides
    agree on which messages have arrived. At QoS 1 a message may be sent again, so it needn't wait.

    ``number`` is the session's in its keys; ``places`` counts the queue entries of all sessions.
    """

    __slots__ = ("_absence", "_commits", "_places", "number", "prefix")

    def __init__(self, commits: GroupCommit, *, number: int, places: Iterator[int]) -> None:
        self.number = number
        self.prefix = keys.session_prefix(number)
        self._commits = commits
        self._places = places
        self._absence: Absence | None = None  # while the client is away

    def restore(self, session: Session, image: SessionImage) -> None:
        """Fills a new session from its stored records."""
        assert image.head is not None
        session.expiry_s = image.head.expiry_s
        session.expires_us = image.head.expires_us
        session.subscriptions = image.subscriptions or NOTHING
        session.incoming = dict.fromkeys(image.received) or NOTHING
        session.restore_inflight(dict(image.inflight))
        waiting = image.waiting
        session.queue = deque(waiting) if waiting else None
        session.queued_bytes = sum(message.size for message in waiting)
        for message in waiting:
            session.share.add(message.size)
            session.share.disk_bytes += message.disk_bytes
        for place in image.assigned:
            self._commits.changes.note_assigned(self.prefix + keys.QUEUED + place)
        self._absence = Absence(session)

    # The session itself

    def opened(self, session: Session) -> None:
        """Stores the head record; CONNACK waits for the commit."""
        self._end_absence()
        self._write(session)
        self._commits.wait(session.connection)

    def closed(self, session: Session) -> None:
        """Stores the head record; nothing waits, as after a crash the connection counts as ended with the broker."""
        self._write(session)
        self._commits.later()
        self._end_absence()
        absence = self._absence = Absence(session)
        self._commits.then(absence.letting_go(list(session.inflight.values()), are_sent=True))
        self._commits.then(absence.letting_go(list(session.queue or ()), are_sent=False))

    def expiry_set(self, session: Session, origin: Origin | None) -> None:
        """Stores the head record; the answer to the client's CONNECT or DISCONNECT waits for the commit."""
        self._write(session)
        self._commits.wait(origin)

    def ended(self, origin: Origin | None) -> None:
        """Deletes all records of the session; the answer to whoever ended it waits, as it must not come back."""
        self._end_absence()
        self._commits.changes.end(self.number)
        self._commits.wait(origin)

    def _end_absence(self) -> None:
        if self._absence is not None:
            self._absence.is_over = True
            self._absence = None

    def _write(self, session: Session) -> None:
        is_connected = session.connection is not None
        stored = StoredSession(session.client_id, session.expiry_s, session.expires_us, is_connected, session.owner)
        self._commits.changes.put(self.prefix + keys.HEAD, encode_session(stored))

    def subscribed(self, subscription: TopicSubscription, connection: Origin | None) -> None:
        """Stores a subscription; SUBACK waits for the commit."""
        key = self.prefix + keys.SUBSCRIPTION + subscription.filter.encode()
        self._commits.changes.put(key, encode_subscription(subscription))
        self._commits.wait(connection)

    def unsubscribed(self, pattern: str, connection: Origin | None) -> None:
        """Deletes a subscription; UNSUBACK waits for the commit."""
        self._commits.changes.delete(self.prefix + keys.SUBSCRIPTION + pattern.encode())
        self._commits.wait(connection)

    # QoS 2 from the client

    def received(self, identifier: int, connection: Origin | None) -> None:
        """Stores the identifier of a QoS 2 publish; PUBREC waits for the commit."""
        self._commits.changes.put(self._key(keys.RECEIVED, identifier), b"")
        self._commits.wait(connection)

    def released(self, identifier: int, connection: Origin | None) -> None:
        """Deletes the identifier of a QoS 2 publish; PUBCOMP waits for the commit."""
        self._commits.changes.delete(self._key(keys.RECEIVED, identifier))
        self._commits.wait(connection)

    # To the client

    def storable(self, message: ApplicationMessage) -> ApplicationMessage:
        """The message with the key of a new queue entry; itself where it is not to be stored or has one already."""
        if not message.qos or isinstance(message, StoredMessage | TrackedMessage):
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

    def queued(self, message: ApplicationMessage, origin: Origin | None) -> None:
        """Stores a queued message; the acknowledgement to its publisher waits for the commit."""
        if isinstance(message, StoredMessage):
            self._commits.changes.keep(message, 0)
            self._commits.wait(origin)
            if self._absence is not None and len(message.payload) > MEMORY_BYTES:
                self._commits.then(self._absence.letting_go((message,), are_sent=False))

    def sent(
        self, message: ApplicationMessage, identifier: int, connection: Origin | None, origin: Origin | None
    ) -> ApplicationMessage:
        """Stores a message with its packet identifier.

        The acknowledgement to the publisher of a new one waits for the commit, and at QoS 2 the publish itself.
        """
        stored = self.storable(message)
        if not isinstance(stored, StoredMessage):
            return message
        if stored is not message:
            self._commits.changes.keep(stored, identifier)
            self._commits.wait(origin)
        else:
            self._commits.changes.assign(stored, identifier)
            self._commits.later()
        if stored.qos == 2:
            self._commits.wait(connection)
        return stored

    def read(self, message: ApplicationMessage) -> ApplicationMessage:
        """The message with its payload, committed or not yet. Raises StorageError."""
        return whole(message, message.key, self._commits.read) if isinstance(message, StoredMessage) else message

    def confirmed(self, message: ApplicationMessage, identifier: int, connection: Origin | None) -> None:
        """Replaces a QoS 2 message by its identifier; PUBREL waits for the commit."""
        if isinstance(message, StoredMessage):
            self._commits.changes.drop(message)
            self._commits.changes.put(self._key(keys.CONFIRMED, identifier), message.key[keys.PLACE_AT :])
            self._commits.wait(connection)

    def done(self, message: ApplicationMessage | None, identifier: int) -> None:
        """Deletes the record of an acknowledged message; nothing waits, as it may be sent again."""
        if message is None:
            self._commits.changes.delete(self._key(keys.CONFIRMED, identifier))
            self._commits.later()
        else:
            self.lost(message)

    def lost(self, message: ApplicationMessage) -> None:
        """Deletes the queue entry of a message that won't be delivered; nothing waits."""
        if isinstance(message, StoredMessage):
            self._commits.changes.drop(message)
            self._commits.later()

    def _key(self, kind: bytes, identifier: int) -> bytes:
        return self.prefix + kind + identifier.to_bytes(2, "big")
