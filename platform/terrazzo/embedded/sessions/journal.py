"""``LoggedSession``: a session of which the state is in the log, and what is written of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from terrazzo.embedded.sessions.record_writer import RecordWriter
from terrazzo.replication.session_record import (
    VERSION,
    QueuedMessage,
    SessionRecord,
    SessionSubscription,
    encode_session,
)
from terrazzo_broker.delivery.connection_port import Origin
from terrazzo_broker.delivery.empty import NOTHING
from terrazzo_broker.delivery.encoder import PublishEncoder
from terrazzo_broker.delivery.queue_share import QueueShare
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.message import ApplicationMessage, StoredMessage, TrackedMessage
from terrazzo_broker.settings import BrokerSettings
from terrazzo_broker.stats import Stats
from terrazzo_broker.topics.tree import TopicSubscription

_PLACE_BYTES = 8


class LoggedSession(Session):
    """A session that another front may have next. What is published for it comes from its queue in the log, in order,
    however it was published; nothing is handed to it by this broker's tree.

    ``put``: puts a message of this node's own, a retained one, into the queue; False: there is no room.
    """

    is_shared = True

    __slots__ = ("_on_fed", "fed", "generation", "put")

    def __init__(
        self,
        client_id: str,
        settings: BrokerSettings,
        stats: Stats,
        journal: LoggedJournal,
        *,
        owner: str,
        share: QueueShare,
        generation: int,
        put: Callable[[ApplicationMessage], bool],
    ) -> None:
        super().__init__(client_id, settings, stats, journal, owner=owner, share=share)
        self._on_fed = journal.fed
        self.generation = generation
        self.put = put
        self.fed = 0  # up to this place it has had what waits

    def send(
        self, message: ApplicationMessage, encoder: PublishEncoder, out: list[bytes], now_us: int, origin: Origin | None
    ) -> bool:
        """Sends what has no place in the queue: commands, and what is retained at QoS 0; the rest is put there."""
        if message.qos and not isinstance(message, StoredMessage | TrackedMessage):
            return self.put(message)
        return super().send(message, encoder, out, now_us, origin)

    def feed(self, message: QueuedMessage, place: int) -> bool:
        """Takes a message from the queue in the log; False: not now."""
        if not self.enqueue(placed(message, place), None):
            return False
        self.fed = place
        return True

    def note_fed(self, place: int) -> None:
        """It has had all up to a place, or was not to have it."""
        self.fed = max(self.fed, place)
        self._on_fed()

    def restore(self, record: SessionRecord, sent: dict[int, ApplicationMessage | None]) -> None:
        """Goes on where another front, or an earlier connection, has left it."""
        self.expiry_s = record.expiry_s
        self.subscriptions = {each.filter: subscription_of(each) for each in record.subscriptions} or NOTHING
        self.incoming = dict.fromkeys(record.received) or NOTHING
        self.restore_inflight(sent)
        self.fed = record.handled

    def let_go(self) -> None:
        """Forgets all; of commands it isn't known whether they have arrived."""
        tracked = [each for each in (*self.inflight.values(), *(self.queue or ())) if isinstance(each, TrackedMessage)]
        for sent in self.inflight.values():
            self._add_inflight(sent, -1)
        for queued in self.queue or ():
            self.share.take(queued.size, queued.disk_bytes)
        self.inflight, self.queue = NOTHING, None
        self.queued_bytes = self.queued_qos0 = 0
        for message in tracked:
            self.lose(message, "session ended")

    def record(self, node: str, epoch: int) -> SessionRecord:
        """The session as it is now; ``node`` and ``epoch``: who has it while its client is connected."""
        is_here = self.connection is not None
        first = next((each for each in self.queue or () if isinstance(each, StoredMessage)), None)
        return SessionRecord(
            version=VERSION,
            client_id=self.client_id,
            owner=self.owner,
            generation=self.generation,
            node=node if is_here else "",
            epoch=epoch if is_here else 0,
            expiry_s=self.expiry_s,
            expires_us=0 if is_here else self.expires_us,
            subscriptions=[stored_subscription(each) for each in self.subscriptions.values()],
            received=[identifier for identifier, batch in self.incoming.items() if batch is None],
            handled=self.fed if first is None else place_of_message(first) - 1,
            sent=[
                (identifier, 0 if message is None else place_of_message(message))
                for identifier, message in self.inflight.items()
                if message is None or isinstance(message, StoredMessage)
            ],
        )


class LoggedJournal:
    """The ``SessionJournal`` of a session in the log.

    Each state of a QoS 2 exchange is in the log before the packet that follows from it is sent; acknowledgements at
    QoS 1 are there a moment later: what isn't, is sent again.

    Args:
        on_room: is told that the session takes more of what waits.
        on_ended: is told that the session has ended.
    """

    def __init__(
        self,
        writer: RecordWriter,
        *,
        own: tuple[str, int],
        on_room: Callable[[], None],
        on_ended: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._own = own
        self._on_room = on_room
        self._on_ended = on_ended
        self._session: LoggedSession | None = None
        self._left: SessionRecord | None = None  # of a session that was let go
        self._storing: set[int] = set()  # QoS 2 publishes that were being stored then
        self._has_ended = False

    def attach(self, session: LoggedSession) -> None:
        """Names the session, once; from now on this is what is written of its client id."""
        self._session = session
        self._writer.holder = self

    def _change(self, origin: Origin | None) -> None:
        if self._writer.holder is self:  # else the client has come back meanwhile
            self._writer.change(self._encode, origin)

    def _change_later(self) -> None:
        if self._writer.holder is self:
            self._writer.change_later(self._encode)

    def _encode(self) -> bytes:
        if self._has_ended:
            return b""
        assert self._session is not None  # attached
        return encode_session(self._left or self._session.record(*self._own))

    def opened(self, session: Session) -> None:
        """CONNACK waits for the log."""
        self._change(session.connection)
        self._on_room()

    def closed(self, session: Session) -> None:
        """Its client is away: whoever has it next finds it as it is now, and knows what was being stored."""
        assert self._session is not None  # attached
        self._left = self._session.record(*self._own)
        self._storing = {identifier for identifier, batch in session.incoming.items() if batch is not None}
        if not self._storing:
            self._change(None)

    def _on_settled(self, identifier: int, *, is_taken: bool) -> None:
        """A publish was stored, or refused, after its connection had ended."""
        if self._left is None or identifier not in self._storing:
            return
        self._storing.discard(identifier)
        if is_taken:
            self._left = msgspec.structs.replace(self._left, received=[*self._left.received, identifier])
        if not self._storing:
            self._change(None)

    def expiry_set(self, session: Session, origin: Origin | None) -> None:
        """The answer to CONNECT waits for the log, and the end of a connection for nothing."""
        self._change(origin if session.connection is not None else None)

    def ended(self, origin: Origin | None) -> None:
        """There is no such session any more."""
        self._has_ended = True
        self._change(origin)
        self._on_ended()

    def subscribed(self, subscription: TopicSubscription, connection: Origin | None) -> None:
        """SUBACK waits for the log."""
        self._change(connection)

    def unsubscribed(self, pattern: str, connection: Origin | None) -> None:
        """UNSUBACK waits for the log."""
        self._change(connection)

    def received(self, identifier: int, connection: Origin | None) -> None:
        """PUBREC waits for the log."""
        if self._left is None:
            self._change(connection)
        else:
            self._on_settled(identifier, is_taken=True)

    def released(self, identifier: int, connection: Origin | None) -> None:
        """PUBCOMP waits for the log."""
        if self._left is None:
            self._change(connection)
        else:
            self._on_settled(identifier, is_taken=False)

    def storable(self, message: ApplicationMessage) -> ApplicationMessage:
        """As it is: what has a place in the queue is in the log."""
        return message

    def queued(self, message: ApplicationMessage, origin: Origin | None) -> None:
        """Nothing is written."""

    def sent(
        self, message: ApplicationMessage, identifier: int, connection: Origin | None, origin: Origin | None
    ) -> ApplicationMessage:
        """At QoS 2 the publish waits until the log has its packet identifier."""
        if isinstance(message, StoredMessage):
            if message.qos == 2:
                self._change(connection)
            else:
                self._change_later()
            self._on_room()
        return message

    def fed(self) -> None:
        """The log has it a moment later."""
        self._change_later()

    def read(self, message: ApplicationMessage) -> ApplicationMessage:
        """As it is: payloads are in memory."""
        return message

    def confirmed(self, message: ApplicationMessage, identifier: int, connection: Origin | None) -> None:
        """PUBREL waits for the log."""
        self._change(connection)

    def done(self, message: ApplicationMessage | None, identifier: int) -> None:
        """The log has it a moment later."""
        self._change_later()
        self._on_room()

    def lost(self, message: ApplicationMessage) -> None:
        """As ``done``; a session that is let go loses nothing that is in the log."""
        if isinstance(message, StoredMessage) and self._left is None:
            self._change_later()
            self._on_room()


def placed(message: QueuedMessage, place: int) -> StoredMessage:
    """A message that stands in its session's queue."""
    return StoredMessage(
        topic=message.topic,
        payload=message.payload,
        qos=message.qos,
        retain=message.retain,
        properties=message.properties,
        expires_us=message.expires_us,
        key=place.to_bytes(_PLACE_BYTES, "big"),
    )


def place_of_message(message: ApplicationMessage) -> int:
    """Where a message stands in its session's queue."""
    return int.from_bytes(message.key, "big") if isinstance(message, StoredMessage) else 0


def subscription_of(given: SessionSubscription) -> TopicSubscription:
    """A subscription as the broker has it."""
    return TopicSubscription(
        given.filter,
        given.qos,
        given.no_local,
        given.retain_as_published,
        given.retain_handling,
        given.identifier,
    )


def stored_subscription(given: TopicSubscription) -> SessionSubscription:
    """A subscription as the log has it."""
    return SessionSubscription(
        given.filter,
        given.qos,
        given.no_local,
        given.retain_as_published,
        given.retain_handling,
        given.identifier,
    )
