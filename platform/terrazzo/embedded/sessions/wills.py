"""``LoggedWills``: the wills of this front's clients, as records of the log, so that another node may publish them."""

from __future__ import annotations

from collections.abc import Callable

import mqtt5
import msgspec

from terrazzo.embedded.sessions.record_writer import RecordWriter, RecordWriters
from terrazzo.replication.session_record import VERSION, WILL, WillRecord, encode_will
from terrazzo_broker.delivery.connection_port import Origin
from terrazzo_broker.hooks import Client
from terrazzo_broker.persistence.records import encode_will as encode_body
from terrazzo_broker.wills import PendingWill


class _OwnWill:
    """A client's record."""

    __slots__ = ("is_kept", "is_others", "left", "record", "taken", "writer")

    def __init__(self, writer: RecordWriter) -> None:
        self.writer = writer
        self.record: WillRecord | None = None  # as it is to be
        self.taken: WillRecord | None = None  # as it was, of one that is being published
        self.left: PendingWill | None = None  # of a connection that has ended, to be published now
        self.is_kept = False  # it is published, and not stored yet
        self.is_others = False  # whichever node claims it publishes it, as this one may be dead to the others

    def encode(self) -> bytes:
        """Its bytes."""
        return b"" if self.record is None else encode_will(self.record)


class LoggedWills:
    """Those of the clients that are, or were, connected here. ``own``: this node, and which of its starts;
    ``is_held``: whether no other node can have found it dead by now, and published them."""

    def __init__(self, writers: RecordWriters, *, own: tuple[str, int], is_held: Callable[[], bool]) -> None:
        self._writers = writers
        self._own = own
        self._is_held = is_held
        self._over: list[str] = []
        self._wills: dict[str, _OwnWill] = {}  # bounded by the connections, and those that have just ended

    def of(self, client_id: str) -> _OwnWill:
        """A client's record, to go on with."""
        found = self._wills.get(client_id)
        if found is None:
            found = self._wills[client_id] = _OwnWill(RecordWriter(self._writers, (WILL, client_id)))
        return found

    async def written(self, client_id: str) -> None:
        """Returns when the log has what this node knows of a client's will."""
        own = self._wills.get(client_id)
        if own is not None:
            await own.writer.idle()

    def begin(self, client_id: str, last: int) -> None:
        """Goes on behind what was found in the log at a client's login."""
        own = self.of(client_id)
        if own.writer.is_idle:
            own.writer.begin(last)
        self._over.append(client_id)

    def note(self, will: mqtt5.Will, client: Client, expiry_s: int, origin: Origin | None) -> None:
        """Has the log keep the will of a connected client; ``origin`` waits for it."""
        own = self.of(client.client_id)
        own.left, own.is_kept, own.is_others = None, False, False
        own.record = WillRecord(
            VERSION,
            client.client_id,
            *self._own,
            min(will.will_delay_interval, expiry_s),
            0,
            encode_body(will, client, None),
        )
        own.writer.change(own.encode, origin)

    def leave(self, pending: PendingWill, due_us: int, now_us: int) -> None:
        """Its client is gone: it is published at ``due_us``, by whichever node."""
        own = self.of(pending.client.client_id)
        own.is_others = own.record is not None and not self._is_held()
        is_now = due_us <= now_us and not own.is_others
        if is_now:
            own.left = pending
        if own.record is not None:
            own.record = msgspec.structs.replace(own.record, due_us=due_us)
            if not is_now:
                own.writer.change(own.encode)

    def take(self, client_id: str) -> PendingWill | None:
        """Removes a client's will; returns it where it is to be published now."""
        own = self._wills.get(client_id)
        if own is None or own.is_kept or own.is_others:
            return None
        left, own.left = own.left, None
        own.taken, own.record = own.record, None
        if own.taken is not None:
            own.writer.change(own.encode)
            self._over.append(client_id)
        return left

    def drop(self, client_id: str) -> None:
        """Whoever asks for this goes on with a client's record."""
        own = self._wills.get(client_id)
        if own is not None:
            own.record = own.left = None
            own.is_others = False

    def on_gone(self, client_id: str, sequence: int) -> None:
        """The log has no such will any more, since the message of this number: a node has published it."""
        own = self._wills.get(client_id)
        if own is not None and own.record is not None and own.record.due_us and own.writer.last < sequence:
            own.record = None
            self._over.append(client_id)

    def keep(self, client_id: str) -> Callable[[], None]:
        """Keeps a will that was taken until what is returned is called: it is published, and not stored yet."""
        own = self.of(client_id)
        # as one that is claimed: else this node, or another, would publish it again while it is being stored
        kept = own.record = None if own.taken is None else msgspec.structs.replace(own.taken, is_claimed=True)
        own.is_kept = True

        def on_stored() -> None:
            if own.is_kept and own.record is kept:
                own.record, own.is_kept = None, False
                own.writer.change(own.encode)
                self._over.append(client_id)

        return on_stored

    def sweep(self) -> None:
        """Forgets what is over, once the log knows it."""
        over, self._over = self._over, []
        for client_id in over:
            own = self._wills.get(client_id)
            if own is None or own.record is not None or own.left is not None:
                continue
            if own.writer.is_idle:
                del self._wills[client_id]
            else:
                self._over.append(client_id)

    async def idle(self) -> None:
        """Returns when the log has all of them as they are to be."""
        for own in list(self._wills.values()):
            await own.writer.idle()
