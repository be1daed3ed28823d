"""``RetainedLog``: all nodes have what is retained at one, in the order of a stream that keeps each topic's newest."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

import msgspec

from terrazzo.embedded.held_batch import HeldBatch
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.stream import KeyedLog, LogFull, Logged, LogUnavailable, LogUnusable, LogWentBack
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.retained_change import (
    VERSION,
    RetainedChange,
    decode_retained,
    encode_retained,
)
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.broker import Broker
from terrazzo_broker.hooks import Batch
from terrazzo_broker.message import ApplicationMessage

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_WAIT_S = 0.5
_AT_ONCE = 64  # changes that are on their way to the log, none of one topic
_ALL_BYTES = 32 << 20  # of changes that wait for the log
_REMOVED_S = 3_600.0  # for so long the log keeps that there is nothing any more; each node has read it by then
_LEAST_S = 1.0  # that the log keeps anything

NO_ROOM = "too much waits for the log"


class RetainedStats(msgspec.Struct):
    """Counters since the start, and the state now."""

    sequence: int = 0  # the last change that was read
    read: int = 0  # changes, those of this node too
    kept: int = 0  # changes of this node that the log has
    again: int = 0  # attempts without an answer
    full: int = 0  # changes for which the log had no room
    refused: int = 0  # for which there was none while they would have waited for the log
    damaged: int = 0  # changes that can't be read
    waiting_bytes: int = 0


class _Change:
    """One that waits for the log, or is on its way there."""

    __slots__ = ("change", "is_done", "key", "message_id")

    def __init__(self, change: RetainedChange, message_id: str) -> None:
        self.change = change
        self.key = change.owner, change.topic
        self.message_id = message_id
        self.is_done = False


class RetainedLog:
    """The retained messages of a broker among several.

    Args:
        log: of all of them.
        name: this node's, and which of its starts it is: no two name a change alike.
        owner_bytes: what may wait for the log of one company.
        now_us: UTC microseconds.
    """

    def __init__(
        self, log: KeyedLog, *, name: str, owner_bytes: int, now_us: Callable[[], int], stats: RetainedStats
    ) -> None:
        self.stats = stats
        self.loaded = asyncio.Event()
        """Is set when the broker has what the log had at the start."""
        self._log = log
        self._name = name
        self._owner_bytes = owner_bytes
        self._now_us = now_us
        self._created = ""  # when the log was made that was read last
        self._position = 0  # in it
        self._stale: set[tuple[str, str]] = set()  # what the broker has and the log wasn't seen to have yet
        self._ahead: dict[tuple[str, str], int] = {}  # what is applied before it is read: as much as is on its way
        self._count = 0
        self._waiting: deque[_Change] = deque()
        self._under_way: deque[_Change] = deque()  # in the order of their publishing
        self._keys: set[tuple[str, str]] = set()  # of these
        self._offers: Counter[tuple[str, str]] = Counter()  # changes that wait or are on their way
        self._bytes: Counter[str] = Counter()
        self._offered: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._waiters: dict[str, deque[tuple[int, Callable[[], None]]]] = {}
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    def attach(self, broker: Broker, *, may_do_without: bool) -> None:
        """Names the broker; called once, before anything else. ``may_do_without``: where the servers have no room for
        what is retained, this node retains by itself, until they have."""
        self._core, self._retained = broker.core, broker.retained
        self._core.retainer = self.offer
        self._may_do_without = may_do_without

    # What is published here

    def offer(self, topic: str, message: ApplicationMessage) -> str:
        """Takes what is to be retained, or an empty payload; why not, if it can't."""
        change = _as_change(topic, message)
        too_much = self._bytes[change.owner] + change.size > self._owner_bytes
        if too_much or self.stats.waiting_bytes + change.size > _ALL_BYTES:
            self.stats.refused += 1
            return NO_ROOM
        self._add(change)
        return ""

    def end_below(self, owner: str, prefix: str) -> None:
        """Has nothing retained any more on an owner's topic and below it."""
        for pattern in (prefix, f"{prefix}/#"):
            for found in list(self._retained.walk(pattern, owner)):
                if found is None or found.owner != owner:
                    continue
                if self._core.retainer is None:  # it retains by itself
                    self._retained.remove(found.topic.decode(), owner)
                else:
                    self._add(RetainedChange(VERSION, owner, found.topic.decode(), b""))

    def _add(self, change: RetainedChange) -> None:
        self._count += 1
        self._waiting.append(_Change(change, f"{self._name}-{self._count}"))
        self._offers[change.owner, change.topic] += 1
        self._bytes[change.owner] += change.size
        self.stats.waiting_bytes += change.size
        self._offered[change.owner] += 1
        self._wake.set()

    def hold(self, batch: Batch) -> Batch:
        """The same batch, settled no earlier than the log has what its company's clients have had retained."""
        owner = batch.client.owner
        if self._done[owner] == self._offered[owner]:
            return batch

        def when_done(then: Callable[[], None]) -> None:
            self._waiters.setdefault(owner, deque()).append((self._offered[owner], then))

        return HeldBatch(batch, [when_done])

    async def work(self) -> None:
        """Puts changes into the log, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._under_way:
                if not each.is_done:  # of a run of this method that failed
                    group.create_task(self._send(each), name="retained message to the log")
            while True:
                self._wake.clear()
                while self._waiting and len(self._under_way) < _AT_ONCE and self._waiting[0].key not in self._keys:
                    change = self._waiting.popleft()
                    self._under_way.append(change)
                    self._keys.add(change.key)
                    group.create_task(self._send(change), name="retained message to the log")
                await self._wake.wait()

    async def _send(self, sent: _Change) -> None:
        attempts, change = Attempts(_AGAIN), sent.change
        while True:
            try:
                sequence = await self._log.put(
                    sent.key, encode_retained(change), message_id=sent.message_id, lasts_s=self._lasts_s(change)
                )
            except LogFull as error:
                self.stats.full += 1
                self._failure_log.warning("what is published is not retained: %s", error)
                break
            except (LogUnavailable, LogUnusable) as error:
                self.stats.again += 1
                self._failure_log.warning("retained messages wait: %s", error)
                await asyncio.sleep(attempts.failed() or 0)
                continue
            self.stats.kept += 1
            self._on_kept(sent, sequence)
            break
        self._on_done(sent)

    def _lasts_s(self, change: RetainedChange) -> float:
        if not change.payload:
            return _REMOVED_S
        if not change.expires_us:
            return 0.0
        return max(_LEAST_S, (change.expires_us - self._now_us()) / 1e6)

    def _on_kept(self, sent: _Change, sequence: int) -> None:
        """Whoever is answered now, and subscribes, finds it."""
        if sequence > self._position:
            self._ahead[sent.key] = sequence
            self._stale.discard(sent.key)
            self._apply(sent.change)

    def _on_done(self, sent: _Change) -> None:
        sent.is_done = True
        self._keys.discard(sent.key)
        while self._under_way and self._under_way[0].is_done:
            change = self._under_way.popleft().change
            self._forget_offer((change.owner, change.topic))
            self._bytes[change.owner] -= change.size
            self.stats.waiting_bytes -= change.size
            self._done[change.owner] += 1
            self._call_waiters(change.owner)
        self._wake.set()

    def _forget_offer(self, key: tuple[str, str]) -> None:
        self._offers[key] -= 1
        if not self._offers[key]:
            del self._offers[key]

    def _call_waiters(self, owner: str) -> None:
        waiters, done = self._waiters.get(owner), self._done[owner]
        while waiters and waiters[0][0] <= done:
            waiters.popleft()[1]()
        if done == self._offered[owner]:
            self._waiters.pop(owner, None)
            del self._bytes[owner], self._done[owner], self._offered[owner]

    async def idle(self) -> None:
        """Returns when nothing waits for the log."""
        for owner in list(self._offered):
            done = asyncio.Event()
            self._waiters.setdefault(owner, deque()).append((self._offered[owner], done.set))
            await done.wait()

    # What all have

    async def follow(self) -> None:
        """Reads what all nodes have retained, until it is cancelled."""
        attempts = Attempts(_AGAIN)
        while True:
            try:
                await self._open()
                await self._follow(attempts)
            except LogWentBack as error:
                _log.warning("what is retained is read from its beginning: %s", error)
                self._created = ""
            except (LogUnavailable, LogUnusable) as error:
                self._failure_log.warning("what is retained at other nodes: %s", error)
            await asyncio.sleep(attempts.failed() or 0)

    async def _open(self) -> None:
        try:
            await self._log.open()
        except LogUnusable:
            if self._may_do_without and not self._created:
                self._core.retainer = None
                self.loaded.set()
            raise
        self._core.retainer = self.offer

    async def _follow(self, attempts: Attempts) -> None:
        state = await self._log.state()
        if state.created != self._created:
            self._created, self._position = state.created, 0
            self._ahead.clear()
            self._stale = await self._here()
            is_read = False
        else:
            is_read = self.loaded.is_set()
        reader, again = self._log.read(self._position, self._created), self.stats.again
        try:
            while True:
                if self.stats.again != again:  # what was published found none: is it there still?
                    again = self.stats.again
                    await self._log.state()
                if not is_read and self._position >= state.last:
                    is_read = True
                    await self._on_loaded(is_new=not state.last or self.loaded.is_set())
                found = await reader.next(_WAIT_S)
                attempts.succeeded()
                for logged in found:
                    self._read(logged)
                if not found:  # what was last has run out
                    self._position = max(self._position, state.last)
        finally:
            await reader.close()

    async def _here(self) -> set[tuple[str, str]]:
        """Owner and topic of what the broker has retained; others have their turns meanwhile."""
        found: set[tuple[str, str]] = set()
        pauses = LoopPauses()
        for owner in self._retained.owners():
            for message in self._retained.walk("#", owner):
                if message is not None and message.owner == owner:
                    found.add((owner, message.topic.decode()))
                await pauses.pause()
        return found

    async def _on_loaded(self, *, is_new: bool) -> None:
        """The broker's own, older ones go into a log that is new, and out of the broker else; what is set meanwhile is
        newer than both. Others have their turns meanwhile."""
        pauses = LoopPauses()
        while self._stale:
            owner, topic = self._stale.pop()
            if not is_new:
                self._retained.remove(topic, owner)
            elif (owner, topic) not in self._offers:
                self._add_whole(owner, topic)
            await pauses.pause()
        self.loaded.set()

    def _add_whole(self, owner: str, topic: str) -> None:
        """Puts what the broker has retained on a topic into the log."""
        for found in self._retained.walk(topic, owner):
            whole = None if found is None else self._retained.whole(found, self._now_us())
            if whole is not None and whole.owner == owner:
                self._add(_as_change(topic, whole))

    def _read(self, logged: Logged) -> None:
        self._position = self.stats.sequence = logged.sequence
        self.stats.read += 1
        try:
            change = decode_retained(logged.body)
        except NodeMessageDamaged as error:
            self.stats.damaged += 1
            self._failure_log.warning("%s", error)
            return
        key = change.owner, change.topic
        self._stale.discard(key)
        ahead = self._ahead.get(key, 0)
        if logged.sequence >= ahead:
            self._ahead.pop(key, None)
        if logged.sequence > ahead:
            self._apply(change)

    def _apply(self, change: RetainedChange) -> None:
        if not change.payload or (change.expires_us and change.expires_us <= self._now_us()):
            self._retained.remove(change.topic, change.owner)
            return
        message = ApplicationMessage(
            topic=change.topic.encode(),
            payload=change.payload,
            qos=change.qos,
            retain=True,
            properties=change.properties,
            expires_us=change.expires_us,
            publisher=change.publisher or None,
            owner=change.owner,
        )
        self._retained.take(change.topic, message)


def _as_change(topic: str, message: ApplicationMessage) -> RetainedChange:
    return RetainedChange(
        VERSION,
        message.owner,
        topic,
        message.payload,
        message.qos,
        message.properties,
        message.expires_us,
        message.publisher or "",
    )
