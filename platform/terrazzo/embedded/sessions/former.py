"""``FormerSessions``: what a node's folder has of sessions and wills, from before it shared them, goes to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from terrazzo.embedded.sessions.journal import stored_subscription
from terrazzo.ports.stream import LogFull, Logged, LogUnavailable, LogUnusable, QueueLog, RecordChanged, StateLog
from terrazzo.replication.session_record import (
    SESSION,
    VERSION,
    WILL,
    QueuedMessage,
    SessionRecord,
    WillRecord,
    encode_group,
    encode_session,
    encode_will,
    place_of,
)
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.core import BrokerCore
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.persistence.records import encode_will as encode_body
from terrazzo_broker.topics.names import split_shared
from terrazzo_broker.wills import PendingWill

T = TypeVar("T")

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_AT_ONCE = 64  # sessions that are moved at a time: so many groups are in memory, whatever waits for these sessions
_GROUP_BYTES = 256 << 10
_GROUP_MESSAGES = 500


class FormerSessions:
    """Moves them, each once: what is in the log is removed from the folder, and what the log knows better is left out.

    Args:
        name: this node's, and which of its starts it is: no two name a message alike.
        owner_of: of a client by its id; another's session, or that of one who is not there any more, is not moved.
        now_us: UTC microseconds.
    """

    def __init__(
        self,
        folder: DiskStorage,
        states: StateLog,
        queues: QueueLog,
        *,
        name: str,
        owner_of: Callable[[str], str],
        now_us: Callable[[], int],
    ) -> None:
        self._folder = folder
        self._states = states
        self._queues = queues
        self._name = name
        self._owner_of = owner_of
        self._now_us = now_us
        self._count = 0
        self._failure_log = SparseLog(_log)

    async def move(self, core: BrokerCore) -> int:
        """Moves all, before clients are let in, once the log answers; how many sessions there were."""
        sessions, wills = list(self._folder.sessions.values()), self._folder.waiting_wills()
        for start in range(0, len(sessions), _AT_ONCE):
            together = sessions[start : start + _AT_ONCE]
            await asyncio.gather(*map(self._move, together))
            for session in together:
                self._forget(core, session)
        for name, pending, due_us in wills:
            await self._move_will(pending, due_us)
            self._folder.take_will(name)
        if sessions or wills:
            _log.info("%d sessions and %d wills of this node's folder are in the log now", len(sessions), len(wills))
        return len(sessions)

    async def _move(self, session: Session) -> None:
        if self._owner_of(session.client_id) != session.owner:
            return  # its client was deleted while this node wasn't there
        key = SESSION, session.client_id
        found = await self._again(lambda: self._states.get(key))
        if found is not None and found.body:
            return  # its client has been at another node since then
        generation = max(1, self._now_us())
        sent = list(session.inflight.items())
        sent_messages = (message for _, message in sent if message is not None)
        places = iter(await self._append(session, generation, chain(sent_messages, session.queue or ())))
        in_flight = [(identifier, 0 if message is None else next(places)) for identifier, message in sent]
        first = next(places, 0)
        record = SessionRecord(
            version=VERSION,
            client_id=session.client_id,
            owner=session.owner,
            generation=generation,
            expiry_s=session.expiry_s,
            expires_us=session.expires_us,
            subscriptions=[stored_subscription(each) for each in session.subscriptions.values()],
            received=list(session.incoming),
            handled=first - 1 if first else max((place for _, place in in_flight), default=0),
            sent=in_flight,
        )
        await self._put(key, encode_session(record), found)

    async def _append(self, session: Session, generation: int, messages: Iterable[ApplicationMessage]) -> list[int]:
        """The places of messages in the session's queue in the log."""
        places: list[int] = []
        for number, group in enumerate(_groups(_as_queued(session, each) for each in messages), 1):
            body, message_id = encode_group(generation, group), f"{self._name}-former{generation}-q{number}"
            sequence = await self._again(
                lambda body=body, message_id=message_id: self._queues.append(  # type: ignore[misc]
                    (session.client_id,), body, message_id=message_id
                )
            )
            places += [place_of(sequence, index) for index in range(len(group))]
        return places

    async def _move_will(self, pending: PendingWill, due_us: int) -> None:
        client_id = pending.client.client_id
        body = encode_body(pending.will, pending.client, None)
        found = await self._again(lambda: self._states.get((WILL, client_id)))
        if found is None or not found.body:
            record = WillRecord(VERSION, client_id, "", 0, 0, max(1, due_us), body)
            await self._put((WILL, client_id), encode_will(record), found)

    async def _put(self, key: tuple[str, str], body: bytes, found: Logged | None) -> None:
        self._count += 1
        last, message_id = 0 if found is None else found.sequence, f"{self._name}-former{self._count}"
        try:
            await self._again(lambda: self._states.replace(key, body, last=last, message_id=message_id))
        except RecordChanged:
            return  # its client is at a front by now; or an earlier attempt has done it, whose answer was lost

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        attempts = Attempts(_AGAIN)
        while True:
            try:
                return await work()
            except (LogFull, LogUnavailable, LogUnusable) as error:
                self._failure_log.warning("sessions of this node's folder wait for the log: %s", error)
                await asyncio.sleep(attempts.failed() or 0)

    def _forget(self, core: BrokerCore, session: Session) -> None:
        self._folder.discard(session)
        self._folder.deadlines.cancel("s" + session.client_id)
        for pattern in session.subscriptions:
            shared = split_shared(pattern)
            if shared is not None:
                core.tree.remove(shared.filter, shared.group, session)
        core.stats.subscriptions = core.tree.count
        if session.journal is not None:
            session.journal.ended(None)


def _as_queued(session: Session, message: ApplicationMessage) -> QueuedMessage:
    read = message if session.journal is None else session.journal.read(message)
    return QueuedMessage(read.topic, read.payload, read.qos, read.retain, read.properties, read.expires_us)


def _groups(messages: Iterable[QueuedMessage]) -> Iterator[list[QueuedMessage]]:
    """The messages in groups that the log takes together."""
    group: list[QueuedMessage] = []
    size = 0
    for each in messages:
        if group and (size + each.size > _GROUP_BYTES or len(group) >= _GROUP_MESSAGES):
            yield group
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        yield group
