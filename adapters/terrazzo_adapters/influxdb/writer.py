"""``InfluxWriter``: all changes of the server. What it can't take at once waits in the spool, in order.

One batch at a time is sent. Its tie-breakers are fixed before the first attempt, on disk if the batch is spooled, so
that an attempt whose outcome is unknown can be repeated: it overwrites itself. A replacement that was begun is on disk
too, and nothing that came later is sent before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from terrazzo.ports.store import Notes, Record, RecordsRefused, Seen, StoreStats, StoreUnavailable
from terrazzo.ports.tasks import OnFailure, Tasks
from terrazzo.retry import Attempts, Retry
from terrazzo_adapters.influxdb import queries, replacement
from terrazzo_adapters.influxdb.delivery import BatchDelivery
from terrazzo_adapters.influxdb.lines import LinePoint
from terrazzo_adapters.influxdb.naming import line_head
from terrazzo_adapters.influxdb.outage import Outage
from terrazzo_adapters.influxdb.server import Server
from terrazzo_adapters.influxdb.spool import RecordSpool, SpooledBatch

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)
_RETRY = Retry(first_s=0.1, most_s=5.0)
_CLOSE_S = 5.0


class InfluxWriter:
    """Appends, replaces and deletes; a task sends what waits in the spool, oldest first."""

    def __init__(
        self, server: Server, spool: RecordSpool, *, thread: ThreadPoolExecutor, tasks: Tasks, writer: str, limit: int
    ) -> None:
        """Starts to send what an earlier process left in the spool.

        Args:
            spool: open; all its methods are called on ``thread``.
            writer: tells this process from others that write to the same database.
            limit: bytes in the spool beyond which ``append`` waits.
        """
        self.delivery = BatchDelivery(server, writer)
        self._server = server
        self._spool = spool
        self._thread = thread
        self._limit = limit
        self._turn = asyncio.Lock()  # one batch or replacement at a time
        self._deleting = asyncio.Lock()  # one DELETE at a time
        self._sending = asyncio.Lock()  # held while the spool is sent
        self._work = asyncio.Event()  # set when something came to be sent
        self._room = asyncio.Event()  # set when something left the spool
        self._closing = asyncio.Event()
        self._replacing: set[asyncio.Task[bool]] = set()
        self._arrival = 0
        self.outage = Outage(lambda: (spool.depth, spool.size))
        self._spooled_records = self._refused_records = 0
        # Without it nothing that was acknowledged reaches the server: then the store does not accept work.
        self._drainer = tasks.spawn("influxdb spool", self._drain, OnFailure.REPORT)

    def stats(self) -> StoreStats:
        """See ``InfluxStore.stats``."""
        return StoreStats(
            spooled_records=self._spooled_records,
            refused_records=self._refused_records,
            spool_batches=self._spool.depth,
            spool_bytes=self._spool.size,
            away_since_seconds=self.outage.since_s,
        )

    @property
    def is_whole(self) -> bool:
        """Whether nothing waits in the spool."""
        return not self._spool.depth

    @property
    def has_begun_replacement(self) -> bool:
        """Whether a replacement was begun that the server may not have completely."""
        return self._spool.replacement is not None

    def ensure_open(self) -> None:
        """Raises ``StoreUnavailable`` once ``close`` has been called."""
        if self._closing.is_set():
            raise StoreUnavailable("the time-series store is closed")

    async def settle(self) -> None:
        """Waits until queries may be sent: the server is there, and no replacement is half done.

        Raises:
            StoreUnavailable: the server is away, or the store is closed.
        """
        self.ensure_open()
        await self.delivery.connect()
        await self._finish_replacement()

    # Appending

    async def append(self, records: Sequence[Record], notes: Notes) -> None:
        """See ``InfluxStore.append``."""
        self.ensure_open()
        points = self._points(records)
        if not points and not notes:
            return
        async with self._turn:
            self.ensure_open()
            if not points:
                await self._in_thread(self._spool.put_notes, notes)
            elif self._spool.depth:
                await self._spool_durably(points, notes)
            else:
                await self._deliver_or_spool(points, notes)

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted by name."""
        self.ensure_open()
        return await self._in_thread(self._spool.notes, prefix)

    async def checkpoint(self, path: Path) -> None:
        """See ``InfluxStore.checkpoint``."""
        self.ensure_open()
        await self._in_thread(self._spool.checkpoint, path)

    def _points(self, records: Sequence[Record]) -> list[LinePoint]:
        for place, record in enumerate(records):
            if not 0 <= record.time_us <= queries.LATEST_US:
                raise ValueError(f"records[{place}].time_us: {record.time_us} is not from 0 to {queries.LATEST_US}")
            line_head(record.series, "").encode()  # refuses a name that can't be stored
        first = self._arrival = max(self._arrival + 1, time.time_ns())
        self._arrival += len(records)
        return [LinePoint(each.series, each.time_us, each.body, first + place) for place, each in enumerate(records)]

    async def _deliver_or_spool(self, points: list[LinePoint], notes: Notes) -> None:
        """Sends a batch, or spools it if the server is away. One with notes is written to disk before it is sent."""
        try:
            await self._finish_replacement()
            await self.delivery.prepare(points)
        except StoreUnavailable as error:
            await self._spool_durably(points, notes)
            self.outage.begin(error)
            return
        batch = await self._in_thread(self._spool.put_ahead, points, notes) if notes else None
        try:
            refused = await self.delivery.deliver(points)
            if batch is not None:
                await self._in_thread(self._spool.drop, batch)
        except StoreUnavailable as error:
            if batch is None:
                await self._spool_durably(points, notes)
            else:
                self._keep(batch, points)
            self.outage.begin(error)
            return
        except BaseException:
            if batch is not None:
                self._keep(batch, points)
            raise
        self.outage.end()
        _raise_if_refused(refused, self.delivery.reason)

    def _keep(self, batch: SpooledBatch, points: Sequence[LinePoint]) -> None:
        self._spool.keep(batch)
        self._on_spooled(len(points))

    async def _spool_durably(self, points: list[LinePoint], notes: Notes) -> None:
        while not (self._has_room() or self._closing.is_set()):
            self._room.clear()
            await self._room.wait()
        self.ensure_open()
        await self._in_thread(self._put, points, notes, asyncio.get_running_loop())

    def _put(self, points: list[LinePoint], notes: Notes, loop: asyncio.AbstractEventLoop) -> None:
        """Spools a batch on the spool's thread, and reports it from there: the caller may have been cancelled."""
        self._spool.put(points, notes)
        loop.call_soon_threadsafe(self._on_spooled, len(points))

    def _on_spooled(self, records: int) -> None:
        self._spooled_records += records
        self._work.set()

    def _has_room(self) -> bool:
        return not self._spool.depth or self._spool.size < self._limit

    # Sending from the spool

    async def _drain(self) -> None:
        """Sends what waits in the spool, oldest first, as soon as the server takes it; until ``close``.

        It may fail between any two awaits and be started again: what was sent and not removed is sent again, and
        overwrites itself.
        """
        attempts = Attempts(_RETRY)
        await self._look()
        while not self._closing.is_set():
            if not self._has_work():
                self._work.clear()
                await self._work.wait()
                continue
            try:
                async with self._sending:
                    await self._finish_replacement()
                    while self._spool.depth and not self._closing.is_set():
                        await self._send_first()
                        attempts.succeeded()
            except StoreUnavailable as error:
                self.outage.begin(error)
                await self._pause(attempts.failed())

    async def _look(self) -> None:
        """Asks for the server once, so that it is known from the start on when it isn't there."""
        try:
            await self.delivery.connect()
        except StoreUnavailable as error:
            self.outage.begin(error)

    def _has_work(self) -> bool:
        return self._spool.depth > 0 or self.has_begun_replacement

    async def _send_first(self) -> None:
        points = await self._in_thread(self._spool.first)
        if await self.delivery.prepare(points):
            await self._in_thread(self._spool.replace_first, points)
        refused = await self.delivery.deliver(points)
        try:
            await self._in_thread(self._spool.remove_first)
        finally:
            self._room.set()
        self.outage.end()
        self._count_refused(refused, "spooled")

    def _count_refused(self, refused: Sequence[LinePoint], which: str) -> None:
        if refused:
            self._refused_records += len(refused)
            _log.error("InfluxDB refused %d %s records for good: %s", len(refused), which, self.delivery.reason)

    async def _pause(self, pause_s: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._closing.wait()

    # Replacing and deleting

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], given: Seen) -> bool:
        """See ``InfluxStore.replace``; it continues if the caller is cancelled."""
        task = asyncio.create_task(self._replace(series, start_us, end_us, records, given), name="influxdb replace")
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_unheard)
            raise

    async def _replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], given: Seen) -> bool:
        async with self._turn:
            self.ensure_open()
            await self.delivery.connect()
            await self._finish_replacement()
            if self._spool.depth:
                raise StoreUnavailable("records wait in the spool until InfluxDB takes them")
            if await queries.total(self._server, given.series, start_us, end_us) != given.total:
                return False
            points = self._points(records)
            wanted = await replacement.make_replacement(self._server, series, start_us, end_us, points)
            self.delivery.prepare_all(series, start_us, end_us, points)
            try:
                await self._in_thread(self._spool.put_replacement, wanted)
                await self._finish_replacement()
            finally:
                self._work.set()  # the drain task finishes what is left
            return True

    async def _finish_replacement(self) -> None:
        """Carries out the replacement that was begun, if any, and removes it from the disk."""
        if self._spool.replacement is None:
            return
        async with self._deleting:
            wanted = self._spool.replacement
            if wanted is None:
                return
            refused = await replacement.carry_out(self._server, self.delivery, wanted)
            self._count_refused(refused, "replaced")
            await self._in_thread(self._spool.remove_replacement)
            self._spool.replacement = None

    async def drop_before(self, time_us: int, series: Collection[str] | None) -> None:
        """Deletes all records earlier than ``time_us``, of these series alone if there are any; after ``settle``."""
        async with self._deleting:
            await queries.drop_before(self._server, time_us, series)

    # Closing

    async def close(self) -> None:
        """Ends the write under way; what waits in the spool stays there for the next process."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._work.set()
        self._room.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S), self._turn, self._sending:
                pass
        await self._drainer.stop()
        await self._server.close()
        await self._in_thread(self._spool.close)
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))


def _log_unheard(task: asyncio.Task[bool]) -> None:
    """Logs the failure of a replacement whose caller was cancelled; the replacement itself is on disk."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("a replacement ended after its caller had gone: %s: %s", type(error).__name__, error)


def _raise_if_refused(refused: Sequence[LinePoint], reason: str) -> None:
    if refused:
        records = [Record(point.series, point.time_us, point.body) for point in refused]
        raise RecordsRefused(records, f"InfluxDB will never take {len(records)} of the records: {reason}")
