"""``RocksStore``: the embedded time-series store, on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from rocksdict import Snapshot

from terrazzo.ports import at_work
from terrazzo.ports.store import ANY_SIZE, NO_NOTES, Notes, Record, Seen, StoreStats, StoreUnavailable, Whose
from terrazzo.ports.tasks import OnFailure, Tasks
from terrazzo.short_turns import ComputingThreads
from terrazzo_adapters.keyvalue.database import CACHE_BYTES
from terrazzo_adapters.keyvalue.readers import Readers
from terrazzo_adapters.rocksdb import reads
from terrazzo_adapters.rocksdb.disk.sizes import FILES, FIRST, Packing, some_sizes
from terrazzo_adapters.rocksdb.engine import Engine
from terrazzo_adapters.rocksdb.hours import BuiltHour
from terrazzo_adapters.rocksdb.newest import Newest
from terrazzo_adapters.rocksdb.queries import Queries
from terrazzo_adapters.rocksdb.sealed import damaged
from terrazzo_adapters.rocksdb.sealer import Sealer
from terrazzo_adapters.rocksdb.segment_cache import cache as segment_cache
from terrazzo_adapters.rocksdb.segment_cache import counted_for
from terrazzo_adapters.rocksdb.watches import Watches

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 3
_OF_COMPANY = 2  # a company leaves one to the others
_MOST_WAITING = 100_000  # queries of a company; there are far fewer requests and jobs
_LOOK_S = 5.0  # between looks for hours whose columns are to be made
_QUIET_S = 30.0
_IDLE_S = 600.0
_DROPPED_AT_ONCE = 100  # series, for which others' commits wait some milliseconds
_SIZES_REST = 4  # times as long as a look at sizes took, until the next series are looked at
_SETTLED_S = 10.0  # after the opening: whoever starts has other things to do


class RocksStore(Queries):
    """``TimeSeriesStore`` in a folder that this process has to itself.

    One thread commits, in the order of the calls, one synced batch at a time; three answer queries, each from a
    snapshot, companies in turn; one makes the columns of mosaic hours that are over. A query may see a batch a moment
    before its append returns.
    """

    def __init__(
        self, engine: Engine, writer: ThreadPoolExecutor, tasks: Tasks, *, seals: bool, least_free_bytes: int
    ) -> None:
        """Use ``open`` instead."""
        self._engine = engine
        self._writer = writer
        self._row_turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # by company
        self._readers = Readers("rocksdb-read", threads=_READERS, of_company=_OF_COMPANY, waiting=_MOST_WAITING)
        self._maker = ComputingThreads(1, thread_name_prefix="rocksdb-columns")
        self._newest = Newest()
        self._watches = Watches()
        self.watch = self._watches.begin
        self._memory: dict[str, int] = {}
        self._closed = False
        self._prepares_from_s = time.monotonic() + _SETTLED_S
        # Without columns charts are slower, and nothing else is: the process goes on, and the task is shown.
        self._sealer = Sealer(engine, partial(self._run, writer), least_free_bytes=least_free_bytes)
        self._sealing = None
        if seals:  # without it the store needs more disk and charts are slower: shown as above
            self._sealing = tasks.repeat("rocksdb sealing", _LOOK_S, self._sealer.work, OnFailure.RESTART)
        self._making = tasks.repeat("rocksdb columns", _LOOK_S, self._make_ripe_columns, OnFailure.RESTART)

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        tasks: Tasks,
        cache_bytes: int = CACHE_BYTES,
        seals: bool = False,
        least_free_bytes: int = 0,
    ) -> RocksStore:
        """Opens the store in the folder ``path``, creates it where there is none.

        Args:
            tasks: runs what makes columns in the background, until ``close``.
            cache_bytes: memory for what was read last, and for the indexes of files; as much for parts of segments.
            seals: whether records are put into segments in the background; those that are there are read in any case.
            least_free_bytes: of the disk, for segments to be made.

        Raises:
            StoreUnavailable: another process has it, or it can't be read or written.
        """
        engine = Engine(Path(path), cache_bytes=cache_bytes)
        segment_cache.resize(cache_bytes)
        writer = ThreadPoolExecutor(1, thread_name_prefix="rocksdb-write")
        try:
            await asyncio.get_running_loop().run_in_executor(writer, engine.open)
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(engine, writer, tasks, seals=seals, least_free_bytes=least_free_bytes)

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Stores all records and notes durably or none.

        Raises:
            ValueError: a record's name or time can't be stored, says which.
            StoreFull, StoreUnavailable: nothing was stored; later calls try again.
        """
        if records or notes:
            await self._run(self._writer, self._append, records, notes)

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        """The newest ``limit`` records of all the series together."""
        alone = limit == 1 and len(series) == 1 and not keys and not self._closed
        held = self._newest.get(series[0]) if alone else None
        if held is not None:
            return [held]
        self._check_open()
        return await self._ask(partial(self._latest, series, limit, frozenset(keys), most_bytes))

    def stats(self) -> StoreStats:
        """What it has in memory, as of some seconds ago; nothing ever waits, or is refused once it was acknowledged."""
        sealing, kept = self._sealer.stats, segment_cache.stats()
        return StoreStats(
            memory={**self._memory, "segments": kept.bytes, "recent": self._engine.recent.bytes},
            sealed_records=sealing.sealed_records,
            sealing_failures=sealing.failures,
            unsealed_records=sealing.unsealed_records,
            sealing_backlog=sealing.backlog,
            sealing_looked=sealing.swept,
            sealing_waits_for_disk=int(sealing.short_of_disk),
            damaged_segments=len(damaged),
            segment_cache_hits=kept.hits,
            segment_cache_misses=kept.misses,
            refused_queries=self._readers.refused,
            written_bytes=self._engine.written_bytes,
        )

    def kept(self) -> Mapping[int, tuple[int, int]]:
        """What was decoded of segments, by company."""
        return segment_cache.by_owner()

    def give_up(self, company_id: int, size: int) -> int:
        """Forgets some of it; the next question decodes it again."""
        return segment_cache.give_up(company_id, size)

    @property
    def has_sizes(self) -> bool:
        """Whether ``sizes`` says anything: always."""
        return True

    async def sizes(self, whose: Whose) -> Mapping[int, int]:
        """About how many bytes of the disk each owner's series take; for a fifth of the time at most, of one thread."""
        sealed, rows, start = Counter[int](), Counter[int](), FIRST
        while True:
            began_s = time.perf_counter()
            found = await self._run(self._maker, self._engine.database.read, some_sizes, start)
            for each in found.sizes:
                owner = whose(each.name)
                sealed[owner] += each.sealed
                rows[owner] += each.rows
            if found.rest is None:
                break
            start = found.rest
            await asyncio.sleep(_SIZES_REST * (time.perf_counter() - began_s))
        packing = Packing.of(await self._run(self._maker, self._engine.database.told, FILES))
        part = packing.of_rows(sealed.total(), rows.total())
        return {owner: sealed[owner] + int(part * rows[owner]) for owner in rows}

    @property
    def is_replaceable(self) -> bool:
        """Whether ``replace`` works here: always."""
        return True

    @property
    def is_whole(self) -> bool:
        """Whether queries see all that was appended: always."""
        return True

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        """Replaces the records of a range of one series, or does nothing and returns False.

        Raises:
            ValueError: a record that isn't of the series and the range.
            StoreFull, StoreUnavailable: it is unknown whether it was done; the call may be repeated.
        """
        return await self._run(self._writer, self._replace, series, start_us, end_us, records, given=given)

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        """Deletes all records earlier than ``time_us``; disk space is freed as RocksDB compacts.

        ``series``: of these alone, some at a time, so that commits have their turn between.
        """
        if series is None:
            await self._run(self._writer, self._drop_before, time_us, None)
            return
        names = list(series)
        for start in range(0, len(names), _DROPPED_AT_ONCE):
            some = names[start : start + _DROPPED_AT_ONCE]
            await self._run(self._writer, self._drop_before, time_us, some)

    async def check(self) -> None:
        """Checks by a synced write that it accepts work."""
        await self._run(self._writer, self._engine.check)

    async def checkpoint(self, path: Path) -> None:
        """Makes a consistent copy in ``path``, which must not exist: the backup. ``open`` opens it.

        Most of what is in memory goes into files before, so that commits wait for some milliseconds only.

        Raises:
            FileExistsError: ``path`` exists.
        """
        await self._run(self._maker, self._engine.database.flush)
        await self._run(self._writer, self._engine.checkpoint, path)

    async def close(self) -> None:
        """Commits what is under way, then releases the folder. Every later call raises ``StoreUnavailable``."""
        if not self._closed:
            self._closed = True
            await self._making.stop()
            if self._sealing is not None:
                await self._sealing.stop()
            await self._sealer.close()
            await asyncio.to_thread(self._shut_down)

    async def _make_ripe_columns(self) -> None:
        """Makes the columns of hours that get no more records, for at most half of the time.

        Before that it loads the libraries that answer questions about the past, as soon as there is one: loading them
        takes longer than any answer.

        An hour whose columns can't be made is tried last the next time, so that no other waits for it. One that was put
        into a segment meanwhile needs none, and while the sealer has more to do than it can, what is made would be
        thrown away.
        """
        await self._look_at_memory()
        if time.monotonic() >= self._prepares_from_s and self._engine.has_series:
            self._prepares_from_s = inf
            await asyncio.to_thread(import_module, "terrazzo_adapters.rocksdb.charts")
            await asyncio.to_thread(import_module, "numpy.ma")  # as numpy.unique does
        for slot in self._engine.ripe(quiet_s=_QUIET_S, idle_s=_IDLE_S):
            if self._sealing is not None and self._sealer.stats.backlog:
                return
            if not self._engine.is_marked(slot):
                continue
            began_s = time.perf_counter()
            try:
                await self._make_hour(slot)
            except StoreUnavailable:
                raise
            except Exception:
                await self._run(self._writer, self._engine.postpone, slot)
                raise
            await asyncio.sleep(time.perf_counter() - began_s)
            await self._look_at_memory()

    async def _look_at_memory(self) -> None:
        self._memory = await self._run(self._maker, self._engine.database.memory)

    async def _make_hour(self, slot: int) -> None:
        generation = self._engine.generation
        hour = await self._run(self._maker, self._build_hour, slot)
        await self._run(self._writer, self._engine.keep_hour, hour, generation)

    def _build_hour(self, slot: int) -> BuiltHour:
        from terrazzo_adapters.rocksdb.charts import build_hour  # its library is heavy

        return self._engine.database.read(build_hour, slot)

    def _append(self, records: Sequence[Record], notes: Notes) -> None:
        try:
            self._engine.append(records, notes)
        except BaseException:
            self._newest.forget()
            self._watches.forget()
            raise
        self._newest.on_append(records)
        self._watches.on_append(records)

    def _latest(self, series: Sequence[str], limit: int, keys: Set[str], most_bytes: int) -> list[Record]:
        generation = self._newest.generation
        found = self._engine.database.read(reads.latest, series, limit, keys, most_bytes)
        if found and len(series) == 1 and not keys:
            self._newest.fill(found[0], generation)
        return found

    def _replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        try:
            return self._engine.replace(series, start_us, end_us, records, given=given)
        finally:
            self._newest.forget()
            self._watches.on_replace(series, start_us, end_us)

    def _drop_before(self, time_us: int, series: Collection[str] | None) -> None:
        try:
            self._engine.drop_before(time_us, series)
        finally:
            self._newest.forget()
            self._watches.on_drop(time_us, series)

    def _shut_down(self) -> None:
        self._writer.shutdown()
        self._readers.close()
        self._maker.shutdown()
        self._engine.close()

    async def _read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_open()
        work = partial(self._engine.read, query, *args, **kwargs)
        return await self._ask(counted_for(at_work.company_id(), work))

    async def _ask(self, work: Callable[[], T]) -> T:
        """What ``work`` returns, of which a thread does it in the company's turn."""
        company_id = at_work.company_id()
        if self._readers.is_free_for(company_id):
            return await self._readers.ask(company_id, work)
        wait = at_work.Wait()

        def begin() -> T:
            wait.end()
            return work()

        with wait:
            return await self._readers.ask(company_id, begin)

    async def _read_rows(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One of a company at a time: two share the interpreter with the event loop, and are done no sooner."""
        company_id = at_work.company_id()
        turn = self._row_turns.get(company_id)
        if turn is None:
            turn = self._row_turns[company_id] = asyncio.Lock()
        with at_work.Wait():
            await turn.acquire()
        try:
            return await self._read(query, *args, **kwargs)
        finally:
            turn.release()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"the time-series store in {self._engine.database.path} is closed")

    async def _run(self, executor: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(executor, lambda: work(*args, **kwargs))
