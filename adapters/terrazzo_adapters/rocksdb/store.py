"""``RocksStore``: the embedded time-series store, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from terrazzo.store import NO_NOTES, Notes, Page, Record, StoreUnavailable
from terrazzo_adapters.rocksdb import reads
from terrazzo_adapters.rocksdb.engine import Engine
from terrazzo_adapters.rocksdb.newest import Newest

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 2


class RocksStore:
    """``TimeSeriesStore`` in a folder that this process has to itself.

    One thread commits, in the order of the calls, one synced batch at a time; two answer queries, each from a
    snapshot. A query may see a batch a moment before its append returns.
    """

    def __init__(self, engine: Engine, writer: ThreadPoolExecutor) -> None:
        """Use ``open``."""
        self._engine = engine
        self._writer = writer
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="rocksdb-read")
        self._newest = Newest()
        self._closed = False

    @classmethod
    async def open(cls, path: str | Path) -> RocksStore:
        """Opens the store in the folder ``path``, creates it where there is none.

        Raises:
            StoreUnavailable: another process has it, or it can't be read or written.
        """
        engine = Engine(Path(path))
        writer = ThreadPoolExecutor(1, thread_name_prefix="rocksdb-write")
        try:
            await asyncio.get_running_loop().run_in_executor(writer, engine.open)
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(engine, writer)

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Stores all records and notes durably or none.

        Raises:
            ValueError: a record's name or time can't be stored, says which.
            StoreFull, StoreUnavailable: nothing was stored; later calls try again.
        """
        if records or notes:
            await self._run(self._writer, self._append, records, notes)

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted."""
        return await self._run(self._readers, self._engine.database.read, reads.notes, prefix)

    async def series(self, prefix: str) -> list[str]:
        """The names that start with ``prefix``, sorted."""
        return await self._run(self._readers, self._engine.database.read, reads.series_names, prefix)

    async def latest(self, series: Sequence[str], limit: int) -> list[Record]:
        """The newest ``limit`` records of the series together."""
        held = self._newest.get(series[0]) if limit == 1 and len(series) == 1 and not self._closed else None
        return [held] if held else await self._run(self._readers, self._latest, series, limit)

    async def first_after(self, series: Sequence[str], time_us: int) -> Record | None:
        """The first record strictly later than ``time_us``."""
        return await self._run(self._readers, self._engine.database.read, reads.first_after, series, time_us)

    async def page(self, series: Sequence[str], start_us: int, end_us: int, *, offset: int, limit: int) -> Page:
        """A page of a range, newest first, with the exact total."""
        return await self._run(
            self._readers,
            self._engine.database.read,
            reads.page,
            series,
            start_us,
            end_us,
            offset=offset,
            limit=limit,
        )

    async def drop_before(self, time_us: int) -> None:
        """Forgets all records earlier than ``time_us``; the disk space comes back as RocksDB compacts."""
        await self._run(self._writer, self._drop_before, time_us)

    async def check(self) -> None:
        """Proves by a synced write that work is accepted."""
        await self._run(self._writer, self._engine.check)

    async def checkpoint(self, path: str | Path) -> None:
        """Makes a consistent copy in ``path``, which must not exist: the backup. ``open`` opens it.

        Raises:
            FileExistsError: ``path`` exists.
        """
        await self._run(self._writer, self._engine.checkpoint, Path(path))

    async def close(self) -> None:
        """Commits what is under way, then lets the folder go. Every later call raises ``StoreUnavailable``."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._shut_down)

    def _append(self, records: Sequence[Record], notes: Notes) -> None:
        try:
            self._engine.append(records, notes)
        except BaseException:
            self._newest.forget()
            raise
        self._newest.on_append(records)

    def _latest(self, series: Sequence[str], limit: int) -> list[Record]:
        generation = self._newest.generation
        found = self._engine.database.read(reads.latest, series, limit)
        if found and len(series) == 1:
            self._newest.fill(found[0], generation)
        return found

    def _drop_before(self, time_us: int) -> None:
        try:
            self._engine.drop_before(time_us)
        finally:
            self._newest.forget()

    def _shut_down(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.close()

    async def _run(self, executor: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise StoreUnavailable(f"the time-series store in {self._engine.database.path} is closed")
        return await asyncio.get_running_loop().run_in_executor(executor, lambda: work(*args, **kwargs))
