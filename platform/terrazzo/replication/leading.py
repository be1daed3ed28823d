"""``ReplicatedStore``: a store whose changes are in the log before they are in the store; so each node has them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from terrazzo.ports.store import (
    NO_NOTES,
    Notes,
    Record,
    RecordsRefused,
    Seen,
    StoreFull,
    StoreUnavailable,
    TimeSeriesStore,
)
from terrazzo.ports.stream import LogFull, LogUnavailable, LogUnusable, ReplicatedLog, StaleWriter
from terrazzo.reasons import say
from terrazzo.replication.applying import apply
from terrazzo.replication.frame import Began, DroppedSeries, Operation, appended, encode_frames, replaced
from terrazzo.replication.frame import Dropped as DroppedRecords
from terrazzo.replication.position import Position
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.05, most_s=1.0)
_DROPPED_AT_ONCE = 1_000  # series in one change, of up to 64 KiB of names each
_GOODBYE_S = 5.0  # for a change that is under way at the end


class LeaderStats(msgspec.Struct):
    """Counters since this node leads."""

    operations: int = 0
    frames: int = 0
    bytes: int = 0
    settled: int = 0  # frames of which the log's answer was lost, found in the log
    again: int = 0  # attempts that were made because there was no answer
    store_again: int = 0
    full: int = 0  # changes that the log had no room for


class ReplicatedStore:
    """``TimeSeriesStore``: one change after the other goes into the log, then into this node's store.

    A change whose frame is in the log is done, whatever happens to this node: so nothing is given up once it may be
    there, and the caller waits, while the log or the disk doesn't answer. Only what is certain not to be in the log is
    refused. Queries are the store's own.

    Args:
        store: this node's.
        log: where its changes go.
        position: all of the log up to there is in the store.
        last: the log's newest frame, behind ``position`` only where a leader has left a change unfinished.
        epoch: of this node's lease.
        on_lost: is called, with why, when another node writes to the log: this one must end.
    """

    def __init__(
        self,
        store: TimeSeriesStore,
        log: ReplicatedLog,
        position: Position,
        *,
        last: int,
        epoch: int,
        on_lost: Callable[[str], None],
    ) -> None:
        self.position = position
        self.stats_of_log = LeaderStats()
        self._store = store
        self._log = log
        self._epoch = epoch
        self._name = f"{epoch}-{secrets.token_hex(4)}"  # in the log, of what this object has written
        self._on_lost = on_lost
        self._number = 0  # of the last operation
        self._last = last
        self._turn = asyncio.Lock()  # one change at a time, in the order of the calls
        self._under_way: asyncio.Task[bool] | None = None
        self._lost = ""
        self._unanswered = 0.0  # since when the log doesn't answer; 0: it does
        self._failure_log = SparseLog(_log)
        # all that changes nothing goes to the store as it is
        self.stats, self.kept, self.give_up = store.stats, store.kept, store.give_up
        self.sizes, self.watch = store.sizes, store.watch
        self.notes, self.series = store.notes, store.series
        self.latest, self.latest_each, self.first_after = store.latest, store.latest_each, store.first_after
        self.page, self.scan, self.names, self.columns = store.page, store.scan, store.names, store.columns
        self.digests, self.resample, self.extremes = store.digests, store.resample, store.extremes

    async def begin(self, node: str, version: str) -> None:
        """Says in the log that this node leads from here on, after which no earlier leader can write.

        Raises:
            StaleWriter: another frame is there that this store doesn't have yet.
            LogFull, LogUnavailable, LogUnusable: it is not said.
        """
        (frame,) = self._frames(Began(node, version))
        sequence = await self._log.publish(frame, message_id=self._message_id(0), last=self._last)
        await self._applied(Began(node, version), sequence)

    # As ``TimeSeriesStore`` says

    @property
    def has_sizes(self) -> bool:
        return self._store.has_sizes

    @property
    def is_whole(self) -> bool:
        return self._store.is_whole

    @property
    def is_replaceable(self) -> bool:
        return self._store.is_replaceable

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        if records or notes:
            await self._change(appended(records, dict(notes)), records)

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        return await self._change(replaced(series, start_us, end_us, records, given))

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        if series is None:
            await self._change(DroppedRecords(time_us))
            return
        names = list(series)
        for start in range(0, len(names), _DROPPED_AT_ONCE):
            await self._change(DroppedSeries(time_us, names[start : start + _DROPPED_AT_ONCE]))

    async def check(self) -> None:
        if self._lost:
            raise StoreUnavailable(self._lost)
        if self._unanswered:
            for_s = asyncio.get_running_loop().time() - self._unanswered
            raise StoreUnavailable(say("log_silent", seconds=for_s))
        await self._store.check()

    async def checkpoint(self, path: Path) -> None:
        async with self._turn:
            await self._store.checkpoint(path)

    async def close(self) -> None:
        if self._under_way is not None:
            await asyncio.wait({self._under_way}, timeout=_GOODBYE_S)
            self._under_way.cancel()  # the log may have it: this node finds it there when it starts again
        self._lost = self._lost or "this node is stopping"
        await self._store.close()

    async def _change(self, operation: Operation, records: Sequence[Record] | None = None) -> bool:
        """Does a change; goes on without a caller who is cancelled, as the log may have it already.

        ``records``: those that it appends; making them again of the operation would take as long as encoding it.
        """
        async with self._turn:
            while self._under_way is not None and not self._under_way.done():
                await asyncio.wait({self._under_way})
            if self._lost:
                raise StoreUnavailable(self._lost)
            self._under_way = asyncio.create_task(self._do(operation, records), name="change of the replicated store")
            return await asyncio.shield(self._under_way)

    async def _do(self, operation: Operation, records: Sequence[Record] | None) -> bool:
        frames = self._frames(operation)
        try:
            await self._publish_all(frames)
        except LogFull as error:
            self.stats_of_log.full += 1
            raise StoreFull(str(error)) from None
        except LogUnusable as error:
            raise StoreUnavailable(str(error)) from None
        return await self._applied(operation, self._last, records)

    def _frames(self, operation: Operation) -> list[bytes]:
        self._number += 1
        return encode_frames(operation, epoch=self._epoch, number=self._number, most_bytes=self._log.most_bytes)

    def _message_id(self, part: int) -> str:
        return f"{self._name}-{self._number}-{part}"

    async def _publish_all(self, frames: Sequence[bytes]) -> None:
        for part, frame in enumerate(frames):
            self._last = await self._publish(frame, self._message_id(part), is_first=part == 0)
            self.stats_of_log.frames += 1
            self.stats_of_log.bytes += len(frame)
        self.stats_of_log.operations += 1

    async def _publish(self, frame: bytes, message_id: str, *, is_first: bool) -> int:
        """The number of a frame that is in the log; tried until that is certain.

        Raises:
            LogFull: it isn't in the log, and nothing of its operation is.
            LogUnusable: the same.
            StoreUnavailable: another node leads.
        """
        attempts = Attempts(_AGAIN)
        while True:
            try:
                return self._answered(await self._log.publish(frame, message_id=message_id, last=self._last))
            except StaleWriter as error:
                sequence = await self._settle(message_id, error)
                if sequence:
                    return self._answered(sequence)
            except LogUnavailable as error:
                self._not_answered(error)
            except (LogFull, LogUnusable) as error:
                # what had no answer before may be there still, and an operation is whole or not there
                if is_first and not attempts.failures:
                    raise
                self._not_answered(error)
            await asyncio.sleep(attempts.failed() or 0)

    async def _settle(self, message_id: str, error: StaleWriter) -> int:
        """The number of this node's frame, which an attempt without an answer has brought into the log.

        Returns 0 while nobody knows. Ends this node when the frame in its place is another's.
        """
        try:
            found = await self._log.find(self._last + 1)
        except (LogUnavailable, LogUnusable) as away:
            self._not_answered(away)
            return 0
        if found is not None and found.message_id == message_id:
            self.stats_of_log.settled += 1
            return found.sequence
        if error.last < self._last:
            why = f"the log's last frame is {error.last}, and this node has written {self._last}: it went back"
        else:
            why = f"this node doesn't lead any more: {error}"
        return self._lose(why)

    def _answered(self, sequence: int) -> int:
        self._unanswered = 0.0
        if sequence != self._last + 1:
            self._lose(f"the log has numbered a frame {sequence} behind {self._last}: it is not the one that it was")
        return sequence

    def _lose(self, why: str) -> NoReturn:
        self._lost = why
        self._on_lost(why)
        raise StoreUnavailable(why)

    def _not_answered(self, error: Exception) -> None:
        self.stats_of_log.again += 1
        self._unanswered = self._unanswered or asyncio.get_running_loop().time()
        self._failure_log.warning("nothing is acknowledged: %s", error)

    async def _applied(self, operation: Operation, sequence: int, records: Sequence[Record] | None = None) -> bool:
        """Does in the store what is in the log; tried until the store takes it."""
        self._last = sequence
        place = msgspec.structs.replace(self.position, sequence=sequence, epoch=self._epoch)
        attempts = Attempts(_AGAIN)
        while True:
            try:
                done = await apply(self._store, operation, place, records)
            except (ValueError, RecordsRefused):
                self.position = place  # refused, here as on each node
                raise
            except StoreUnavailable as error:
                self.stats_of_log.store_again += 1
                self._failure_log.warning("frame %d is in the log and can't be stored here: %s", sequence, error)
            else:
                self.position = place
                return done
            await asyncio.sleep(attempts.failed() or 0)
