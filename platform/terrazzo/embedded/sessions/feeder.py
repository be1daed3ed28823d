"""``Feeder``: hands sessions whose clients are connected here what waits for them in the log, in order."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable

from terrazzo.embedded.sessions.journal import LoggedSession, placed
from terrazzo.embedded.sessions.view import KnownSession, SessionView
from terrazzo.ports.stream import LogUnavailable, LogUnusable, QueueLog
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.session_record import (
    QueuedMessage,
    decode_group,
    decode_messages,
    index_of,
    place_of,
    sequence_of,
)
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.core import BrokerCore
from terrazzo_broker.message import ApplicationMessage

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_AT_ONCE = 16  # sessions that are fed
_LOW = 100  # messages that a session has; with fewer it takes more
_FRESH_BYTES = 8 << 20  # of groups that were just read, for sessions here


class Feeder:
    """Feeds the sessions of one broker, as long as no other node can have them (``is_held``)."""

    def __init__(self, queues: QueueLog, view: SessionView, is_held: Callable[[], bool]) -> None:
        self._queues = queues
        self._view = view
        self._is_held = is_held
        self._core: BrokerCore | None = None
        self._fresh: OrderedDict[int, bytes] = OrderedDict()  # bodies by number
        self._fresh_bytes = 0
        self._due: deque[str] = deque()
        self._is_due: set[str] = set()  # of these, and of those that are being fed once more
        self._feeding: set[str] = set()
        self._full: set[str] = set()  # that took no more
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)
        view.on_waiting = self._on_waiting

    def attach(self, core: BrokerCore) -> None:
        """Names the broker, once."""
        self._core = core

    def feed_soon(self, client_id: str) -> None:
        """A session may take more, or more waits for it."""
        if client_id not in self._is_due:
            self._is_due.add(client_id)
            if client_id not in self._feeding:
                self._due.append(client_id)
                self._wake.set()

    def look_again(self) -> None:
        """Feeds those that took no more, or were to have no more then; called now and then."""
        full, self._full = self._full, set()
        for client_id in full:
            self.feed_soon(client_id)

    def _on_waiting(self, known: KnownSession, sequence: int, body: bytes) -> None:
        if self._session(known.client_id) is None:
            return
        self._fresh[sequence] = body
        self._fresh_bytes += len(body)
        while self._fresh_bytes > _FRESH_BYTES:
            self._fresh_bytes -= len(self._fresh.popitem(last=False)[1])
        self.feed_soon(known.client_id)

    def _session(self, client_id: str) -> LoggedSession | None:
        session = None if self._core is None else self._core.sessions.get(client_id)
        return session if isinstance(session, LoggedSession) and session.connection is not None else None

    async def work(self) -> None:
        """Feeds, until it is cancelled."""
        self._feeding.clear()
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                while self._due and len(self._feeding) < _AT_ONCE:
                    client_id = self._due.popleft()
                    self._is_due.discard(client_id)
                    self._feeding.add(client_id)
                    group.create_task(self._feed(client_id), name="messages for a session from the log")
                await self._wake.wait()

    async def _feed(self, client_id: str) -> None:
        attempts = Attempts(_AGAIN)
        try:
            while await self._feed_next(client_id, attempts):
                pass
        finally:
            self._feeding.discard(client_id)
            if client_id in self._is_due:
                self._due.append(client_id)
            self._wake.set()

    async def _feed_next(self, client_id: str, attempts: Attempts) -> bool:
        """Hands over the next group; False: there is none, or the session takes no more now."""
        session, known = self._session(client_id), self._view.find(client_id)
        if session is None or known is None:
            return False
        if session.queued >= _LOW or not self._is_held():
            self._full.add(client_id)
            return False
        found = next(
            (each for each in known.groups if each.generation == session.generation and each.last_place > session.fed),
            None,
        )
        if found is None:
            return False
        try:
            messages = await self._read(found.sequence)
        except (LogUnavailable, LogUnusable) as error:
            self._failure_log.warning("what waits for sessions is not read: %s", error)
            await asyncio.sleep(attempts.failed() or 0)
            return True
        if self._session(client_id) is not session:
            return False
        if not self._is_held() or not self._hand_over(session, found.sequence, messages):
            self._full.add(client_id)
            return False
        session.note_fed(found.last_place)
        return True

    async def _read(self, sequence: int) -> list[QueuedMessage]:
        body = self._fresh.pop(sequence, None)
        if body is not None:
            self._fresh_bytes -= len(body)
        else:
            logged = await self._queues.find(sequence)
            body = None if logged is None else logged.body
        return [] if body is None else self.decode(body)

    def decode(self, body: bytes) -> list[QueuedMessage]:
        """The messages of a group; none of one that is damaged."""
        try:
            return decode_messages(decode_group(body))
        except NodeMessageDamaged as error:
            self._failure_log.warning("%s", error)
            return []

    def _hand_over(self, session: LoggedSession, sequence: int, messages: list[QueuedMessage]) -> bool:
        """Hands a session the messages that it doesn't have yet; False: it takes no more now."""
        core, connection = self._core, session.connection
        assert core is not None  # it has sessions
        assert connection is not None  # asked before
        may_receive, now_us = core.router.may_receive, core.now_us()
        try:
            for index, message in enumerate(messages):
                place = place_of(sequence, index)
                if place <= session.fed or 0 < message.expires_us <= now_us:
                    continue
                if may_receive is not None and not may_receive(session.client_id, message.topic.decode()):
                    continue
                if not session.feed(message, place):
                    return False
            return True
        finally:
            connection.pump()

    async def read_places(self, places: dict[int, int]) -> dict[int, ApplicationMessage | None]:
        """Messages by packet identifier, of their places; what is not there any more is left out.

        Raises:
            LogUnavailable, LogUnusable: they can't be read now.
        """
        groups: dict[int, list[QueuedMessage]] = {}
        found: dict[int, ApplicationMessage | None] = {}
        for identifier, place in places.items():
            sequence, index = sequence_of(place), index_of(place)
            if sequence not in groups:
                logged = await self._queues.find(sequence)
                groups[sequence] = [] if logged is None else self.decode(logged.body)
            if index < len(groups[sequence]):
                found[identifier] = placed(groups[sequence][index], place)
        return found
