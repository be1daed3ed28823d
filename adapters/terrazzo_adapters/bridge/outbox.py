"""The outbox: takes what is to leave, gets it onto the disk, and hands it on in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from terrazzo.ports.bridge import BridgeMessage, BridgeStatus, LocalBroker
from terrazzo.ports.store import StoreUnavailable
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.bridge.ledger import Ledger
from terrazzo_adapters.bridge.spool import Entry, Spool

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PENDING_BYTES = 8 << 20  # not on disk yet; with more than this nobody is read from, until half of it is gone
_WINDOW_BYTES = 4 << 20  # kept in memory of what comes next
_READ_MESSAGES = 500
_RETRY_FIRST_S, _RETRY_MOST_S = 0.1, 5.0


class Outbox:
    """One bridge's queue: ``offer`` puts in, ``next`` takes out, ``done`` forgets. All on the event loop; the spool
    has a thread. ``on_ready`` is called when ``next`` may have something after it had nothing."""

    def __init__(self, name: str, *, spool: Spool, ledger: Ledger, status: BridgeStatus, broker: LocalBroker) -> None:
        self.on_ready: Callable[[], None] = lambda: None
        self._name = name
        self._spool = spool
        self._ledger = ledger
        self._status = status
        self._broker = broker
        self._thread = ThreadPoolExecutor(1, f"bridge {name} spool")
        self._overflow_log, self._failure_log = SparseLog(_log), SparseLog(_log)
        self._wake = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

        self._pending: list[Entry] = []
        self._pending_bytes = 0
        self._committing: list[Entry] = []
        self._gone: list[int] = []
        self._paused = False
        self._durable = 0  # up to this number everything is on disk
        self._promised = 0  # the last number of QoS 1
        self._waiters: deque[tuple[int, Callable[[], None]]] = deque()

        self._window: deque[Entry] = deque()  # what comes next, without gaps
        self._window_bytes = 0
        self._is_complete = True  # the window has everything that comes after it
        self._cursor = 0  # the last number that was taken out
        self._reading: asyncio.Future[list[Entry]] | None = None

    async def open(self) -> None:
        """Finds what an earlier process left.

        Raises:
            StoreUnavailable: the folder can't be used.
        """
        left = await self._in_thread(self._load)
        for number, qos, size in left:
            self._ledger.restore(number, qos=qos, size=size)
        self._durable = self._ledger.last
        self.rewind()
        self._count()
        self._writer = asyncio.create_task(self._write(), name=f"bridge {self._name} spool")

    def _load(self) -> list[tuple[int, int, int]]:
        self._spool.open()
        return [(number, message.qos, message.size) for number, message in self._spool.all()]

    # In

    def offer(self, message: BridgeMessage) -> bool:
        """As in the port."""
        number, dropped = self._ledger.admit(qos=message.qos, size=message.size)
        if dropped:
            self._gone += dropped
        if dropped or number is None:
            self._status.dropped += len(dropped) + (number is None)
            self._overflow_log.warning("bridge %s: the spool is full, messages are dropped", self._name)
        if number is not None:
            self._enter(number, message)
        self._count()
        return number is not None

    def _enter(self, number: int, message: BridgeMessage) -> None:
        self._pending.append((number, message))
        self._pending_bytes += message.size
        if message.qos:
            self._promised = number
        if self._is_complete and self._window_bytes < _WINDOW_BYTES:
            self._window.append((number, message))
            self._window_bytes += message.size
        else:
            self._is_complete = False
        if self._pending_bytes > _PENDING_BYTES and not self._paused:
            self._paused = True
            self._broker.pause(self._name)
        self._wake.set()

    @property
    def is_durable(self) -> bool:
        """As in the port."""
        return self._durable >= self._promised

    def when_durable(self, then: Callable[[], None]) -> None:
        """As in the port."""
        if self.is_durable:
            then()
        else:
            self._waiters.append((self._promised, then))

    # To the disk

    async def _write(self) -> None:
        while not (self._closing and not self._pending and not self._gone):
            await self._wake.wait()
            self._wake.clear()
            while self._pending or self._gone:
                await self._commit()
                self.on_ready()
            if self._closing:
                return

    async def _commit(self) -> None:
        taken, self._pending = self._pending, []
        self._pending_bytes = 0
        gone, self._gone = self._gone, []
        self._committing = taken
        added = [entry for entry in taken if entry[0] in self._ledger]
        write = partial(self._spool.commit, added, gone, sync=any(message.qos for _, message in added))
        retry_s = _RETRY_FIRST_S
        while not await self._written(write):
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, _RETRY_MOST_S)
        self._committing = []
        if taken:
            self._durable = taken[-1][0]
        while self._waiters and self._waiters[0][0] <= self._durable:
            self._waiters.popleft()[1]()
        if self._paused and self._pending_bytes <= _PENDING_BYTES // 2:
            self._paused = False
            self._broker.resume(self._name)

    async def _written(self, write: Callable[[], None]) -> bool:
        try:
            await self._in_thread(write)
        except StoreUnavailable as error:
            self._status.spool_failures += 1
            self._failure_log.warning("%s; publishers wait", error)
            return False
        return True

    # Out

    def next(self) -> Entry | None:
        """The next message to send, in order; None where none is at hand now."""
        while self._window:
            if self._window[0][0] > self._durable:
                return None
            number, message = self._window.popleft()
            self._window_bytes -= message.size
            self._cursor = number
            if number in self._ledger:  # else it was dropped meanwhile
                self._ledger.on_the_way = number
                return number, message
        if not self._is_complete and self._reading is None:
            self._read()
        return None

    def done(self, number: int) -> None:
        """Forgets a message."""
        if self._ledger.remove(number):
            self._gone.append(number)
            self._wake.set()
            self._count()

    def rewind(self) -> None:
        """Starts over with the oldest message that is not done."""
        self._window.clear()
        self._window_bytes = 0
        self._cursor = self._ledger.first - 1
        self._ledger.on_the_way = 0
        self._is_complete = not len(self._ledger)
        self._reading = None  # what a reading under way brings is not wanted any more

    def _read(self) -> None:
        read = partial(self._spool.read, self._cursor + 1, most=_READ_MESSAGES, most_bytes=_WINDOW_BYTES)
        reading = asyncio.ensure_future(self._in_thread(read))
        self._reading = reading
        reading.add_done_callback(self._on_read)

    def _on_read(self, reading: asyncio.Future[list[Entry]]) -> None:
        error = None if reading.cancelled() else reading.exception()
        if reading is not self._reading or reading.cancelled():
            return
        self._reading = None
        if error is not None:
            self._status.spool_failures += 1
            self._failure_log.warning("bridge %s: %s", self._name, error)
            asyncio.get_running_loop().call_later(_RETRY_MOST_S, self.on_ready)
            return
        found = reading.result()
        if len(found) < _READ_MESSAGES and sum(message.size for _, message in found) < _WINDOW_BYTES:
            last = found[-1][0] if found else self._cursor
            found += [entry for entry in [*self._committing, *self._pending] if entry[0] > last]
            self._is_complete = True  # the disk has no more, and what isn't there yet is here
        self._window.extend(found)
        self._window_bytes += sum(message.size for _, message in found)
        self.on_ready()

    # The end

    async def close(self, timeout_s: float = 3.0) -> None:
        """Gets everything onto the disk. What a failing disk doesn't take in time was never acknowledged."""
        self._closing = True
        self._wake.set()
        if self._writer is not None:
            done, _ = await asyncio.wait({self._writer}, timeout=timeout_s)
            if not done:
                _log.warning("bridge %s: stopped with messages that are not on disk", self._name)
                self._writer.cancel()
                await asyncio.wait({self._writer})
        self._reading = None
        await self._in_thread(self._spool.close)
        self._thread.shutdown(wait=False)

    def _count(self) -> None:
        self._status.queued = len(self._ledger)
        self._status.queued_bytes = self._ledger.bytes

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
