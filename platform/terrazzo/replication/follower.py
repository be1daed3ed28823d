"""``Follower``: follows the log into a store, frame by frame, and knows how far it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from terrazzo.listeners import Listeners
from terrazzo.ports.store import Record, RecordsRefused, StoreUnavailable, TimeSeriesStore
from terrazzo.ports.stream import Logged, LogReader, LogUnavailable, ReplicatedLog
from terrazzo.replication.applying import apply
from terrazzo.replication.frame import Appended, Assembly, Frame, Operation, decode_frame, records_of
from terrazzo.replication.position import Position, check_next
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_WAIT_S = 0.5
_AGAIN = Retry(first_s=0.1, most_s=2.0)


class FollowerStats(msgspec.Struct):
    """Counters since the start, and where it is."""

    sequence: int = 0  # the last frame that the store has
    epoch: int = 0
    frames: int = 0
    operations: int = 0
    refused: int = 0  # operations that the store never takes, here as on each node
    failures: int = 0  # times that the log or the store did not answer


class Follower:
    """Applies frames in their order. One that can't be read, or doesn't fit, ends it with the error that says so.

    ``records`` tells of what was appended, once the store has it.
    """

    def __init__(self, log: ReplicatedLog, store: TimeSeriesStore, position: Position) -> None:
        self.position = position
        self.stats = FollowerStats(sequence=position.sequence, epoch=position.epoch)
        self.records: Listeners[Sequence[Record]] = Listeners("records of the log")
        self._moved: asyncio.Future[None] | None = None  # is done at the next operation, where somebody waits for it
        self._log = log
        self._store = store
        self._seen = position.sequence  # the last frame that was read
        self._assembly = Assembly()
        self._is_ending = False
        self._failure_log = SparseLog(_log)

    def end(self) -> None:
        """Has ``follow`` return behind the frame that it is at: cancelled, nobody would know whether it was stored."""
        self._is_ending = True

    async def follow(self) -> None:
        """Follows until ``end``.

        Raises:
            LogWentBack, FrameDamaged: nobody may go on by himself; says what to do.
        """
        await self._follow_while(lambda: not self._is_ending)

    async def follow_to(self, last: int) -> None:
        """Follows until all frames up to ``last`` are read, and applied if they are whole; raises as ``follow``."""
        self._is_ending = False
        await self._follow_while(lambda: self._seen < last)

    async def reach(self, sequence: int) -> None:
        """Returns when the store has all frames up to this one; where nobody follows any more, never."""
        while self.position.sequence < sequence:
            if self._moved is None:
                self._moved = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._moved)

    async def _follow_while(self, goes_on: Callable[[], bool]) -> None:
        reader, attempts = self._reader(), Attempts(_AGAIN)
        try:
            while goes_on():
                try:
                    await self._read_some(reader)
                    attempts.succeeded()
                except LogUnavailable as error:
                    self.stats.failures += 1
                    self._failure_log.warning("%s", error)
                    await asyncio.sleep(attempts.failed() or 0)
        finally:
            await reader.close()

    def _reader(self) -> LogReader:
        """Reads on behind the last whole operation: parts of one that wasn't whole are read again."""
        self._assembly, self._seen = Assembly(), self.position.sequence
        return self._log.read(self.position.sequence, self.position.created)

    async def _read_some(self, reader: LogReader) -> None:
        for logged in await reader.next(_WAIT_S):
            if self._is_ending:
                return
            await self._take(logged)

    async def _take(self, logged: Logged) -> None:
        check_next(logged.sequence, behind=self._seen)
        frame = decode_frame(logged.body)
        operation = self._assembly.add(frame)
        self._seen = logged.sequence
        self.stats.frames += 1
        if operation is not None:
            place = msgspec.structs.replace(self.position, sequence=logged.sequence, epoch=frame.epoch)
            await self._apply(operation, place, frame)

    async def _apply(self, operation: Operation, place: Position, frame: Frame) -> None:
        attempts, is_stored = Attempts(_AGAIN), True
        records = records_of(operation) if isinstance(operation, Appended) else None
        while True:
            try:
                await apply(self._store, operation, place, records)
            except (ValueError, RecordsRefused):
                self.stats.refused += 1
                is_stored = False
            except StoreUnavailable as error:  # its disk is full, say: the log keeps the rest until then
                self.stats.failures += 1
                self._failure_log.warning("frame %d can't be stored: %s", place.sequence, error)
                await asyncio.sleep(attempts.failed() or 0)
                continue
            break
        self.position = place
        self.stats.operations += 1
        self.stats.sequence, self.stats.epoch = place.sequence, frame.epoch
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set_result(None)
        if is_stored and self.records and records is not None:
            self.records.tell(records)
