"""Statistics of finished periods: hours from records, everything longer from hours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from terrazzo.analysis.context import DELAY_US, AnalysisContext
from terrazzo.analysis.periods import FINISHED, Period, PeriodType
from terrazzo.analysis.progress import (
    MOST_RANGES,
    JobRange,
    ScriptProgress,
    Todo,
    add_todos,
    finish_todo,
    save_progress,
)
from terrazzo.analysis.results import ResultMaker, ResultRows, Summarized, read_summaries, write_results
from terrazzo.analysis.scripts import Job, Script
from terrazzo.analysis.statistics_rows import StatisticsRows
from terrazzo.analysis.tally import Summary, joining
from terrazzo.loop_pauses import in_turns

_MOST_HOURS = 168
_MOST_VALUES = 5_000  # of the hours of one piece


class _Made(NamedTuple):
    """Periods of one type that begin in a span, as they are going to be."""

    span: Period
    found: Sequence[Summarized]


class StatisticsWork:
    """Brings statistics jobs forward, a piece at a time."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    def closed_us(self) -> int:
        """UTC microseconds: hours that end at or before this are finished and can be computed."""
        return self._context.calendar.period(PeriodType.HOUR, self._context.clock() - DELAY_US).start_us

    async def begin(self, script: Script, job: Job) -> ScriptProgress:
        """Where a job starts that has no results, or those of another version of its script."""
        context, before = self._context, self._context.progress.get(job)
        first_us = await context.first_us(job.object_id, script.body.codes, context.horizon_us(job.object_id))
        closed_us = self.closed_us()
        begin_us = closed_us if first_us is None else min(first_us, closed_us)
        begin_us = context.calendar.period(PeriodType.HOUR, begin_us).start_us
        origin_us = begin_us if before is None else min(before.origin_us, begin_us)
        return ScriptProgress(digest=script.digest, origin_us=origin_us, done_us=begin_us)

    async def advance(self, script: Script, job: Job, progress: ScriptProgress) -> bool:
        """Computes the next hours that are finished; False when there are none."""
        closed_us = self.closed_us()
        if progress.done_us >= closed_us:
            return False
        statistics_rows: StatisticsRows = script.body
        await self._context.fence(script.company_id, job.object_id, closed_us)
        start_us = progress.done_us
        carried = await self._context.carried(job.object_id, list(statistics_rows.watched), start_us)
        if not any(value is not None for value in carried.values()):
            first_us = await self._context.first_us(job.object_id, statistics_rows.codes, start_us)
            past = first_us is None or first_us >= closed_us
            start_us = closed_us if past or first_us is None else self._hour(first_us)
        bounds = self._bounds(statistics_rows, start_us, closed_us)
        summaries = await self._context.summarize(statistics_rows, job.object_id, bounds, carried) if bounds[1:] else []
        moved = msgspec.structs.replace(progress, done_us=bounds[-1])
        follow = self._following(script, job, min(bounds[0], progress.done_us), bounds[-1])
        results = await self._make(script, job, bounds, summaries, done_us=moved.done_us, since_us=progress.done_us)
        async with self._context.database.writing() as connection:
            await write_results(connection, job, results)
            for some in follow:
                await add_todos(connection, some)
            await save_progress(connection, script, job, moved)
        self._context.progress[job] = moved
        return True

    async def redo(self, script: Script, todo: Todo, progress: ScriptProgress) -> None:
        """Computes the first finished hours of a range again, as many as one piece takes."""
        job, statistics_rows = todo.job, script.body
        start_us = max(
            self._hour(max(todo.start_us, 0)), self._hour(self._context.horizon_us(job.object_id) + 3_600_000_000)
        )
        end_us = min(self._context.calendar.period(PeriodType.HOUR, todo.end_us - 1).end_us, progress.done_us)
        moved = msgspec.structs.replace(progress, origin_us=min(progress.origin_us, start_us))
        if start_us >= end_us:
            async with self._context.database.writing() as connection:
                await finish_todo(connection, todo, todo.end_us)
            return
        carried = await self._context.carried(job.object_id, list(statistics_rows.watched), start_us)
        bounds = self._bounds(statistics_rows, start_us, end_us)
        summaries = await self._context.summarize(statistics_rows, job.object_id, bounds, carried)
        follow = self._following(script, job, bounds[0], bounds[-1])
        results = await self._make(script, job, bounds, summaries, done_us=progress.done_us, since_us=bounds[-1])
        async with self._context.database.writing() as connection:
            await write_results(connection, job, results)
            for some in follow:
                await add_todos(connection, some)
            await save_progress(connection, script, job, moved)
            await finish_todo(connection, todo, todo.end_us if bounds[-1] >= end_us else bounds[-1])
        self._context.progress[job] = moved

    def _following(self, script: Script, job: Job, start_us: int, end_us: int) -> list[list[JobRange]]:
        """What the object's calculations have to do when statistics of a range are there; found before the writer is.

        One that is made meanwhile begins with all that is there.
        """
        follow = [
            JobRange(Job(each.kind, each.id, job.object_id), start_us, end_us)
            for each in self._context.catalogue.calculations(script.company_id, job.object_id)
        ]
        return [follow[at : at + MOST_RANGES] for at in range(0, len(follow), MOST_RANGES)]

    async def affected_until_us(self, script: Script, object_id: int, end_us: int, done_us: int) -> int:
        """Up to where a late record before ``end_us`` matters: values hold until the next record of their code."""
        until_us = end_us
        for code in script.body.watched:
            next_us = await self._context.first_us(object_id, (code,), end_us)
            until_us = max(until_us, done_us if next_us is None else min(next_us + 1, done_us))
        return until_us

    def _hour(self, time_us: int) -> int:
        return self._context.calendar.period(PeriodType.HOUR, time_us).start_us

    def _bounds(self, statistics_rows: StatisticsRows, start_us: int, end_us: int) -> list[int]:
        """The beginnings of the next hours, as many as one piece takes."""
        most = max(1, min(_MOST_HOURS, _MOST_VALUES // max(1, len(statistics_rows.measures))))
        return self._context.calendar.bounds(start_us, min(end_us, start_us + (most + 2) * 3_600_000_000))[: most + 1]

    async def _make(
        self,
        script: Script,
        job: Job,
        bounds: Sequence[int],
        summaries: Sequence[Summary],
        *,
        done_us: int,
        since_us: int,
    ) -> list[ResultRows]:
        """The rows of hours, then of the longer periods that they belong to and that are over.

        All of them before the writer is taken: nobody else writes what they are made of.

        Args:
            done_us: up to where hours are complete with these.
            since_us: periods that ended after this are over now, though nothing of them was computed here.
        """
        maker = ResultMaker(script, job, calendar=self._context.calendar, now_us=self._context.clock())
        start_us, end_us = min(bounds[0], since_us), bounds[-1]
        hours = [
            Summarized(Period(PeriodType.HOUR, *around), summary)
            for around, summary in zip(pairwise(bounds), summaries, strict=False)
            if not summary.is_empty
        ]
        made = _Made(Period(PeriodType.HOUR, bounds[0], end_us), hours)
        results = await maker.summaries(*made)
        for kind in FINISHED[1:]:
            longer = await self._join(job, kind, made, (start_us, end_us, done_us))
            if longer is None:
                break  # then no longer one is over
            results += await maker.summaries(*longer)
            made = longer
        return results

    async def _join(self, job: Job, kind: PeriodType, made: _Made, range_us: tuple[int, int, int]) -> _Made | None:
        """The periods of one type that meet a range and are over, from the shorter ones; None: there are none.

        Args:
            made: the shorter ones that are not in the database yet.
        """
        start_us, end_us, done_us = range_us
        calendar = self._context.calendar
        meeting = calendar.periods(kind, start_us, max(end_us, start_us + 1))
        over = [period for period in meeting if period.end_us <= done_us]
        if not over:
            return None
        span = Period(kind, over[0].start_us, over[-1].end_us)
        fresh = made.span
        there = await read_summaries(self._context.database, job, [Period(fresh.type, span.start_us, span.end_us)])
        parts = [part for part in there if not fresh.start_us <= part.period.start_us < fresh.end_us]
        parts += [part for part in made.found if span.start_us <= part.period.start_us < span.end_us]
        mine: dict[Period, list[Summary]] = {}
        for part in sorted(parts, key=lambda each: each.period.start_us):
            mine.setdefault(calendar.period(kind, part.period.start_us), []).append(part.summary)
        found = list[Summarized]()
        for period in over:
            if period in mine:
                found.append(Summarized(period, await in_turns(joining(mine[period]))))
        return _Made(span, found)
