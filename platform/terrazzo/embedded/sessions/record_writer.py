"""``RecordWriter``: changes one record of the log, as long as nobody else does."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec
from mqtt5 import DisconnectReasonCode

from terrazzo.ports.stream import LogFull, Logged, LogUnavailable, LogUnusable, RecordChanged, StateLog
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.connection_state import ReadHold
from terrazzo_broker.delivery.connection_port import Origin
from terrazzo_broker.refusals import Cause

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.1, most_s=2.0)
_LAZY_S = 0.05  # that a change waits for others, if no answer waits for it
_AT_ONCE = 64  # writers that write
_REMOVED_S = 3_600.0  # for so long the log keeps that there is nothing any more; each node has read it by then

Encode = Callable[[], bytes]
"""The record as it is to be, of the moment; empty: there is none any more."""


class RecordStats(msgspec.Struct):
    """Counters since the start, of all writers of a node."""

    written: int = 0
    again: int = 0  # attempts without an answer, or without room
    lost: int = 0  # records that another node has changed: it has the session now


class RecordWriter:
    """The one of a record that this node has. One change is on its way; what comes meanwhile is the next.

    Answers that depend on a change are withheld until the log has it. Each change names the one before: where another
    node has changed the record, ``on_lost`` is told once, and nothing is written any more.
    """

    def __init__(self, writers: RecordWriters, key: tuple[str, ...]) -> None:
        self.key = key
        self.last = 0  # number of the present message, as this node knows it
        self.on_lost: Callable[[], None] = _nothing
        self.on_written: Callable[[int, bytes], None] = _ignored
        self.is_lost = False
        self.holder: object = None  # whose changes count, where there are several
        self.is_held = False  # somebody is about to go on with it
        self._writers = writers
        self._encode: Encode | None = None  # what isn't written yet
        self._waiting: dict[Origin, None] = {}
        self._lazy: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_due = False

    @property
    def is_idle(self) -> bool:
        """Whether the log has all that is to be written."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Returns when the log has all, or another node has changed the record."""
        await self._idle.wait()

    def change(self, encode: Encode, origin: Origin | None = None) -> None:
        """Has the record written at once; the further output of ``origin`` is withheld until the log has it."""
        if self.is_lost:
            return
        self._encode = encode
        self._idle.clear()
        if origin is not None and origin not in self._waiting:
            self._waiting[origin] = None
            origin.withhold()
        self._start()

    def change_later(self, encode: Encode) -> None:
        """Has the record written in a moment, with what comes until then; no answer waits for it."""
        if self.is_lost:
            return
        self._encode = encode
        self._idle.clear()
        if self._lazy is None and not self.is_due:
            self._lazy = asyncio.get_running_loop().call_later(_LAZY_S, self._start)

    def begin(self, last: int) -> None:
        """Goes on behind a message that was found in the log."""
        self.last, self.is_lost = last, False

    def _start(self) -> None:
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        if not self.is_due:
            self.is_due = True
            self._writers.start(self)

    async def write(self) -> None:
        """Writes until there is nothing to be written."""
        while self._encode is not None and not self.is_lost:
            body, self._encode = self._encode(), None
            withheld = [(origin, origin.take_withheld()) for origin in self._waiting]
            self._waiting.clear()
            sequence = await self._writers.put(self, body, [origin for origin, _ in withheld])
            if sequence is None:
                self._lose([origin for origin, _ in withheld])
                break
            self.last = sequence
            self.on_written(sequence, body)
            for origin, packets in withheld:
                origin.let_go(packets, more=origin in self._waiting)
        self.is_due = False
        self._encode = None
        self._idle.set()

    def _lose(self, origins: list[Origin]) -> None:
        """Nothing of it may be answered: another node has the session."""
        self.is_lost = True
        waiting, self._waiting = [*origins, *self._waiting], {}
        self.on_lost()
        for origin in waiting:
            origin.close("taken over", reason=DisconnectReasonCode.SESSION_TAKEN_OVER)


class RecordWriters:
    """All writers of a node, some of which write at a time.

    Args:
        name: this node's, and which of its starts it is: no two name a change alike.
    """

    def __init__(self, log: StateLog, *, name: str, stats: RecordStats) -> None:
        self.stats = stats
        self._log = log
        self._name = name
        self._count = 0
        self._failing: set[RecordWriter] = set()
        self._due: deque[RecordWriter] = deque()
        self._writing = 0
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    @property
    def is_failing(self) -> bool:
        """Whether the log takes nothing now."""
        return bool(self._failing)

    def start(self, writer: RecordWriter) -> None:
        """Has a writer write."""
        self._due.append(writer)
        self._wake.set()

    def new_id(self) -> str:
        """A name for a message that no other has."""
        self._count += 1
        return f"{self._name}-s{self._count}"

    async def work(self) -> None:
        """Writes, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                while self._due and self._writing < _AT_ONCE:
                    self._writing += 1
                    group.create_task(self._write(self._due.popleft()), name="session to the log")
                await self._wake.wait()

    async def _write(self, writer: RecordWriter) -> None:
        try:
            await writer.write()
        finally:
            self._writing -= 1
            self._wake.set()

    async def put(self, writer: RecordWriter, body: bytes, origins: list[Origin]) -> int | None:
        """The number of a writer's record once the log has it; None: another node has changed it."""
        attempts, message_id = Attempts(_AGAIN), self.new_id()
        try:
            while True:
                try:
                    sequence = await self._log.replace(
                        writer.key,
                        body,
                        last=writer.last,
                        message_id=message_id,
                        lasts_s=0.0 if body else _REMOVED_S,
                    )
                except RecordChanged:
                    found = await self._again(lambda: self._log.get(writer.key))
                    if found is None or found.message_id != message_id:
                        self.stats.lost += 1
                        return None
                    sequence = found.sequence  # an earlier attempt, whose answer was lost
                except (LogFull, LogUnavailable, LogUnusable) as error:
                    self._fail(writer, error, origins)
                    await asyncio.sleep(attempts.failed() or 0)
                    continue
                self.stats.written += 1
                return sequence
        finally:
            self._failing.discard(writer)
            for origin in origins:
                origin.release(ReadHold.STORAGE)

    def _fail(self, writer: RecordWriter, error: Exception, origins: list[Origin]) -> None:
        """Nobody is answered before the log has it; where it is full, that may be never."""
        self.stats.again += 1
        self._failing.add(writer)
        self._failure_log.warning("sessions wait for the log: %s", error)
        for origin in origins:
            origin.hold(ReadHold.STORAGE)
            if isinstance(error, LogFull):
                origin.tell_refused(Cause.STORAGE_UNAVAILABLE, DisconnectReasonCode.QUOTA_EXCEEDED)
                origin.close("sessions can't be stored", reason=DisconnectReasonCode.QUOTA_EXCEEDED)

    async def _again(self, ask: Callable[[], Awaitable[Logged | None]]) -> Logged | None:
        attempts = Attempts(_AGAIN)
        while True:
            try:
                return await ask()
            except (LogUnavailable, LogUnusable) as error:
                self.stats.again += 1
                self._failure_log.warning("sessions wait for the log: %s", error)
                await asyncio.sleep(attempts.failed() or 0)


def _nothing() -> None:
    pass


def _ignored(sequence: int, body: bytes) -> None:
    pass
