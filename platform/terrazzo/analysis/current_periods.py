"""Statistics that run until now: finished periods, and a scan of what has come since the last finished hour."""

from __future__ import annotations

from typing import NamedTuple

from terrazzo.analysis.calculations import calculating
from terrazzo.analysis.context import AnalysisContext
from terrazzo.analysis.periods import FINISHED, HOUR_US, RUNNING, Period, PeriodType
from terrazzo.analysis.progress import ScriptProgress
from terrazzo.analysis.results import read_summaries
from terrazzo.analysis.scripts import Job, Script, ScriptKind
from terrazzo.analysis.tally import Summary, joining
from terrazzo.loop_pauses import in_turns
from terrazzo.ports.store import Value

_MOST_EDGE_US = 6 * HOUR_US  # what a query scans: a script that catches up from further back ends where it is


class Running(NamedTuple):
    """The variables of a period so far; it ends at the time until which they are computed."""

    period: Period
    values: dict[str, Value]


class RunningResults:
    """Types 5 to 8 of statistics and calculations, computed when somebody asks."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    async def compute(self, script: Script, object_id: int, kind: PeriodType) -> Running | None:
        """One script's results of a running period; None while nothing is computed."""
        if script.kind is ScriptKind.STATISTICS:
            return await self._statistics(script, Job(script.kind, script.id, object_id), kind)
        given: dict[str, Value] = {}
        found: Running | None = None
        for source in self._sources(script, object_id):
            some = await self._statistics(source, Job(source.kind, source.id, object_id), kind)
            if some is not None:
                given, found = {**some.values, **given}, found or some
        if found is None:
            return None
        formulas = await in_turns(script.body.reading())
        return Running(found.period, await in_turns(calculating(formulas, given)))

    def nothing(self, script: Script, kind: PeriodType) -> Running:
        """What is told while nothing is computed: every variable, and no value."""
        now_us = self._context.clock()
        if script.kind is ScriptKind.STATISTICS:
            names = [row.var_name for row in script.body.measures]
        else:
            names = script.body.names
        start_us = now_us if kind is PeriodType.TOTAL else self._context.calendar.period(RUNNING[kind], now_us).start_us
        return Running(Period(kind, start_us, now_us), dict.fromkeys(names))

    def _sources(self, script: Script, object_id: int) -> list[Script]:
        """The statistics scripts that have results on an object of a calculation, the first made first."""
        found = [
            self._context.catalogue.get(job.kind, job.script_id)
            for job, _ in self._context.progress.of_object(object_id)
            if job.kind is ScriptKind.STATISTICS
        ]
        mine = [each for each in found if each is not None and each.company_id == script.company_id]
        return sorted(mine, key=lambda each: each.id)

    async def _statistics(self, script: Script, job: Job, kind: PeriodType) -> Running | None:
        progress = self._context.progress.get(job)
        if progress is None:
            return None
        now_us = self._context.clock()
        start_us = self._start_us(kind, progress, now_us)
        spans = self._spans(self._whole_us(kind, start_us), progress.done_us)
        parts = await read_summaries(self._context.database, job, spans) if spans else []
        edge_us = max(start_us, progress.done_us)
        end_us = now_us if now_us - edge_us <= _MOST_EDGE_US else edge_us
        summaries = [part.summary for part in sorted(parts, key=lambda part: part.period.start_us)]
        if end_us > edge_us:
            summaries.append(await self._edge(script, job, edge_us, end_us))
        return Running(
            Period(kind, start_us, max(end_us, start_us)), script.body.values(await in_turns(joining(summaries)))
        )

    def _start_us(self, kind: PeriodType, progress: ScriptProgress, now_us: int) -> int:
        if kind is PeriodType.TOTAL:
            return progress.origin_us
        return self._context.calendar.period(RUNNING[kind], now_us).start_us

    def _whole_us(self, kind: PeriodType, start_us: int) -> int:
        """Results may begin in the middle of a year, which is kept as a whole all the same."""
        return (
            self._context.calendar.period(PeriodType.YEAR, start_us).start_us if kind is PeriodType.TOTAL else start_us
        )

    def _spans(self, start_us: int, done_us: int) -> list[Period]:
        """Whole years, then months of the last year, days of the last month, hours of the last day."""
        spans = []
        for kind in reversed(FINISHED):
            if start_us >= done_us:
                break
            end_us = self._context.calendar.period(kind, done_us).start_us
            spans.append(Period(kind, start_us, max(start_us, end_us)))
            start_us = max(start_us, end_us)
        return spans

    async def _edge(self, script: Script, job: Job, start_us: int, end_us: int) -> Summary:
        statistics_rows = script.body
        carried = await self._context.carried(job.object_id, list(statistics_rows.watched), start_us)
        return (await self._context.summarize(statistics_rows, job.object_id, (start_us, end_us), carried))[0]
