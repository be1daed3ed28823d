"""The analysis: works off what is due, a bounded piece at a time.

One task calls ``work``, in which companies take turns. A piece reads records as a stream and writes its results, how
far they go, and what follows from them in one transaction, so that a kill at any moment leaves nothing half done and
nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, tzinfo
from functools import partial

import msgspec

from terrazzo.analysis.balances import BalanceWork
from terrazzo.analysis.calculations import CalculationWork
from terrazzo.analysis.context import AnalysisContext
from terrazzo.analysis.current_periods import RunningResults
from terrazzo.analysis.late_records import PREFIX, LateMarks, LateSpan, joined
from terrazzo.analysis.periods import Calendar, PeriodType
from terrazzo.analysis.progress import (
    Remaining,
    ScriptProgress,
    Todo,
    add_todo,
    load_progress,
    next_todos,
    remaining_todos,
    save_progress,
)
from terrazzo.analysis.queries import ResultQueries
from terrazzo.analysis.results import forget_script
from terrazzo.analysis.scripts import Job, Script, ScriptCatalogue, ScriptKind
from terrazzo.analysis.statistics import StatisticsWork
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor
from terrazzo.errors import Unavailable
from terrazzo.loop_pauses import next_turn
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories.repository import ChangeListener, EntityRepository, RowChange
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.times import now_us

_log = logging.getLogger(__name__)

_JOBS_AT_ONCE = 200  # that are looked at before others have their turn
_TURN_S = 0.2  # of a company, while others' jobs are due
_REST_US = 60_000_000  # of a job that failed
_PAUSE_S = 0.002  # between pieces: everybody else's turn


class AnalysisStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    pieces: int = 0  # of new periods
    redone: int = 0  # pieces of periods that were computed before
    late_marks: int = 0
    failures: int = 0  # of a job that something is wrong with; it rests, the others go on


class Analysis:
    """Statistics, calculations and balances of one store and database."""

    def __init__(self, context: AnalysisContext) -> None:
        """Use ``open``."""
        self.stats = AnalysisStats()
        self.running = RunningResults(context)
        self.results = ResultQueries(context.database, context.calendar.zone)
        self.computing = context.computing  # for requests, too: threads share the interpreter with the event loop
        self.kept = context.catalogue.memory.kept
        self._context = context
        self._statistics = StatisticsWork(context)
        self._calculations = CalculationWork(context)
        self._balances = BalanceWork(context)
        self._deleted: list[tuple[ScriptKind, int]] = []
        self._has_todos = True
        self._resting: dict[Job, int] = {}  # jobs that failed, and until when they are left alone
        self._next: dict[int, int] = {}  # which of a company's jobs is next
        self._working = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        store: TimeSeriesStore,
        database: Database,
        entities: Entities,
        *,
        marks: LateMarks | None = None,
        zone: tzinfo = UTC,
        retention_us: Callable[[int], int] = lambda _: 0,
        clock: Callable[[], int] = now_us,
    ) -> Analysis:
        """Loads scripts, progress and marks, and follows changes. Before the ingest takes anything.

        Args:
            marks: the same that the ingest asks.
            retention_us: how long the store keeps the records of an object, by its id; 0: for ever.

        Raises:
            StoreUnavailable, Unavailable: the store or the database doesn't answer.
        """
        marks = marks or LateMarks()
        marks.load(await store.notes(PREFIX))
        async with database.reading() as connection:
            progress = await load_progress(connection)
        context = AnalysisContext(
            store=store,
            database=database,
            calendar=Calendar(zone),
            catalogue=ScriptCatalogue(zone),
            marks=marks,
            clock=clock,
            retention_us=retention_us,
            progress=progress,
        )
        for job, each in progress.items():
            await marks.fence(job.object_id, each.done_us)
        analysis = cls(context)
        await analysis._follow(entities)
        return analysis

    async def reload(self) -> None:
        """Takes over how far another process has come, which does the work on the same database."""
        async with self._context.database.reading() as connection:
            progress = await load_progress(connection)
        known = self._context.progress
        for job in known.keys() - progress.keys():
            del known[job]
        known.update(progress)

    async def _follow(self, entities: Entities) -> None:
        scripts: dict[ScriptKind, EntityRepository] = {
            ScriptKind.STATISTICS: entities.statistics,
            ScriptKind.CALCULATE: entities.calculates,
            ScriptKind.BALANCE: entities.balances,
        }
        catalogue = self._context.catalogue
        for kind, repository in scripts.items():
            hear: ChangeListener = partial(self._on_script, kind)
            repository.changes.listen(hear)
            async for row in repository.every():
                hear(RowChange(row["id"], row["uid"], row))
        entities.objects.changes.listen(self._on_object)
        mappings = {row["id"]: row["uid"] async for row in entities.mappings.every(only=("uid",))}
        async for ids, mapping_ids in entities.objects.every_column(("mapping_id",)):
            catalogue.load_objects(ids, map(mappings.get, mapping_ids))
        known = {(script.kind, script.id) for script in catalogue}
        self._deleted += {(job.kind, job.script_id) for job in self._context.progress} - known

    def _on_script(self, kind: ScriptKind, changed: RowChange) -> None:
        self._context.catalogue.put(kind, changed.record_id, changed.row)
        self._has_todos = True  # it may have been stopped with something left to do
        if changed.row is None:
            self._deleted.append((kind, changed.record_id))

    def _on_object(self, changed: RowChange) -> None:
        if changed.row is None:
            self._context.catalogue.drop_object(changed.record_id)
        else:
            self._context.catalogue.put_object(changed.record_id, changed.row["mapping_uid"])

    # The work

    async def work(self, *, most_pieces: int = 1_000_000) -> int:
        """Works until nothing is due, or that many pieces are done; returns how many were. Callers take turns.

        Raises:
            StoreUnavailable, Unavailable: what is due stays so.
        """
        done = 0
        async with self._working:
            while done < most_pieces:
                count = await self._work_once()
                if not count:
                    break
                done += count
                await asyncio.sleep(_PAUSE_S)
        return done

    async def _work_once(self) -> int:
        """Computes bounded pieces of jobs that are due, each company's for one turn."""
        await self._forget_deleted()
        await self._take_marks()
        count, jobs = 0, self._context.catalogue.jobs()
        for company_id, mine in list(jobs.items()):
            begun = at_work.begin(Work("analysis", company_id))
            try:
                count += await self._work_for(company_id, mine)
            finally:
                at_work.end(begun)
        if self._has_todos:
            count += await self._redo({job: script for mine in jobs.values() for script, job in mine})
        return count

    async def _work_for(self, company_id: int, jobs: Sequence[tuple[Script, Job]]) -> int:
        """A company's turn: it goes on where the last one ended, with the jobs after the one that was moved last."""
        count, first, until_s = 0, self._next.get(company_id, 0), time.monotonic() + _TURN_S
        for number in range(len(jobs)):
            if number % _JOBS_AT_ONCE == _JOBS_AT_ONCE - 1:
                await next_turn()
            place = (first + number) % len(jobs)
            script, job = jobs[place]
            if await self._unless_it_fails(job, partial(self._move, script, job)):
                self.stats.pieces += 1
                count += 1
                self._next[company_id] = place + 1
                await next_turn()
            if count and time.monotonic() > until_s:
                break
        return count

    async def _move(self, script: Script, job: Job) -> bool:
        progress = await self._progress(script, job)
        return progress is not None and await self._advance(script, job, progress)

    async def _unless_it_fails(self, job: Job, work: Callable[[], Awaitable[bool]]) -> bool:
        """Does something for a job, and says whether that brought it forward; one that fails rests, others go on."""
        if self._is_resting(job):
            return False
        try:
            return await work()
        except (Unavailable, StoreUnavailable):
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with one job
            self.stats.failures += 1
            self._resting[job] = self._context.clock() + _REST_US
            _log.exception("%s %d of object %d failed and rests", job.kind.value, job.script_id, job.object_id)
            return False

    def _is_resting(self, job: Job) -> bool:
        until_us = self._resting.get(job)
        if until_us is not None and until_us <= self._context.clock():
            del self._resting[job]
            return False
        return until_us is not None

    async def _advance(self, script: Script, job: Job, progress: ScriptProgress) -> bool:
        match job.kind:
            case ScriptKind.STATISTICS:
                moved = await self._statistics.advance(script, job, progress)
                self._has_todos = self._has_todos or moved
                return moved
            case ScriptKind.BALANCE:
                return await self._balances.advance(script, job, progress)
        return False  # a calculation follows from what statistics leave to do

    async def _redo(self, scripts: dict[Job, Script]) -> int:
        async with self._context.database.reading() as connection:
            todos = await next_todos(connection, [job for job in scripts if not self._is_resting(job)])
        self._has_todos = bool(todos or self._resting)
        if todos:
            self._context.ensure_whole()
        done, until_s, served = 0, time.monotonic() + _TURN_S, set[int]()
        for todo in todos:  # companies in turn
            company_id = scripts[todo.job].company_id
            if company_id in served and time.monotonic() > until_s:
                break
            served.add(company_id)
            begun = at_work.begin(Work("analysis", company_id))
            try:
                if await self._unless_it_fails(todo.job, partial(self._redo_one, scripts[todo.job], todo)):
                    self.stats.redone += 1
                    done += 1
            finally:
                at_work.end(begun)
            await next_turn()
        return done

    async def _redo_one(self, script: Script, todo: Todo) -> bool:
        match todo.job.kind:
            case ScriptKind.STATISTICS:
                await self._statistics.redo(script, todo, self._context.progress[todo.job])
            case ScriptKind.BALANCE:
                await self._balances.redo(script, todo, self._context.progress[todo.job])
            case ScriptKind.CALCULATE:
                await self._calculations.redo(script, todo)
        return True

    async def _progress(self, script: Script, job: Job) -> ScriptProgress | None:
        """How far a job is; one that is new, or whose script has changed, begins."""
        known = self._context.progress.get(job)
        if known is not None and known.digest == script.digest:
            return known
        begun = await self._begin(script, job)
        if begun is None:
            return None
        async with self._context.database.writing() as connection:
            await save_progress(connection, script, job, begun)
            if job.kind is ScriptKind.CALCULATE:
                await add_todo(connection, job, begun.origin_us, begun.done_us)
                self._has_todos = True
        self._context.progress[job] = begun
        return begun

    async def _begin(self, script: Script, job: Job) -> ScriptProgress | None:
        match job.kind:
            case ScriptKind.STATISTICS:
                await self._context.fence(job.object_id, self._statistics.closed_us())
                return await self._statistics.begin(script, job)
            case ScriptKind.BALANCE:
                await self._context.fence(job.object_id, self._balances.closed_us(script.body))
                return await self._balances.begin(script, job)
        return self._calculations.begin(script, job.object_id)

    async def _forget_deleted(self) -> None:
        while self._deleted:
            kind, script_id = self._deleted[0]
            is_done = False
            while not is_done:
                async with self._context.database.writing() as connection:
                    is_done = await forget_script(connection, kind, script_id)
                await asyncio.sleep(0)
            for job in [job for job in self._context.progress if (job.kind, job.script_id) == (kind, script_id)]:
                del self._context.progress[job]
                if not any(other.object_id == job.object_id for other in self._context.progress):
                    self._context.marks.lift(job.object_id)
            self._deleted.pop(0)

    async def _take_marks(self) -> None:
        """From the store's notes to what is to be done again: first there, then gone here."""
        marked = self._context.marks.marked()
        if not marked:
            return
        spans = joined([span for some in marked.values() for span in some])
        await self.compute_again(spans)
        await self._context.store.append([], notes=dict.fromkeys(marked))
        self._context.marks.forget(list(marked))
        self.stats.late_marks += len(spans)

    async def compute_again(self, spans: list[LateSpan]) -> None:
        """Has the finished periods that meet these spans of objects computed again, soon; that is durable on return.

        For records that came, changed or went without passing through the ingest.
        """
        found = [
            (job, start_us, await self._until_us(job, end_us))
            for object_id, start_us, end_us in spans
            for job, progress in self._context.progress.items()
            if job.object_id == object_id and job.kind is not ScriptKind.CALCULATE and start_us < progress.done_us
        ]
        async with self._context.database.writing() as connection:
            for each in found:
                await add_todo(connection, *each)
        self._has_todos = True

    async def _until_us(self, job: Job, end_us: int) -> int:
        script = self._context.catalogue.get(job.kind, job.script_id)
        if job.kind is not ScriptKind.STATISTICS or script is None:
            return end_us
        done_us = self._context.progress[job].done_us
        return await self._statistics.affected_until_us(script, job.object_id, end_us, done_us)

    # What the APIs ask

    async def recompute(self, actor: Actor, script_id: int, object_ids: list[int], start_us: int, end_us: int) -> None:
        """Has finished periods of a statistics script computed again, soon; durable and in the audit log on return."""
        script = self._context.catalogue.get(ScriptKind.STATISTICS, script_id)
        if script is None:
            return
        told = {"object_list": object_ids, "start_us": start_us, "end_us": end_us}
        entry = AuditEntry(
            actor=actor,
            company_id=script.company_id,
            action="recompute",
            entity="statistics",
            record_id=script.id,
            uid=script.uid,
            after=told,
        )
        async with self._context.database.writing() as connection:
            for object_id in object_ids:
                await add_todo(connection, Job(ScriptKind.STATISTICS, script_id, object_id), start_us, end_us)
            await write_entries(connection, [entry], self._context.clock())
        self._has_todos = True

    async def remaining(self, kind: ScriptKind, script_id: int) -> list[Remaining]:
        """What a script has still to compute again, by object; empty: all of it is done."""
        async with self._context.database.reading() as connection:
            return await remaining_todos(connection, kind, script_id)

    def script(self, kind: ScriptKind, script_id: int) -> Script | None:
        """The script with this id."""
        return self._context.catalogue.get(kind, script_id)

    def describe(self, kind: PeriodType, start_us: int) -> str:
        """A period as log lines name it."""
        return self._context.calendar.describe(kind, start_us)

    def now_us(self) -> int:
        """Now, in UTC microseconds: the end of periods that are still running."""
        return self._context.clock()
