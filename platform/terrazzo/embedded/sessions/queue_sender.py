"""``QueueSender``: puts what waits for sessions into the log, before its publisher is answered."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

import msgspec

from terrazzo.embedded.held_batch import HeldBatch
from terrazzo.ports.stream import LogFull, LogUnavailable, LogUnusable, QueueLog
from terrazzo.replication.session_record import QueuedMessage, encode_group
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.hooks import Batch

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_AT_ONCE = 64  # groups that are on their way, of a session one
_GROUP_BYTES = 256 << 10  # of messages that are appended together, unless one alone has more
_GROUP_MESSAGES = 500
_ALL_BYTES = 32 << 20  # of messages that wait for the log


class QueueStats(msgspec.Struct):
    """Counters since the start, and the state now."""

    queued: int = 0  # messages for sessions that the log has, of this node
    groups: int = 0  # in so many
    again: int = 0  # attempts without an answer
    full: int = 0  # messages for which the log had no room
    refused: int = (
        0  # for which there was none in the session's queue, or its company's, or while they would have waited
    )
    waiting_bytes: int = 0


class _Entry:
    """A message that waits for the log, or is on its way there."""

    __slots__ = ("is_done", "message", "owner")

    def __init__(self, owner: str, message: QueuedMessage) -> None:
        self.owner = owner
        self.message = message
        self.is_done = False


class QueueSender:
    """What this node's clients, and its programs, have published for sessions.

    Args:
        name: this node's, and which of its starts it is: no two name a group alike.
        owner_bytes: what may wait for the log of one company.
    """

    def __init__(self, log: QueueLog, *, name: str, owner_bytes: int, stats: QueueStats) -> None:
        self.stats = stats
        self._log = log
        self._name = name
        self._owner_bytes = owner_bytes
        self._count = 0
        self._queues: dict[tuple[str, int], deque[_Entry]] = {}  # by session: client id and generation
        self._due: deque[tuple[str, int]] = deque()  # those with messages, of which none is on its way
        self._sending: dict[tuple[str, int], list[_Entry]] = {}
        self._bytes: Counter[str] = Counter()
        self._offered: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._entries: dict[str, deque[_Entry]] = {}  # by owner, in their order
        self._waiters: dict[str, deque[tuple[int, Callable[[], None]]]] = {}
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    def offer(self, client_id: str, generation: int, owner: str, message: QueuedMessage) -> bool:
        """Takes a message for a session; False, and counted: there is no room."""
        size = message.size
        if self._bytes[owner] + size > self._owner_bytes or self.stats.waiting_bytes + size > _ALL_BYTES:
            self.stats.refused += 1
            return False
        entry, key = _Entry(owner, message), (client_id, generation)
        self._bytes[owner] += size
        self.stats.waiting_bytes += size
        self._offered[owner] += 1
        self._entries.setdefault(owner, deque()).append(entry)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            if key not in self._sending:
                self._due.append(key)
        queue.append(entry)
        self._wake.set()
        return True

    def hold(self, batch: Batch) -> Batch:
        """The same batch, settled no earlier than the log has what of its company's messages waits for sessions."""
        owner = batch.client.owner
        if self._done[owner] == self._offered[owner]:
            return batch

        def when_done(then: Callable[[], None]) -> None:
            self._waiters.setdefault(owner, deque()).append((self._offered[owner], then))

        return HeldBatch(batch, [when_done])

    async def idle(self) -> None:
        """Returns when nothing waits for the log."""
        for owner in list(self._offered):
            done = asyncio.Event()
            self._waiters.setdefault(owner, deque()).append((self._offered[owner], done.set))
            self._call_waiters(owner)
            await done.wait()

    async def work(self) -> None:
        """Puts messages into the log, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for key in list(self._sending):  # of a run of this method that failed
                group.create_task(self._send(key), name="messages for sessions to the log")
            while True:
                self._wake.clear()
                while self._due and len(self._sending) < _AT_ONCE:
                    key = self._due.popleft()
                    self._sending[key] = self._next_group(key)
                    group.create_task(self._send(key), name="messages for sessions to the log")
                await self._wake.wait()

    def _next_group(self, key: tuple[str, int]) -> list[_Entry]:
        queue, size = self._queues[key], 0
        found: list[_Entry] = []
        while queue and (not found or (size + queue[0].message.size <= _GROUP_BYTES and len(found) < _GROUP_MESSAGES)):
            size += queue[0].message.size
            found.append(queue.popleft())
        if not queue:
            del self._queues[key]
        return found

    async def _send(self, key: tuple[str, int]) -> None:
        client_id, generation = key
        entries, attempts = self._sending[key], Attempts(_AGAIN)
        self._count += 1
        message_id = f"{self._name}-q{self._count}"
        body = encode_group(generation, [each.message for each in entries])
        while True:
            try:
                await self._log.append((client_id,), body, message_id=message_id)
                self.stats.queued += len(entries)
                self.stats.groups += 1
                break
            except LogFull as error:
                self.stats.full += len(entries)
                self._failure_log.warning("what is published is not kept for sessions: %s", error)
                break
            except (LogUnavailable, LogUnusable) as error:
                self.stats.again += 1
                self._failure_log.warning("messages for sessions wait: %s", error)
                await asyncio.sleep(attempts.failed() or 0)
        del self._sending[key]
        self._on_done(entries)
        if key in self._queues:
            self._due.append(key)
        self._wake.set()

    def _on_done(self, entries: list[_Entry]) -> None:
        for entry in entries:
            entry.is_done = True
        for owner in {entry.owner for entry in entries}:
            waiting = self._entries[owner]
            while waiting and waiting[0].is_done:  # in their order, as whoever waits asks for all before
                size = waiting.popleft().message.size
                self._bytes[owner] -= size
                self.stats.waiting_bytes -= size
                self._done[owner] += 1
            self._call_waiters(owner)

    def _call_waiters(self, owner: str) -> None:
        waiters, done = self._waiters.get(owner), self._done[owner]
        while waiters and waiters[0][0] <= done:
            waiters.popleft()[1]()
        if done == self._offered[owner]:
            for counted in (self._waiters, self._entries):
                counted.pop(owner, None)
            del self._bytes[owner], self._done[owner], self._offered[owner]
