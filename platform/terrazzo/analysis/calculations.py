"""Calculations: expressions over the statistics of an object in one period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from terrazzo.analysis.context import AnalysisContext
from terrazzo.analysis.periods import FINISHED, HOUR_US, Period, PeriodType
from terrazzo.analysis.progress import ScriptProgress, Todo, finish_todo
from terrazzo.analysis.results import ResultMaker, read_variables, write_results
from terrazzo.analysis.scripts import Formula, Script, ScriptKind
from terrazzo.loop_pauses import Steps, in_turns
from terrazzo.ports.store import Value

_MOST_HOURS = 168
_MOST_VALUES = 5_000  # of the hours of one piece


class CalculationWork:
    """Follows the statistics: each period that is written leaves a range to calculate."""

    def __init__(self, context: AnalysisContext) -> None:
        self._context = context

    def begin(self, script: Script, object_id: int) -> ScriptProgress | None:
        """Where the statistics of the object begin and end; None while there are none."""
        others = [
            progress
            for job, progress in self._context.progress.of_object(object_id)
            if self._is_source(script, job.kind, job.script_id)
        ]
        if not others:
            return None
        origin_us, done_us = min(each.origin_us for each in others), max(each.done_us for each in others)
        return ScriptProgress(digest=script.digest, origin_us=origin_us, done_us=done_us)

    def _is_source(self, script: Script, kind: ScriptKind, script_id: int) -> bool:
        source = self._context.catalogue.get(kind, script_id) if kind is ScriptKind.STATISTICS else None
        return source is not None and source.company_id == script.company_id

    async def redo(self, script: Script, todo: Todo) -> None:
        """Calculates the finished periods that meet the first part of a range."""
        formulas = await in_turns(script.body.reading())
        hours = max(1, min(_MOST_HOURS, _MOST_VALUES // max(1, len(formulas))))
        end_us = min(todo.end_us, todo.start_us + hours * HOUR_US)
        context = self._context
        found = [await self._calculate(script, todo, kind, formulas, end_us) for kind in FINISHED]
        maker = ResultMaker(script, todo.job, calendar=context.calendar, now_us=context.clock())
        results = [await maker.values(span, values) for span, values in found]
        async with context.database.writing() as connection:
            await write_results(connection, todo.job, results)
            await finish_todo(connection, todo, end_us)

    async def _calculate(
        self, script: Script, todo: Todo, kind: PeriodType, formulas: Sequence[Formula], end_us: int
    ) -> tuple[Period, dict[Period, dict[str, Value]]]:
        """The periods of one type, from statistics as they are: what changes meanwhile leaves a range of its own."""
        calendar = self._context.calendar
        first, last = calendar.period(kind, todo.start_us), calendar.period(kind, max(end_us - 1, todo.start_us))
        span = Period(kind, first.start_us, last.end_us)
        found = await read_variables(self._context.database, script.company_id, todo.job.object_id, span)
        return span, {period: await in_turns(calculating(formulas, given)) for period, given in found.items()}


def calculating(formulas: Sequence[Formula], given: Mapping[str, Value]) -> Steps[dict[str, Value]]:
    """Each variable; null where a statistic that it needs is missing."""
    values = {}
    for name, each in formulas:
        values[name] = None if each is None else each.evaluate(given)
        yield
    return values
