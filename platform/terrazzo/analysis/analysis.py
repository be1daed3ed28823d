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
from terrazzo.analysis.late_records import PREFIX, LateMarks, LateSpan
from terrazzo.analysis.late_work import REST_US, LateWork
from terrazzo.analysis.periods import Calendar, PeriodType
from terrazzo.analysis.progress import (
    MOST_RANGES,
    JobRange,
    Remaining,
    ScriptProgress,
    Todo,
    add_todos,
    next_todos,
    remaining_todos,
    save_progress,
    saved_progress,
)
from terrazzo.analysis.queries import ResultQueries
from terrazzo.analysis.results import forget_script
from terrazzo.analysis.scripts import CompanyJobs, Job, Script, ScriptCatalogue, ScriptKey, ScriptKind
from terrazzo.analysis.statistics import StatisticsWork
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor
from terrazzo.errors import Unavailable
from terrazzo.loop_pauses import LoopPauses, next_turn
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories.repository import ChangeListener, EntityRepository, RowChange
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

_log = logging.getLogger(__name__)
_sparse = SparseLog(_log)

_JOBS_AT_ONCE = 200  # that are looked at before others have their turn
_TURN_S = 0.2  # of a company, while others' jobs are due
_PAUSE_S = 0.002  # between pieces: everybody else's turn


class AnalysisStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    pieces: int = 0  # of new periods
    redone: int = 0  # pieces of periods that were computed before
    late_marks: int = 0
    failures: int = 0  # of a job, a mark or a script that something is wrong with; it rests, the others go on


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
        self._late = LateWork(context, self._statistics)
        self._deleted: dict[ScriptKey, int] = {}  # and from when on what is left of them is to be forgotten
        self._has_todos = True
        self._resting: dict[Job, int] = {}  # jobs that failed, and until when they are left alone
        self._put_off: set[Job] = set()  # at which the store or the database gave up: the others come before them
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
        context = AnalysisContext(
            store=store,
            database=database,
            calendar=Calendar(zone),
            catalogue=ScriptCatalogue(zone),
            marks=marks,
            clock=clock,
            retention_us=retention_us,
        )
        async for company_id, job, progress in saved_progress(database):
            context.progress[job] = progress
            await marks.fence(company_id, job.object_id, progress.done_us)
        analysis = cls(context)
        analysis.stats.failures += marks.unreadable
        await analysis._follow(entities)
        return analysis

    async def reload(self) -> None:
        """Takes over how far another process has come, which does the work on the same database."""
        known, found = self._context.progress, set[ScriptKey]()
        async for _, job, progress in saved_progress(self._context.database):
            found.add(ScriptKey(job.kind, job.script_id))
            if known.get(job) != progress:
                known[job] = progress
        for key in known.scripts() - found:
            for _ in known.forget(key):
                pass
        self._deleted.clear()  # the other process forgets them

    async def _follow(self, entities: Entities) -> None:
        scripts: dict[ScriptKind, EntityRepository] = {
            ScriptKind.STATISTICS: entities.statistics,
            ScriptKind.CALCULATE: entities.calculates,
            ScriptKind.BALANCE: entities.balances,
        }
        catalogue, known = self._context.catalogue, set[ScriptKey]()
        for kind, repository in scripts.items():
            hear: ChangeListener = partial(self._on_script, kind)
            repository.changes.listen(hear)
            async for row in repository.every():
                known.add(ScriptKey(kind, row["id"]))
                hear(RowChange(row["id"], row["uid"], row))
        entities.objects.changes.listen(self._on_object)
        mappings = {row["id"]: row["uid"] async for row in entities.mappings.every(only=("uid",))}
        async for ids, mapping_ids in entities.objects.every_column(("mapping_id",)):
            catalogue.load_objects(ids, map(mappings.get, mapping_ids))
        self._deleted |= dict.fromkeys(self._context.progress.scripts() - known, 0)

    def _on_script(self, kind: ScriptKind, changed: RowChange) -> None:
        self._has_todos = True  # it may have been stopped with something left to do
        if changed.row is None:
            self._deleted[ScriptKey(kind, changed.record_id)] = 0
        try:
            self._context.catalogue.put(kind, changed.record_id, changed.row)
        except Exception:  # noqa: BLE001 - whatever is wrong with one script: it doesn't run, and keeps its results
            self.stats.failures += 1
            _sparse.error("%s %d can't be read and doesn't run", kind.value, changed.record_id, exc_info=True)

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
                count, is_more = await self._work_once()
                if not count and not is_more:
                    break
                done += count
                await asyncio.sleep(_PAUSE_S)
        return done

    async def _work_once(self) -> tuple[int, bool]:
        """Computes bounded pieces of jobs that are due, each company's for one turn; says whether more is due."""
        await self._forget_deleted()
        is_more = await self._take_marks()
        count = 0
        for company_id in self._context.catalogue.companies():
            begun = at_work.begin(Work("analysis", company_id))
            try:
                count += await self._work_for(company_id, self._context.catalogue.jobs(company_id))
            finally:
                at_work.end(begun)
        if self._has_todos:
            count += await self._redo()
        is_more = is_more or bool(self._put_off)
        self._put_off.clear()
        return count, is_more

    async def _work_for(self, company_id: int, jobs: CompanyJobs) -> int:
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
        if job in self._put_off or self._is_resting(job):
            return False
        try:
            return await work()
        except (Unavailable, StoreUnavailable):
            self._put_off.add(job)  # it may be this one alone, whose statement takes too long
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with one job
            self.stats.failures += 1
            self._resting[job] = self._context.clock() + REST_US
            told = (job.kind.value, job.script_id, job.object_id)
            _sparse.error("%s %d of object %d failed and rests", *told, exc_info=True)
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

    async def _redo(self) -> int:
        running, scripts = self._context.catalogue.running, dict[Job, Script]()

        def is_wanted(job: Job) -> bool:
            script = None if job in self._put_off or self._is_resting(job) else running(job)
            if script is not None:
                scripts[job] = script
            return script is not None

        async with self._context.database.reading() as connection:
            todos = await next_todos(connection, is_wanted)
        self._has_todos = bool(todos or self._resting or self._put_off)
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
                await add_todos(connection, [JobRange(job, begun.origin_us, begun.done_us)])
                self._has_todos = True
        self._context.progress[job] = begun
        return begun

    async def _begin(self, script: Script, job: Job) -> ScriptProgress | None:
        match job.kind:
            case ScriptKind.STATISTICS:
                await self._context.fence(script.company_id, job.object_id, self._statistics.closed_us())
                return await self._statistics.begin(script, job)
            case ScriptKind.BALANCE:
                await self._context.fence(script.company_id, job.object_id, self._balances.closed_us(script.body))
                return await self._balances.begin(script, job)
        return self._calculations.begin(script, job.object_id)

    async def _forget_deleted(self) -> None:
        """Deletes what is left of deleted scripts; one of which that fails rests, the others go on."""
        for key in [key for key, from_us in self._deleted.items() if from_us <= self._context.clock()]:
            try:
                await self._forget(key)
            except (Unavailable, StoreUnavailable):
                self._deleted[key] = self._deleted.pop(key)  # the others come before it
                raise
            except Exception:  # noqa: BLE001 - whatever is wrong with what is left of one script
                self.stats.failures += 1
                self._deleted[key] = self._context.clock() + REST_US
                _sparse.error("what is left of %s %d can't be deleted, and rests", *key, exc_info=True)
            else:
                del self._deleted[key]

    async def _forget(self, key: ScriptKey) -> None:
        is_done, pauses = False, LoopPauses()
        while not is_done:
            async with self._context.database.writing() as connection:
                is_done = await forget_script(connection, key.kind, key.script_id)
            await next_turn()
        for object_id in self._context.progress.forget(key):
            self._context.marks.lift(object_id)
            await pauses.pause()

    async def _take_marks(self) -> bool:
        """Some of what came late becomes what is to be done again; says whether there is more of it."""
        count, is_more = await self._late.take()
        self.stats.late_marks += count
        self.stats.failures += self._late.failures
        self._late.failures = 0
        self._has_todos = self._has_todos or count > 0
        return is_more

    async def compute_again(self, spans: Sequence[LateSpan]) -> None:
        """Has the finished periods that meet these spans of objects computed again, soon; that is durable on return.

        For records that came, changed or went without passing through the ingest.
        """
        await self._late.compute_again(spans)
        self._has_todos = True

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
        jobs = [Job(ScriptKind.STATISTICS, script_id, object_id) for object_id in object_ids]
        ranges = [JobRange(job, start_us, end_us) for job in jobs]
        async with self._context.database.writing() as connection:
            for at in range(0, len(ranges), MOST_RANGES):
                await add_todos(connection, ranges[at : at + MOST_RANGES])
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
