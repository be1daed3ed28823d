"""``MessageQueue``: the messages that a bridge is to send, on disk and in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from terrazzo.listeners import Listeners
from terrazzo.ports.bridge import BridgeMessage, BridgeStatus, LocalBroker
from terrazzo.ports.store import StoreUnavailable
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.bridge.queue_index import QueueIndex
from terrazzo_adapters.bridge.spool import MessageSpool, NumberedMessage

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PENDING_BYTES = 8 << 20  # not on disk yet; with more than this nobody is read from, until half of it is gone
_WINDOW_BYTES = 4 << 20  # kept in memory of what comes next
_READ_MESSAGES = 500
_RETRY = Retry(first_s=0.1, most_s=5.0)


class MessageQueue:
    """``terrazzo.ports.bridge.BridgeQueue`` on disk; ``next`` returns the next message, ``done`` removes one.

    Everything runs on the event loop; the spool has a thread. Two tasks use it, one writes and one reads ahead. Each
    may fail and be started again: what it was working on stays in the queue, and is done again.

    ``ready`` is told when ``next`` may have a message after it had none.
    """

    def __init__(
        self,
        name: str,
        *,
        spool: MessageSpool,
        index: QueueIndex,
        status: BridgeStatus,
        broker: LocalBroker,
        tasks: Tasks,
    ) -> None:
        self.ready: Listeners[[]] = Listeners(f"bridge {name}: messages ready")
        self._name = name
        self._spool = spool
        self._index = index
        self._status = status
        self._broker = broker
        self._tasks = tasks
        self._thread = ThreadPoolExecutor(1, f"bridge {name} spool")
        self._overflow_log, self._failure_log = SparseLog(_log), SparseLog(_log)
        self._running: list[Task] = []

        # From the local broker to the disk
        self._work = asyncio.Event()  # set when something came to be written
        self._idle = asyncio.Event()  # set while there is nothing to be written
        self._idle.set()
        self._pending: list[NumberedMessage] = []
        self._pending_bytes = 0
        self._gone: list[int] = []  # done or dropped, and perhaps on disk
        self._committing: list[NumberedMessage] = []  # taken from ``_pending``, and not known to be on disk
        self._removing: list[int] = []  # the same of ``_gone``
        self._paused = False
        self._durable = 0  # up to this number everything is on disk
        self._promised = 0  # the last number of QoS 1
        self._waiters: deque[tuple[int, Callable[[], None]]] = deque()

        # From the disk to the sender
        self._wanted = asyncio.Event()  # set when more is to be read
        self._epoch = 0  # rises with each rewind: what was read before it is not wanted any more
        self._window: deque[NumberedMessage] = deque()  # what comes next, without gaps
        self._window_bytes = 0
        self._is_complete = True  # the window has everything that comes after it
        self._cursor = 0  # the last number that was taken out

    @property
    def memory_bytes(self) -> int:
        """What of its messages is in memory, too."""
        committing = sum(message.size for _, message in self._committing)
        return self._pending_bytes + self._window_bytes + committing

    async def open(self) -> None:
        """Restores what an earlier process left, and starts the tasks.

        Raises:
            StoreUnavailable: the folder can't be used.
        """
        left = await self._in_thread(self._load)
        for number, qos, size in left:
            self._index.restore(number, qos=qos, size=size)
        self._durable = self._index.last
        self.rewind()
        self._count()
        # Without the writer no publisher of QoS 1 is answered: then the platform does not accept work. Without the
        # reader messages wait on disk, as they do while the remote broker is away.
        self._running = [
            self._tasks.spawn(f"bridge {self._name} writer", self._write, OnFailure.REPORT),
            self._tasks.spawn(f"bridge {self._name} reader", self._read_ahead, OnFailure.RESTART),
        ]

    def _load(self) -> list[tuple[int, int, int]]:
        self._spool.open()
        return [(number, message.qos, message.size) for number, message in self._spool.all()]

    # Appending

    def offer(self, message: BridgeMessage) -> bool:
        """See ``BridgeQueue.offer``."""
        number, dropped = self._index.admit(qos=message.qos, size=message.size)
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
        self._wake_writer()

    def _wake_writer(self) -> None:
        self._idle.clear()
        self._work.set()

    @property
    def is_durable(self) -> bool:
        """See ``BridgeQueue.is_durable``."""
        return self._durable >= self._promised

    def when_durable(self, then: Callable[[], None]) -> None:
        """See ``BridgeQueue.when_durable``."""
        if self.is_durable:
            then()
        else:
            self._waiters.append((self._promised, then))

    # Writing to disk

    async def _write(self) -> None:
        """Writes new messages to disk and removes those that are done, until it is stopped."""
        self._tell_written()  # callbacks that an earlier run may have left
        while True:
            if self._pending or self._gone or self._committing or self._removing:
                await self._commit()
                self._tell_written()
            else:
                self._idle.set()
                self._work.clear()
                await self._work.wait()

    async def _commit(self) -> None:
        if not (self._committing or self._removing):  # else an earlier run did not finish these
            self._committing, self._pending, self._pending_bytes = self._pending, [], 0
            self._removing, self._gone = self._gone, []
        added = [entry for entry in self._committing if entry[0] in self._index]
        write = partial(self._spool.commit, added, self._removing, sync=any(message.qos for _, message in added))
        await self._try_until_written(write)
        if self._committing:
            self._durable = self._committing[-1][0]
        self._committing, self._removing = [], []

    async def _try_until_written(self, write: Callable[[], None]) -> None:
        attempts = Attempts(_RETRY)
        while True:
            try:
                await self._in_thread(write)
            except StoreUnavailable as error:
                self._status.spool_failures += 1
                self._failure_log.warning("%s; publishers wait", error)
                await asyncio.sleep(attempts.failed() or 0)
            else:
                return

    def _tell_written(self) -> None:
        self._answer_waiters()
        self._resume_broker()
        self.ready.tell()

    def _answer_waiters(self) -> None:
        while self._waiters and self._waiters[0][0] <= self._durable:
            _, then = self._waiters.popleft()
            try:
                then()
            except Exception as error:  # noqa: BLE001 - the fault of one who waits is no reason not to answer the next
                self._failure_log.error(
                    "bridge %s: telling that messages are on disk failed: %s",
                    self._name,
                    type(error).__name__,
                    exc_info=True,
                )

    def _resume_broker(self) -> None:
        if self._paused and self._pending_bytes <= _PENDING_BYTES // 2:
            self._broker.resume(self._name)
            self._paused = False

    # Taking out

    def next(self) -> NumberedMessage | None:
        """The next message to send, in order; None if none has been read yet."""
        while self._window:
            if self._window[0][0] > self._durable:
                return None
            number, message = self._window.popleft()
            self._window_bytes -= message.size
            self._cursor = number
            if number in self._index:  # else it was dropped meanwhile
                self._index.on_the_way = number
                return number, message
        if not self._is_complete:
            self._wanted.set()
        return None

    def done(self, number: int) -> None:
        """Removes a message by its number: the remote broker has it, or will never take it."""
        if self._index.remove(number):
            self._gone.append(number)
            self._wake_writer()
            self._count()

    def rewind(self) -> None:
        """Starts again with the oldest message that is not done."""
        self._epoch += 1
        self._wanted.clear()
        self._window.clear()
        self._window_bytes = 0
        self._cursor = self._index.first - 1
        self._index.on_the_way = 0
        self._is_complete = not len(self._index)

    # Reading ahead

    async def _read_ahead(self) -> None:
        """Reads the next messages from disk whenever they are wanted, until it is stopped."""
        attempts = Attempts(_RETRY)
        while True:
            await self._wanted.wait()
            epoch = self._epoch
            read = partial(self._spool.read, self._cursor + 1, most=_READ_MESSAGES, most_bytes=_WINDOW_BYTES)
            try:
                found = await self._in_thread(read)
            except StoreUnavailable as error:
                self._status.spool_failures += 1
                self._failure_log.warning("bridge %s: %s", self._name, error)
                await asyncio.sleep(attempts.failed() or 0)
                continue
            attempts.succeeded()
            if epoch == self._epoch:
                self._wanted.clear()
                self._extend_window(found)
                self.ready.tell()

    def _extend_window(self, found: list[NumberedMessage]) -> None:
        if len(found) < _READ_MESSAGES and sum(message.size for _, message in found) < _WINDOW_BYTES:
            last = found[-1][0] if found else self._cursor
            found += [entry for entry in [*self._committing, *self._pending] if entry[0] > last]
            self._is_complete = True  # the disk has no more, and what isn't there yet is here
        self._window.extend(found)
        self._window_bytes += sum(message.size for _, message in found)

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy in ``path`` of what is on disk, which a queue can be opened on."""
        await self._in_thread(partial(self._spool.checkpoint, path))

    # Closing

    async def close(self, timeout_s: float = 3.0) -> None:
        """Writes everything to disk within ``timeout_s``; what a failing disk doesn't take was never acknowledged."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("bridge %s: stopped with messages that are not on disk", self._name)
        for task in self._running:
            await task.stop()
        await self._in_thread(self._spool.close)
        self._thread.shutdown(wait=False)

    def _count(self) -> None:
        self._status.queued = len(self._index)
        self._status.queued_bytes = self._index.bytes

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
