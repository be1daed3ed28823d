"""Balances: a fit for each window that is over."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.analysis.context import DELAY_US, AnalysisContext, series_of
from terrazzo.analysis.progress import ScriptProgress, Todo, finish_todo, save_progress
from terrazzo.analysis.regression import fit
from terrazzo.analysis.results import write_balances
from terrazzo.analysis.scripts import Balance, Job, Script
from terrazzo.times import format_iso, to_datetime

_BUCKETS = 1_440  # of a window: minutes of a day
_LEAST_BUCKET_US = 1_000_000
_MOST_WINDOWS = 5  # of one piece


class BalanceWork:
    """Brings balance jobs forward. Windows count from midnight of the first day of 1970 in the zone."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context
        offset = to_datetime(0, context.calendar.zone).utcoffset()
        self._anchor_us = -round(offset.total_seconds() * 1_000_000) if offset else 0

    def window_us(self, balance: Balance, time_us: int) -> int:
        """The beginning of the window that contains a time, in UTC microseconds."""
        return time_us - (time_us - self._anchor_us) % balance.window_us

    def closed_us(self, balance: Balance) -> int:
        """UTC microseconds: windows that end at or before this are complete and can be fitted."""
        return self.window_us(balance, self._context.clock() - DELAY_US)

    async def begin(self, script: Script, job: Job) -> ScriptProgress:
        """Where a job starts that has no results, or those of another version of its script."""
        balance: Balance = script.body
        first_us = await self._context.first_us(
            job.object_id, (balance.target,), self._context.horizon_us(job.object_id)
        )
        closed_us = self.closed_us(balance)
        begin_us = closed_us if first_us is None else min(self.window_us(balance, first_us), closed_us)
        return ScriptProgress(digest=script.digest, origin_us=begin_us, done_us=begin_us)

    async def advance(self, script: Script, job: Job, progress: ScriptProgress) -> bool:
        """Fits the next windows that are over; False when there are none."""
        balance: Balance = script.body
        closed_us = self.closed_us(balance)
        if progress.done_us >= closed_us:
            return False
        await self._context.fence(script.company_id, job.object_id, closed_us)
        rows, done_us = await self._fit_some(script, job, progress.done_us, closed_us)
        moved = msgspec.structs.replace(progress, done_us=done_us)
        async with self._context.database.writing() as connection:
            await write_balances(connection, rows)
            await save_progress(connection, script, job, moved)
        self._context.progress[job] = moved
        return True

    async def redo(self, script: Script, todo: Todo, progress: ScriptProgress) -> None:
        """Fits windows again that are over, the first ones of the range."""
        balance: Balance = script.body
        start_us = self.window_us(
            balance, max(todo.start_us, self._context.horizon_us(todo.job.object_id) + balance.window_us)
        )
        end_us = min(self.window_us(balance, todo.end_us - 1) + balance.window_us, progress.done_us)
        rows, done_us = await self._fit_some(script, todo.job, start_us, end_us) if start_us < end_us else ([], end_us)
        async with self._context.database.writing() as connection:
            await write_balances(connection, rows)
            await finish_todo(connection, todo, todo.end_us if done_us >= end_us else done_us)

    async def _fit_some(self, script: Script, job: Job, start_us: int, end_us: int) -> tuple[list[dict[str, Any]], int]:
        """The results of some windows that have the target, and up to where that is."""
        balance: Balance = script.body
        rows: list[dict[str, Any]] = []
        while start_us < end_us and len(rows) < _MOST_WINDOWS:
            first_us = await self._context.first_us(job.object_id, (balance.target,), start_us)
            if first_us is None or first_us >= end_us:
                return rows, end_us
            start_us = self.window_us(balance, first_us)
            rows.append(await self._fit(script, job, start_us))
            start_us += balance.window_us
        return rows, start_us

    async def _fit(self, script: Script, job: Job, start_us: int) -> dict[str, Any]:
        balance: Balance = script.body
        end_us = start_us + balance.window_us
        buckets = await self._context.store.resample(
            series_of(job.object_id),
            (balance.target, *balance.inputs),
            start_us,
            end_us - 1,
            bucket_us=max(_LEAST_BUCKET_US, -(-balance.window_us // _BUCKETS)),
            fn="mean",
            origin_us=start_us,
        )
        computing = self._context.computing  # which loads its library, too
        found = await computing.run(fit, balance.target, balance.inputs, buckets.columns)
        return {
            "company_id": script.company_id,
            "project_id": script.id,
            "class_id": script.uid,
            "block_id": format_iso(start_us),
            "object_id": job.object_id,
            "mapping_id": self._context.catalogue.mapping(job.object_id),
            "parameters": found.parameters(),
            "correlation": found.correlation_text(),
            "start_time": start_us,
            "end_time": end_us,
            "created": self._context.clock(),
            "is_available": 1,
        }
