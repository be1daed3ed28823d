"""``Sealer``: puts what is old, or a block full, into segments, in the background and at a modest pace."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from rocksdict import Snapshot

from terrazzo.short_turns import ComputingThreads
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.rocksdb.encoder import Encoder, EncodingFailed
from terrazzo_adapters.rocksdb.engine import Engine
from terrazzo_adapters.rocksdb.keys import part_key, record_key
from terrazzo_adapters.rocksdb.sealing import (
    Changed,
    Job,
    Rule,
    SealedRange,
    TooDense,
    next_job,
    next_merge,
    seal,
)
from terrazzo_adapters.rocksdb.sweep import Found, Sweep
from terrazzo_adapters.segment_process.chunk import Chunk

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

_AGE_US = 86_400_000_000
_FIRST_SWEEP_S = 60.0  # whoever starts has other things to do
_SWEEP_S = 600.0  # between looks at all series
_STRETCH_S = 4.0  # of work between looks at the disk
_FREED, _FREED_BEFORE = 50_000, 1_000_000  # records sealed, from which on files are rewritten
_REST = 10  # times as long as rewriting files of what was replaced took, until the next are
_HIGHEST_ID = 2**32 - 1
_MOST_UNMADE = 3
_URGENT = 200_000  # records that wait: the more of them, the less sealing rests; from so many on it does not

Write = Callable[..., Awaitable[Any]]
"""Runs a function of the engine on the writer's thread."""


class SealingStats(msgspec.Struct, kw_only=True):
    """Counters since the start, and what is known of the rest."""

    sealed_records: int = 0
    failures: int = 0  # ranges left as they are: damaged, or too much for a segment
    unsealed_records: int = 0  # as of the last look at all series
    backlog: int = 0  # records of the series that have got a block full since they were looked at
    swept: float = 0.0  # how much of all series the present look, or the first one, has seen
    short_of_disk: bool = False


class Sealer:
    """Works off what is due when ``work`` is called."""

    def __init__(self, engine: Engine, write: Write, *, least_free_bytes: int) -> None:
        self._engine = engine
        self._write = write
        self._least_free_bytes = least_free_bytes
        self._thread = ComputingThreads(1, thread_name_prefix="rocksdb-seal")
        self._encoder = Encoder()
        self._turn = asyncio.Lock()
        self._sparse_log = SparseLog(_log)
        self._sweep: Sweep | None = None
        self._unmade = 0  # ranges in a row, for which there was no process
        self._gone = 0  # records sealed since the last compaction
        self._compacted_to = 0  # of the present look
        self._rests_until_s = 0.0
        self._next_sweep_s = time.monotonic() + _FIRST_SWEEP_S
        self.stats = SealingStats()

    async def work(self) -> None:
        """Seals what is due; at rest it costs next to nothing."""
        while await asyncio.get_running_loop().run_in_executor(self._thread, self._has_disk):
            until_s = time.monotonic() + _STRETCH_S
            await self._work_until(until_s)
            is_idle = time.monotonic() < until_s
            await self._free_replaced(is_idle=is_idle)
            if is_idle:
                await asyncio.to_thread(self._encoder.end)
                return

    async def _work_until(self, until_s: float) -> None:
        rule = Rule(cutoff_us=int(time.time() * 1_000_000) - _AGE_US)
        while time.monotonic() < until_s and (due := self._engine.fresh.full(rule.due)):
            for series_id in due:
                await self.seal_series(series_id, rule, until_s=until_s)
                self._look_at_backlog(rule)
        self._look_at_backlog(rule)
        while time.monotonic() < until_s and self._is_sweep_due():
            await self._sweep_on(rule, until_s)

    def _look_at_backlog(self, rule: Rule) -> None:
        self.stats.backlog = self._engine.fresh.waiting(rule.due)

    def _has_disk(self) -> bool:
        free_bytes = shutil.disk_usage(self._engine.database.path).free
        self.stats.short_of_disk = free_bytes < self._least_free_bytes
        if self.stats.short_of_disk:
            self._sparse_log.warning("the store isn't packed: only %d MiB of disk are free", free_bytes >> 20)
        return not self.stats.short_of_disk

    def _is_sweep_due(self) -> bool:
        return self._sweep is not None or time.monotonic() >= self._next_sweep_s

    async def _sweep_on(self, rule: Rule, until_s: float) -> None:
        """Looks at some more series, and seals what is due of them."""
        if self._sweep is None:
            self._sweep = Sweep(rule)
        before = self._sweep
        found = await self._read(before.on)
        for series_id in found.due:
            await self.seal_series(series_id, rule, until_s=until_s)
            if time.monotonic() >= until_s:  # the rest of the piece is looked at again
                return
        self._sweep = found.rest
        await self._compact(found)
        self.stats.swept = found.rest.part if found.rest else 1.0
        if found.rest is None:
            self._next_sweep_s = time.monotonic() + _SWEEP_S
            self.stats.unsealed_records = found.rows

    async def _compact(self, found: Found) -> None:
        """Frees the disk of what is sealed, where little else has to be rewritten for it.

        In the midst of a look these are the series that it has passed, at its end all, if most of them is sealed.
        """
        is_over = found.rest is None
        if self._gone < (_FREED if is_over else _FREED_BEFORE) or (is_over and found.rows > 4 * self._gone):
            return
        first, last = (0, _HIGHEST_ID) if found.rest is None else (self._compacted_to, found.rest.series_id)
        compact = self._engine.database.compact
        thread = asyncio.get_running_loop().run_in_executor
        await thread(self._thread, compact, record_key(first, 0), record_key(last, 0))
        self._gone, self._compacted_to = 0, 0 if is_over else last

    async def _free_replaced(self, *, is_idle: bool) -> None:
        """Frees the disk of what replays have replaced, once it is sealed, for a tenth of the time at most."""
        while time.monotonic() >= self._rests_until_s:
            replaced = self._engine.replaced.take(time.monotonic(), is_idle=is_idle)
            if replaced is None:
                return
            began_s = time.monotonic()
            for key in (record_key, part_key):
                start, end = key(replaced.series_id, replaced.first_us), key(replaced.series_id, replaced.last_us + 1)
                compacting = partial(self._engine.database.compact, start, end)
                await asyncio.get_running_loop().run_in_executor(self._thread, compacting)
            self._rests_until_s = time.monotonic() + _REST * (time.monotonic() - began_s)

    async def seal_series(self, series_id: int, rule: Rule, *, until_s: float = inf) -> None:
        """Seals what is due of a series, and merges what is small."""
        async with self._turn:
            for find in (next_job, next_merge):
                from_us = 0
                while job := await self._read(find, series_id, from_us, rule):
                    from_us = await self._carry_out(job)
                    if time.monotonic() >= until_s:
                        return
            self._engine.fresh.on_sealed(series_id)

    async def _carry_out(self, job: Job) -> int:
        """Does a job; the time from which on to look for the next one."""
        began_s = time.perf_counter()
        generation = await self._write(self._engine.begin_seal, job)
        sealed = await self._read(self._seal, job, mosaic=self._engine.is_mosaic(job.series_id))
        if sealed is not None and await self._write(self._engine.keep_sealed, sealed, generation):
            count = sum(sealed.rows.values())
            self._gone += count
            self.stats.sealed_records += count
            self.stats.unsealed_records = max(0, self.stats.unsealed_records - count)
            self._engine.fresh.on_segment(job.series_id, count)
        waiting = max(self.stats.backlog, self.stats.unsealed_records)
        await asyncio.sleep((time.perf_counter() - began_s) * max(0.0, 1 - waiting / _URGENT))
        return job.end_us + 1

    def _seal(self, view: Snapshot, job: Job, *, mosaic: bool) -> SealedRange | None:
        from terrazzo_adapters.segments import SegmentDamaged  # its libraries are heavy

        def encode(chunk: Chunk, tight: bool) -> Mapping[bytes, bytes]:
            return self._encoder.encode(chunk, mosaic=mosaic, tight=tight)

        try:
            found = seal(view, job, encode)
            self._unmade = 0
            return found
        except Changed:
            return None
        except (EncodingFailed, SegmentDamaged, TooDense) as error:
            self.stats.failures += 1
            self._unmade += isinstance(error, EncodingFailed)
            if self._unmade >= _MOST_UNMADE:  # it isn't the records: the task is shown, and begins anew after a pause
                self._unmade = 0
                raise
            self._sparse_log.warning("records of series %d stay as they are: %r", job.series_id, error)
            return None

    async def close(self) -> None:
        """Ends what is under way; what isn't committed is made again after the next start."""
        await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        self._encoder.close()
        self._thread.shutdown()

    async def _read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self._engine.database.read(query, *args, **kwargs)
        )
        return await work
