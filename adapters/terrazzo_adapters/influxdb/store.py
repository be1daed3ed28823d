"""``InfluxStore``: the port. What the server can't take at once waits in the spool, in order, and nothing is doubled.

One batch at a time is on its way. Its tie-breakers are fixed before the first attempt, on disk where the batch is
spooled, so that an attempt whose outcome is unknown can be repeated: it overwrites itself. A replacement that was begun
is on disk too, and nothing that came later goes before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from terrazzo.ports.store import (
    MOST_BUCKETS,
    NO_NOTES,
    Buckets,
    Curve,
    Fn,
    Notes,
    Page,
    Record,
    RecordsRefused,
    Seen,
    StoreUnavailable,
)
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.influxdb import aggregates, queries, replacement
from terrazzo_adapters.influxdb.delivery import Delivery
from terrazzo_adapters.influxdb.lines import Point
from terrazzo_adapters.influxdb.naming import kind_of, line_head
from terrazzo_adapters.influxdb.server import Server
from terrazzo_adapters.influxdb.settings import InfluxSettings
from terrazzo_adapters.influxdb.spool import Ahead, Spool
from terrazzo_adapters.rocksdb.replacement import check_records

if TYPE_CHECKING:
    from terrazzo_adapters.columns.extremes import Extremes
    from terrazzo_adapters.columns.resample import Resampler

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)
_RETRY_FIRST_S = 0.1
_RETRY_MOST_S = 5.0
_CLOSE_S = 5.0
_PIECE_RECORDS = 5_000
_WAITS = "InfluxDB does not take records, they wait in the spool: %s"
_SPOOL_BYTES = 256 * 1024 * 1024


class InfluxStore:
    """``TimeSeriesStore`` on an InfluxDB server. Queries see what has reached the server, not the spool."""

    def __init__(self, server: Server, spool: Spool, *, thread: ThreadPoolExecutor, writer: str, limit: int) -> None:
        """Use ``open``."""
        self._server = server
        self._delivery = Delivery(server, writer)
        self._spool = spool
        self._thread = thread
        self._limit = limit
        self._turn = asyncio.Lock()  # of appending and replacing
        self._deleting = asyncio.Lock()  # one DELETE at a time
        self._changed = asyncio.Condition()
        self._closing = asyncio.Event()
        self._arrival = 0
        self.refused = 0
        """How many acknowledged records the server refused for good when they came out of the spool."""
        self._drainer = asyncio.create_task(self._drain(), name="influxdb spool")

    @classmethod
    async def open(
        cls, settings: InfluxSettings, *, spool: str | Path, spool_bytes: int = _SPOOL_BYTES, writer: str = ""
    ) -> InfluxStore:
        """Opens the store; the server need not answer yet.

        Args:
            spool: a folder of this process' own.
            spool_bytes: how much may wait there; beyond it ``append`` waits.
            writer: letters and digits that tell this process from others that write to the same database.

        Raises:
            ValueError: ``url`` or ``writer`` can't be used.
            StoreUnavailable: the spool can't be opened.
        """
        if not settings.url.startswith(("http://", "https://")):
            raise ValueError(f"url: {settings.url!r} is not an http or https address")
        if writer and not writer.isalnum():
            raise ValueError(f"writer: {writer!r} is not made of letters and digits")
        thread = ThreadPoolExecutor(1, thread_name_prefix="influxdb-spool")
        queue = Spool(Path(spool))
        try:
            await asyncio.get_running_loop().run_in_executor(thread, queue.open)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(Server(settings), queue, thread=thread, writer=writer, limit=spool_bytes)

    @property
    def spooled(self) -> int:
        """How many batches wait in the spool."""
        return self._spool.depth

    @property
    def is_whole(self) -> bool:
        """Whether nothing waits in the spool."""
        return not self._spool.depth

    @property
    def begun(self) -> bool:
        """Whether a replacement was begun that the server may not have yet."""
        return self._spool.replacement is not None

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Returns when the server or the spool has all records durably; waits while the spool is full.

        Notes are on disk here, in one commit with their records, before the server has these: after a crash they are
        sent again, and overwrite themselves.

        Raises:
            ValueError: a record's name or time can't be stored, says which; nothing was stored.
            RecordsRefused: the server will never take some of the records; the others are stored.
            StoreFull: the spool's disk is full; nothing was stored.
            StoreUnavailable: the store is closing; nothing was stored.
        """
        self._ensure_open()
        points = self._points(records)
        if not points and not notes:
            return
        async with self._turn:
            self._ensure_open()
            if not points:
                await self._in_thread(self._spool.put_notes, notes)
            elif self._spool.depth:
                await self._spool_durably(points, notes)
            else:
                await self._deliver_or_spool(points, notes)

    async def _deliver_or_spool(self, points: list[Point], notes: Notes) -> None:
        """Where there are notes, they and the records are on disk before the server has these."""
        try:
            await self._finish_replacement()
            await self._delivery.prepare(points)
        except StoreUnavailable as error:
            _log.warning(_WAITS, error)
            await self._spool_durably(points, notes)
            return
        ahead = await self._in_thread(self._spool.put_ahead, points, notes) if notes else None
        try:
            refused = await self._delivery.deliver(points)
            if ahead is not None:
                await self._in_thread(self._spool.drop, ahead)
        except StoreUnavailable as error:
            _log.warning(_WAITS, error)
            await (self._spool_durably(points, notes) if ahead is None else self._keep(ahead))
            return
        except BaseException:
            if ahead is not None:
                self._spool.keep(ahead)
            raise
        _raise_if_refused(refused, self._delivery.reason)

    async def _keep(self, ahead: Ahead) -> None:
        self._spool.keep(ahead)
        async with self._changed:
            self._changed.notify_all()

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted."""
        self._ensure_open()
        return await self._in_thread(self._spool.notes, prefix)

    def _points(self, records: Sequence[Record]) -> list[Point]:
        for place, (series, time_us, _) in enumerate(records):
            if not 0 <= time_us <= queries.LATEST_US:
                raise ValueError(f"records[{place}].time_us: {time_us} is not from 0 to {queries.LATEST_US}")
            line_head(series, "").encode()  # refuses a name that can't be stored
        first = self._arrival = max(self._arrival + 1, time.time_ns())
        self._arrival += len(records)
        return [Point(*record, first + place) for place, record in enumerate(records)]

    async def _spool_durably(self, points: list[Point], notes: Notes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room() or self._closing.is_set())
        self._ensure_open()
        await self._in_thread(self._spool.put, points, notes)
        async with self._changed:
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return not self._spool.depth or self._spool.size < self._limit

    async def _drain(self) -> None:
        """Sends what waits in the spool, oldest first, as soon as the server takes it."""
        pause_s = _RETRY_FIRST_S
        while not self._closing.is_set():
            async with self._changed:
                await self._changed.wait_for(lambda: self._has_work() or self._closing.is_set())
            try:
                await self._finish_replacement()
                while self._spool.depth and not self._closing.is_set():
                    await self._send_first()
                    pause_s = _RETRY_FIRST_S
            except StoreUnavailable as error:
                _log.debug("the spool waits: %s", error)
            except Exception:  # noqa: BLE001 - what was acknowledged is tried again, whatever went wrong
                _log.exception("sending the spool failed, retrying")
            else:
                continue
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, _RETRY_MOST_S)

    def _has_work(self) -> bool:
        return self._spool.depth > 0 or self._spool.replacement is not None

    async def _send_first(self) -> None:
        points = await self._in_thread(self._spool.first)
        if await self._delivery.prepare(points):
            await self._in_thread(self._spool.replace_first, points)
        refused = await self._delivery.deliver(points)
        if refused:
            self.refused += len(refused)
            _log.error("InfluxDB refused %d spooled records for good: %s", len(refused), self._delivery.reason)
        await self._in_thread(self._spool.remove_first)
        async with self._changed:
            self._changed.notify_all()

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._closing.wait()
        except TimeoutError:
            return

    async def series(self, prefix: str) -> list[str]:
        """The names that start with ``prefix``, sorted."""
        return await self._ask(queries.series_names(self._server, prefix))

    async def latest(self, series: Sequence[str], limit: int, *, keys: Sequence[str] = ()) -> list[Record]:
        """The newest ``limit`` records of the series together."""
        return await self._ask(queries.latest(self._server, series, limit, keys))

    async def latest_each(self, series: str, keys: Sequence[str]) -> dict[str, Record]:
        """For each name the newest record that carries it."""
        return await self._ask(queries.latest_each(self._server, series, keys))

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        """The first record strictly later than ``time_us``."""
        return await self._ask(queries.first_after(self._server, series, time_us, keys))

    async def page(
        self, series: Sequence[str], start_us: int, end_us: int, *, offset: int, limit: int, keys: Sequence[str] = ()
    ) -> Page:
        """A page of a range, newest first, with the exact total."""
        question = queries.page(self._server, series, start_us, end_us, offset=offset, limit=limit, keys=keys)
        return await self._ask(question)

    async def scan(
        self, series: Sequence[str], start_us: int, end_us: int, *, keys: Sequence[str] = ()
    ) -> AsyncGenerator[list[Record], None]:
        """All records of a range, oldest first."""
        asked = queries.sources(series, start_us, end_us, keys)
        next_us = max(0, start_us)
        while next_us <= min(end_us, queries.LATEST_US):
            records, next_us = await self._ask(queries.scan(self._server, asked, next_us, _PIECE_RECORDS))
            if records:
                yield records

    async def names(self, series: str, start_us: int, end_us: int) -> list[str]:
        """The names that the records of a range carry, sorted. Reads them all."""
        names: set[str] = set()
        async for records in self.scan([series], start_us, end_us):
            names.update(*(parse_points(record.body) for record in records))
        return sorted(names)

    async def resample(
        self,
        series: str,
        keys: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        bucket_us: int,
        fn: Fn | None = None,
        origin_us: int = 0,
        offset: int = 0,
        limit: int = MOST_BUCKETS,
    ) -> Buckets:
        """The points of a range in buckets, newest first.

        By the server where its functions know enough, otherwise of the records that carry the names, which are read.
        """
        for source in queries.sources([series], start_us, end_us):
            window = aggregates.Window(source, bucket_us, origin_us)
            if series.startswith("m/") and self._delivery.has_all_fields:
                asked = aggregates.resample(self._server, window, keys, fn=fn, offset=offset, limit=limit)
                found = await self._ask(asked)
                if found is not None:
                    return found
        from terrazzo_adapters.columns.resample import Resampler  # its library is heavy

        resampler = Resampler(keys, bucket_us=bucket_us, fn=fn, origin_us=origin_us)
        await self._feed(resampler, series, keys, start_us, end_us)
        return await asyncio.to_thread(resampler.finish, offset=offset, limit=limit)

    async def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, bucket_us: int, origin_us: int = 0
    ) -> dict[str, Curve]:
        """Of each bucket the first, lowest, highest and last point. Reads all records that carry the names."""
        from terrazzo_adapters.columns.extremes import Extremes  # its library is heavy

        chooser = Extremes(keys, bucket_us=bucket_us, origin_us=origin_us)
        await self._feed(chooser, series, keys, start_us, end_us)
        return await asyncio.to_thread(chooser.finish)

    async def _feed(
        self, taker: Resampler | Extremes, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> None:
        asked_for = keys if series.startswith("m/") else ()
        async for records in self.scan([series], start_us, end_us, keys=asked_for):
            await asyncio.to_thread(_take, taker, records, keys)

    @property
    def is_replaceable(self) -> bool:
        """InfluxDB 3 has no DELETE. True before the server has answered for the first time."""
        return self._server.generation < 3

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        """Puts records in the place of all that a series has in a range; others' questions see the range half made.

        This process' own questions wait meanwhile. Nothing may write to the series but this process. A call that is
        cancelled or fails with ``StoreUnavailable`` may be carried out later: it stands on disk, and comes before
        all that is appended after it.

        Raises:
            ValueError: a record is of another series, or out of the range; nothing was changed.
            NotReplaceable: the server is an InfluxDB 3, or keeps nothing that old; nothing was changed.
            StoreUnavailable: records wait in the spool, or the server is away.
        """
        self._ensure_open()
        check_records(series, start_us, end_us, records)
        kind_of(series)
        task = asyncio.create_task(self._replace(series, start_us, end_us, records, given), name="influxdb replace")
        task.add_done_callback(_hear)
        return await asyncio.shield(task)

    async def _replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], given: Seen) -> bool:
        async with self._turn:
            self._ensure_open()
            await self._delivery.connect()
            await self._finish_replacement()
            if self._spool.depth:
                raise StoreUnavailable("records wait in the spool until InfluxDB takes them")
            if await queries.total(self._server, given.series, start_us, end_us) != given.total:
                return False
            points = self._points(records)
            wanted = await replacement.make_replacement(self._server, series, start_us, end_us, points)
            self._delivery.prepare_all(series, start_us, end_us, points)
            await self._in_thread(self._spool.put_replacement, wanted)
            try:
                await self._finish_replacement()
            except StoreUnavailable:
                async with self._changed:
                    self._changed.notify_all()
                raise
            return True

    async def _finish_replacement(self) -> None:
        """Carries out what was begun, if anything was. It is known until it is gone from the disk."""
        if self._spool.replacement is None:
            return
        async with self._deleting:
            wanted = self._spool.replacement
            if wanted is None:
                return
            refused = await replacement.carry_out(self._server, self._delivery, wanted)
            if refused:
                self.refused += len(refused)
                _log.error("InfluxDB refused %d replaced records for good: %s", len(refused), self._delivery.reason)
            await self._in_thread(self._spool.remove_replacement)
            self._spool.replacement = None

    async def drop_before(self, time_us: int) -> None:
        """Deletes all records earlier than ``time_us``; InfluxDB 3 can't and says so."""
        await self._ask(self._drop_before(time_us))

    async def _drop_before(self, time_us: int) -> None:
        async with self._deleting:
            await queries.drop_before(self._server, time_us)

    async def check(self) -> None:
        """Raises ``StoreUnavailable`` while the server is away, though the spool may still take records."""
        await self._ask(self._ping())

    async def _ping(self) -> None:
        await self._server.ping()

    async def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        try:
            self._ensure_open()
            await self._delivery.connect()
            await self._finish_replacement()
        except BaseException:
            question.close()
            raise
        return await question

    async def close(self) -> None:
        """Ends the write under way; what waits in the spool stays there for the next ``open``."""
        if self._closing.is_set():
            return
        self._closing.set()
        async with self._changed:
            self._changed.notify_all()
        await asyncio.wait(
            [self._drainer, asyncio.create_task(self._settle(), name="influxdb close")], timeout=_CLOSE_S
        )
        self._drainer.cancel()
        await asyncio.wait([self._drainer])
        await self._server.close()
        await self._in_thread(self._spool.close)
        self._thread.shutdown()

    async def _settle(self) -> None:
        async with self._turn:
            return

    def _ensure_open(self) -> None:
        if self._closing.is_set():
            raise StoreUnavailable("the time-series store is closed")

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))


def _hear(task: asyncio.Task[bool]) -> None:
    """Whoever asked may be gone; the outcome is on disk."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.debug("a replacement ended: %s", error)


def _take(taker: Resampler | Extremes, records: Sequence[Record], keys: Sequence[str]) -> None:
    from terrazzo_adapters.columns.column import build_columns

    taker.add(build_columns(((record.time_us, parse_points(record.body)) for record in records), keys))


def _raise_if_refused(refused: Sequence[Point], reason: str) -> None:
    if refused:
        records = [Record(point.series, point.time_us, point.body) for point in refused]
        raise RecordsRefused(records, f"InfluxDB will never take {len(records)} of the records: {reason}")
