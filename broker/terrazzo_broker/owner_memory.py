"""What each owner's clients have in the broker's memory, who gets no more of it, and what is given up first.

Counted where it lies, in passing or when asked; nothing here costs a message anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from mqtt5 import DisconnectReasonCode

from .connections import NetworkConnection
from .core import BrokerCore
from .delivery.sent_messages import counted_bytes
from .delivery.session import Session
from .limited_log import limited_logger
from .message import ApplicationMessage
from .refusals import Cause

log = limited_logger("terrazzo_broker.memory")

_LOOKED_AT = 5_000  # sessions, connections and messages at a time

K = TypeVar("K")


class Waiting(NamedTuple):
    """Bytes, and how many messages or connections they belong to."""

    bytes: int = 0
    items: int = 0


class OwnerMemory:
    """Of one broker. Owners are those of ``Accept.owner``; what has none is counted under the empty text."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._inflight = Round(self._sessions)
        self._partial = Round(self._connections)

    def queued(self) -> Mapping[str, Waiting]:
        """Messages that wait in sessions, as far as they are in memory."""
        return {share.owner: Waiting(share.memory_bytes, share.messages) for share in self._core.storage.queues}

    def inflight(self) -> Mapping[str, Waiting]:
        """Messages that were sent and are not acknowledged, but for long ones, which count among those that wait.

        Each call looks at some sessions: what it returns is as of the last round through all. Receivers of one message
        share its bytes.
        """
        return self._inflight.step()

    def partial(self) -> Mapping[str, Waiting]:
        """Packets that haven't all arrived, and what waits to be handled, by connection; as of the last round, too."""
        return self._partial.step()

    def _sessions(self) -> Iterator[tuple[str, int, int]]:
        """Session by session."""
        payloads: set[int] = set()
        for session in list(self._core.sessions.values()):
            size = count = 0
            for message in session.inflight.values():
                if message is None or counted_bytes(message):
                    continue
                count += 1
                if message.disk_bytes or id(message.payload) not in payloads:
                    payloads.add(id(message.payload))
                    size += message.memory_bytes
            yield session.owner, size, count

    def _connections(self) -> Iterator[tuple[str, int, int]]:
        """Connection by connection."""
        for connection in self._core.connections:
            size = len(connection.partial or b"")
            yield _owner(connection), size, int(size > 0)

    def retained(self) -> Mapping[str, Waiting]:
        """Retained messages, as far as they are in memory."""
        used = self._core.retained.ledger.by_owner()
        return {owner: Waiting(size.memory_bytes, size.messages) for owner, size in used.items()}

    def unread(self) -> Mapping[str, Waiting]:
        """What clients that don't read have been sent, and the transport has not got rid of."""
        found: dict[str, Waiting] = {}
        for connection in self._core.connections.unread:
            owner = _owner(connection)
            before = found.get(owner, Waiting())
            found[owner] = Waiting(before.bytes + connection.unsent_bytes, before.items + 1)
        return found

    def refuse(self, owners: Collection[str]) -> None:
        """Has these owners' messages refused that would have to wait or be retained (0x97 where MQTT 5 can say so),
        until the next call; all others' are taken."""
        for share in self._core.storage.queues:
            share.is_closed = share.owner in owners
        self._core.retained.ledger.closed = frozenset(owners)

    def end_unread(self, owner: str, size: int) -> int:
        """Ends connections of an owner that don't read, those with most first, until about so many bytes are free.

        Sessions keep what they keep. Returns the bytes freed.
        """
        freed = 0
        of_owner = [each for each in self._core.connections.unread if _owner(each) == owner]
        for connection in sorted(of_owner, key=lambda each: -each.unsent_bytes):
            if freed >= size:
                break
            freed += connection.unsent_bytes
            log.warning("%s: does not read, and is ended to free memory", connection)
            connection.tell_refused(Cause.NOT_READING, DisconnectReasonCode.QUOTA_EXCEEDED)
            connection.close("does not read, and memory is short", reason=DisconnectReasonCode.QUOTA_EXCEEDED)
            connection.transport.abort()
            self._core.stats.ended_unread += 1
        return freed

    def drop_queued(self, owner: str, size: int) -> int:
        """Drops messages of QoS 0 that wait for an owner's clients, until about so many bytes are free; those freed."""
        freed = 0
        for session in self._core.sessions.values():
            if freed >= size:
                break
            if session.owner == owner and session.queued_qos0:
                freed += _drop_qos0(session, size - freed)
        return freed


class Round(Generic[K]):
    """Sums by owner what ``begin`` yields (owner, bytes, items), some at each step, over and over."""

    def __init__(self, begin: Callable[[], Iterator[tuple[K, int, int]]]) -> None:
        self._begin = begin
        self._left = begin()
        self._sums: dict[K, list[int]] = {}
        self._found: Mapping[K, Waiting] = {}

    def step(self) -> Mapping[K, Waiting]:
        """Goes on; the sums of the last whole round."""
        looked_at = 0
        for owner, size, count in self._left:
            if count:
                mine = self._sums.setdefault(owner, [0, 0])
                mine[0] += size
                mine[1] += count
            looked_at += 1 + count
            if looked_at >= _LOOKED_AT:
                return self._found
        self._found = {owner: Waiting(*sums) for owner, sums in self._sums.items()}
        self._left, self._sums = self._begin(), {}
        return self._found


def _owner(connection: NetworkConnection) -> str:
    client = connection.client
    return "" if client is None else client.owner


def _drop_qos0(session: Session, size: int) -> int:
    """Drops a session's oldest QoS 0 messages that wait, until ``size`` bytes are free or none is left; those freed."""
    kept: deque[ApplicationMessage] = deque()
    before = session.queued_bytes
    for message in session.queue or ():
        if message.qos or before - session.queued_bytes >= size:
            kept.append(message)
            continue
        session.queued_bytes -= message.size
        session.share.take(message.size)
        session.queued_qos0 -= 1
        session.lose(message, "memory")
    session.queue = kept or None
    return before - session.queued_bytes
