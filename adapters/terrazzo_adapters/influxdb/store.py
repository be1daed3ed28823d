"""``InfluxStore``: ``terrazzo.ports.store`` on an InfluxDB server; ``InfluxWriter`` is its writing half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec import structs

from terrazzo.company_turns import CompanyTurns
from terrazzo.ports import at_work
from terrazzo.ports.store import (
    ANY_SIZE,
    MOST_BUCKETS,
    NO_NOTES,
    Buckets,
    Curve,
    Figures,
    Fn,
    Notes,
    Page,
    Points,
    Record,
    RecordsTooLarge,
    Seen,
    StoreStats,
    StoreUnavailable,
    Undivided,
    Whose,
)
from terrazzo.ports.tasks import Tasks
from terrazzo.userinfo import is_http_address, shown_address
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.influxdb import aggregates, field_points, queries
from terrazzo_adapters.influxdb.naming import kind_of
from terrazzo_adapters.influxdb.queries import SeriesSource
from terrazzo_adapters.influxdb.server import Server
from terrazzo_adapters.influxdb.settings import InfluxSettings
from terrazzo_adapters.influxdb.spool import RecordSpool
from terrazzo_adapters.influxdb.writer import InfluxWriter
from terrazzo_adapters.records import check_records

if TYPE_CHECKING:
    from terrazzo_adapters.columns.extremes import Extremes
    from terrazzo_adapters.columns.resample import Resampler

P = ParamSpec("P")
T = TypeVar("T")

_PIECE_RECORDS = 2_000
_AT_ONCE, _OF_COMPANY = 12, 6  # questions; each is a few requests at a time, and 100 connections are there for all
_MOST_WAITING = 100_000  # questions of a company; there are far fewer requests and jobs
_SPOOL_BYTES = 256 * 1024 * 1024


def bounded(records: list[Record], most_bytes: int) -> list[Record]:
    """The records, where their bodies are within a size; raises ``RecordsTooLarge`` where not."""
    if sum(len(record.body) for record in records) > most_bytes:
        raise RecordsTooLarge
    return records


class InfluxStore:
    """``TimeSeriesStore`` on an InfluxDB server. Queries see what has reached the server, not the spool.

    Companies take turns with their questions and with what is computed of the answers.
    """

    def __init__(self, server: Server, writer: InfluxWriter) -> None:
        """Use ``open`` instead."""
        self._server = server
        self._writer = writer
        self._turns = CompanyTurns(
            "questions to InfluxDB", at_once=_AT_ONCE, of_company=_OF_COMPANY, waiting=_MOST_WAITING
        )

    @classmethod
    async def open(
        cls,
        settings: InfluxSettings,
        *,
        spool: str | Path,
        tasks: Tasks,
        spool_bytes: int = _SPOOL_BYTES,
        writer: str = "",
    ) -> InfluxStore:
        """Opens the store; the server need not answer yet.

        Args:
            spool: a folder of this process' own.
            tasks: runs what sends the spool, until ``close``.
            spool_bytes: how much may wait there; beyond it ``append`` waits.
            writer: letters and digits that tell this process from others that write to the same database.

        Raises:
            ValueError: ``url`` or ``writer`` can't be used.
            StoreUnavailable: the spool can't be opened.
        """
        if not is_http_address(settings.url):
            raise ValueError(f"url: {shown_address(settings.url)!r} is not an http or https address")
        if writer and not writer.isalnum():
            raise ValueError(f"writer: {writer!r} is not made of letters and digits")
        thread = ThreadPoolExecutor(1, thread_name_prefix="influxdb-spool")
        queue = RecordSpool(Path(spool))
        try:
            await asyncio.get_running_loop().run_in_executor(thread, queue.open)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        server = Server(settings)
        return cls(server, InfluxWriter(server, queue, thread=thread, tasks=tasks, writer=writer, limit=spool_bytes))

    def stats(self) -> StoreStats:
        """Counters of what was spooled, sent and refused for good, and what waits now."""
        return structs.replace(self._writer.stats(), refused_queries=self._turns.refused)

    @property
    def has_sizes(self) -> bool:
        """Whether ``sizes`` says anything: a server doesn't."""
        return False

    async def sizes(self, whose: Whose) -> Mapping[int, int]:
        """Nothing: a server doesn't say how much of its disk a series takes."""
        del whose
        return {}

    def kept(self) -> Mapping[int, tuple[int, int]]:
        """Nothing: a server keeps what it read."""
        return {}

    def give_up(self, company_id: int, size: int) -> int:
        """Nothing is kept here."""
        del company_id, size
        return 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing waits in the spool."""
        return self._writer.is_whole

    def watch(self, series: str, start_us: int, end_us: int) -> None:
        """Nobody knows what others write to the server."""

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
        await self._writer.append(records, notes)

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted by name."""
        return await self._writer.notes(prefix)

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy of the spool and the notes; the server's own backup has the records.

        Raises:
            FileExistsError: ``path`` exists.
            StoreUnavailable: the store is closed, or the disk fails.
        """
        await self._writer.checkpoint(path)

    async def series(self, prefix: str) -> list[str]:
        """The names that start with ``prefix``, sorted."""
        return await self._ask(queries.series_names(self._server, prefix))

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        """The newest ``limit`` records of all the series together."""
        return bounded(await self._ask(queries.latest(self._server, series, limit, keys)), most_bytes)

    async def latest_each(
        self, series: str, keys: Sequence[str], *, until_us: int = queries.LATEST_US, most_bytes: int = ANY_SIZE
    ) -> dict[str, Record]:
        """For each name the newest record that carries it, of those that are not later than ``until_us``."""
        found = await self._ask(queries.latest_each(self._server, series, keys, until_us))
        bounded([*found.values()], most_bytes)
        return found

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        """The first record strictly later than ``time_us``."""
        return await self._ask(queries.first_after(self._server, series, time_us, keys))

    async def page(
        self,
        series: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        offset: int,
        limit: int,
        keys: Sequence[str] = (),
        most_bytes: int = ANY_SIZE,
        whole: bool = True,
    ) -> Page:
        """A page of a range, newest first, with the exact total; bodies have all names in any case."""
        question = queries.page(self._server, series, start_us, end_us, offset=offset, limit=limit, keys=keys)
        page = await self._ask(question)
        bounded(page.records, most_bytes)
        return page

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
            names |= await self._compute(_names, records)
        return sorted(names)

    async def columns(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> AsyncGenerator[Mapping[str, Points], None]:
        """The points of a range as arrays, oldest first. Reads all records that carry the names."""
        asked_for = keys if series.startswith("m/") else ()
        async for records in self.scan([series], start_us, end_us, keys=asked_for):
            columns = await self._compute(_columns, records, keys)
            if columns:
                yield columns

    async def digests(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, undivided: Undivided
    ) -> AsyncGenerator[Mapping[str, Points | Figures], None]:
        """As ``columns``: a server keeps no figures."""
        del undivided
        async for columns in self.columns(series, keys, start_us, end_us):
            yield columns

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

        Computed by the server where its functions suffice, otherwise from all records that carry the names.
        """
        for source in queries.sources([series], start_us, end_us):
            window = aggregates.BucketQuestion(source, bucket_us, origin_us)
            if series.startswith("m/") and self._writer.delivery.has_all_fields:
                asked = aggregates.resample(self._server, window, keys, fn=fn, offset=offset, limit=limit)
                buckets = await self._ask(asked)
                if buckets is not None:
                    return buckets
        await asyncio.to_thread(import_module, "terrazzo_adapters.columns.resample")  # its library is heavy
        from terrazzo_adapters.columns.resample import Resampler

        resampler = Resampler(keys, bucket_us=bucket_us, fn=fn, origin_us=origin_us)
        await self._feed(resampler, series, keys, start_us, end_us)
        return await self._compute(partial(resampler.finish, offset=offset, limit=limit))

    async def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, bucket_us: int, origin_us: int = 0
    ) -> dict[str, Curve]:
        """The first, lowest, highest and last point of each bucket, from fields, or records that carry the names."""
        await asyncio.to_thread(import_module, "terrazzo_adapters.columns.extremes")  # its library is heavy
        from terrazzo_adapters.columns.extremes import Extremes

        def empty() -> Extremes:
            return Extremes(keys, bucket_us=bucket_us, origin_us=origin_us)

        extremes = await self._from_fields(empty, series, keys, start_us, end_us)
        if extremes is None:
            extremes = empty()
            await self._feed(extremes, series, keys, start_us, end_us)
        return await self._compute(extremes.finish)

    async def _from_fields(
        self, empty: Callable[[], Extremes], series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> Extremes | None:
        """What the numbers and booleans of a range come to, of its halves at a time; None: fields don't tell all."""
        if not series.startswith("m/") or not all(keys) or not self._writer.delivery.has_all_fields:
            return None
        found = queries.sources([series], start_us, end_us) if keys else []
        parts = [part for source in found for part in field_points.halves(source)]
        targets = [empty() for _ in parts]
        are_told = await asyncio.gather(*map(partial(self._feed_fields, keys), parts, targets))
        together = empty()
        for target in targets:
            together.follow(target)
        return together if all(are_told) else None

    async def _feed_fields(self, keys: Sequence[str], part: SeriesSource, target: Extremes) -> bool:
        """Adds the numbers and booleans of a part of a range; False: their fields don't tell all."""
        after_ns = -1
        while True:
            answer = await self._ask(field_points.next_rows(self._server, part, keys, after_ns))
            found = await self._compute(field_points.columns_of, answer, keys, after_ns)
            if found is None:
                return False
            await self._compute(target.add, found.columns)
            if found.is_last:
                return True
            after_ns = found.last_ns

    async def _feed(
        self, target: Resampler | Extremes, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> None:
        asked_for = keys if series.startswith("m/") else ()
        async for records in self.scan([series], start_us, end_us, keys=asked_for):
            await self._compute(_add, target, records, keys)

    @property
    def is_replaceable(self) -> bool:
        """False for InfluxDB 3, which has no DELETE. True before the server has answered for the first time."""
        return self._server.generation < 3

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        """Replaces all records of a series in a range; queries of other processes see the range half done.

        This process's own queries wait meanwhile. Nothing but this process may write to the series. A call that is
        cancelled or fails with ``StoreUnavailable`` may be carried out later: it is on disk, and precedes all that is
        appended after it.

        Raises:
            ValueError: a record is of another series, or out of the range; nothing was changed.
            NotReplaceable: the server is an InfluxDB 3, or keeps nothing that old; nothing was changed.
            StoreUnavailable: records wait in the spool, or the server is away.
        """
        self._writer.ensure_open()
        check_records(series, start_us, end_us, records)
        kind_of(series)
        return await self._writer.replace(series, start_us, end_us, records, given)

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        """Deletes all records earlier than ``time_us``; ``series``: of these alone.

        Raises:
            StoreUnavailable: the server is away, or it is InfluxDB 3, which has no DELETE.
        """
        await self._writer.settle()
        await self._writer.drop_before(time_us, series)

    async def check(self) -> None:
        """Raises ``StoreUnavailable`` while the server is away, though the spool may still take records."""
        self._writer.ensure_open()
        try:
            await self._writer.settle()
            await self._server.ping()
        except StoreUnavailable as error:
            self._writer.outage.begin(error)
            raise
        if self.is_whole:
            self._writer.outage.end()

    async def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Asks when the server is there, and it is the company's turn."""
        with closing(question):  # where it wasn't asked
            await self._writer.settle()
            async with self._turns.turn(at_work.company_id()):
                return await question

    async def _compute(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does what takes long on a thread, when it is the company's turn."""
        async with self._turns.turn(at_work.company_id()):
            return await asyncio.to_thread(work, *args, **kwargs)

    async def close(self) -> None:
        """Ends the write under way; what waits in the spool stays there for the next ``open``."""
        await self._writer.close()


def _names(records: Sequence[Record]) -> set[str]:
    return {name for record in records for name in parse_points(record.body)}


def _columns(records: Sequence[Record], keys: Sequence[str]) -> dict[str, Points]:
    from terrazzo_adapters.columns.column import build_columns

    columns = build_columns(((record.time_us, parse_points(record.body)) for record in records), keys)
    return {key: Points(*column) for key, column in columns.items()}


def _add(target: Resampler | Extremes, records: Sequence[Record], keys: Sequence[str]) -> None:
    from terrazzo_adapters.columns.column import build_columns

    target.add(build_columns(((record.time_us, parse_points(record.body)) for record in records), keys))
