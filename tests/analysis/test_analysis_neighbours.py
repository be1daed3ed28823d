"""What many jobs of one company cost, and what goes wrong with one of them, is not everybody's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from analysis_stand import HOUR_US, AnalysisStand, analysis_stand, at

from terrazzo.analysis import analysis, calculations, late_work, results, statistics
from terrazzo.analysis.known_progress import KnownProgress
from terrazzo.analysis.late_records import MOST_NOTES, MOST_SPANS, PREFIX, LateMarks
from terrazzo.analysis.progress import MOST_RANGES, JobRange, ScriptProgress, add_todos
from terrazzo.analysis.scripts import Job, ScriptCatalogue, ScriptKey, ScriptKind
from terrazzo.database.tables.analysis import ANALYSIS_PROGRESS, ANALYSIS_TODO
from terrazzo.domain.actor import SYSTEM
from terrazzo.errors import Unavailable
from terrazzo.ports.store import Record

BEGIN_US = at("2026-03-01 00:00:00")
COUNT = [["N", "count", "A"]]
QUARTER_US = HOUR_US // 4


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[AnalysisStand]:
    async with analysis_stand(tmp_path) as opened:
        yield opened


def row(script_id: int, script: Any, objects: range = range(0), company_id: int = 1) -> dict[str, Any]:
    """A script's record."""
    named = {"id": script_id, "uid": f"u{script_id}", "permission_company_id": company_id, "object_list": [*objects]}
    return {**named, "script": script, "is_active": 1, "is_available": 1}


def progress(digest: str = "") -> ScriptProgress:
    return ScriptProgress(digest=digest, origin_us=BEGIN_US, done_us=BEGIN_US + 100 * HOUR_US)


# What one company's jobs cost


def test_which_calculations_follow_costs_what_there_are() -> None:
    """200 calculations without objects beside 200 statistics over 1,000 objects: each took a second for each piece."""
    catalogue = ScriptCatalogue(UTC)
    for number in range(1, 201):
        catalogue.put(ScriptKind.STATISTICS, number, row(number, COUNT, range(1, 1001)))
        catalogue.put(ScriptKind.CALCULATE, number, row(number, [["X", "N"]]))
    catalogue.put(ScriptKind.CALCULATE, 900, row(900, [["X", "N"]], range(5, 6)))
    catalogue.put(ScriptKind.CALCULATE, 901, row(901, [["X", "N"]], range(5, 6), company_id=2))
    began_s = time.thread_time()
    assert [each.id for each in catalogue.calculations(1, 5)] == [*range(1, 201), 900]
    assert len(catalogue.calculations(1, 6)) == 200
    assert catalogue.calculations(1, 1001) == []
    catalogue.put(ScriptKind.CALCULATE, 900, None)
    jobs = catalogue.jobs(1)
    assert len(jobs) == 400_000
    assert jobs[0][1] == Job(ScriptKind.STATISTICS, 1, 1)
    assert jobs[399_999][1] == Job(ScriptKind.CALCULATE, 200, 1000)
    assert len(catalogue.jobs(2)) == 1
    assert time.thread_time() - began_s < 0.05


def test_a_calculation_follows_the_objects_of_statistics_as_they_change() -> None:
    catalogue = ScriptCatalogue(UTC)
    catalogue.put(ScriptKind.CALCULATE, 1, row(1, [["X", "N"]]))
    catalogue.put(ScriptKind.STATISTICS, 1, row(1, COUNT, range(1, 4)))
    catalogue.put(ScriptKind.STATISTICS, 2, row(2, COUNT, range(3, 6)))
    assert [job.object_id for _, job in catalogue.jobs(1) if job.kind is ScriptKind.CALCULATE] == [1, 2, 3, 4, 5]
    catalogue.put(ScriptKind.STATISTICS, 1, row(1, COUNT, range(1, 2)))
    assert [job.object_id for _, job in catalogue.jobs(1) if job.kind is ScriptKind.CALCULATE] == [1, 3, 4, 5]
    catalogue.put(ScriptKind.STATISTICS, 2, None)
    assert [job.object_id for _, job in catalogue.jobs(1) if job.kind is ScriptKind.CALCULATE] == [1]
    assert catalogue.running(Job(ScriptKind.CALCULATE, 1, 1)) is not None
    assert catalogue.running(Job(ScriptKind.CALCULATE, 1, 3)) is None
    catalogue.put(ScriptKind.STATISTICS, 1, row(1, COUNT, range(1, 2), company_id=2))
    assert catalogue.running(Job(ScriptKind.CALCULATE, 1, 1)) is None
    assert catalogue.running(Job(ScriptKind.STATISTICS, 1, 1)) is not None


def test_progress_is_found_by_object_and_by_script() -> None:
    """Among 100,000 jobs: 10 ms for each span that came late, and 130 ms for each script that was deleted."""
    known = KnownProgress()
    for object_id in range(20_000):
        for script_id in range(5):
            known[Job(ScriptKind.STATISTICS, script_id, object_id)] = progress()
    began_s = time.thread_time()
    for object_id in range(1_000):
        assert len(known.of_object(object_id)) == 5
    known[Job(ScriptKind.BALANCE, 7, 1)] = progress()
    assert list(known.forget(ScriptKey(ScriptKind.BALANCE, 7))) == []
    assert time.thread_time() - began_s < 0.5
    for script_id in range(4):
        assert list(known.forget(ScriptKey(ScriptKind.STATISTICS, script_id))) == []
    assert sorted(known.forget(ScriptKey(ScriptKind.STATISTICS, 4))) == [*range(20_000)]
    assert known.scripts() == set()
    assert known.get(Job(ScriptKind.STATISTICS, 4, 1)) is None


class Statements:
    """Counts what the database is asked between a BEGIN of a writer and its COMMIT."""

    def __init__(self, stand: AnalysisStand) -> None:
        self.rows = 0
        self.most_rows = self.commits = self.executed = 0
        engine = stand.database.engine.sync_engine
        sa.event.listen(engine, "before_cursor_execute", self._on_execute)
        sa.event.listen(engine, "commit", self._on_commit)

    def _on_execute(
        self, _connection: Any, _cursor: Any, statement: str, given: Any, _context: Any, many: bool
    ) -> None:
        self.executed += 1
        if "INTO analysis_todo" in statement:
            self.rows += len(given) if many else 1

    def _on_commit(self, _connection: Any) -> None:
        self.commits += self.rows > 0
        self.most_rows, self.rows = max(self.most_rows, self.rows), 0


async def todos(stand: AnalysisStand) -> list[tuple[int, int, int, int]]:
    query = sa.select(ANALYSIS_TODO).order_by(ANALYSIS_TODO.c.script_id, ANALYSIS_TODO.c.object_id)
    async with stand.database.reading() as connection:
        found = (await connection.execute(query.order_by(ANALYSIS_TODO.c.start_us))).all()
    return [(each.script_id, each.object_id, each.start_us, each.end_us) for each in found]


async def test_what_is_computed_again_is_noted_in_pieces_between_which_others_write(stand: AnalysisStand) -> None:
    """8 objects of 200 jobs each, 1,600 ranges: one transaction held the only writer meanwhile."""
    for object_id in range(1, 9):
        for script_id in range(1, 201):
            stand.analysis._context.progress[Job(ScriptKind.BALANCE, script_id, object_id)] = progress()
    statements, ended = Statements(stand), list[str]()

    async def other() -> None:
        while not statements.commits:  # noqa: ASYNC110 - a counter of SQLAlchemy's events
            await asyncio.sleep(0)
        async with stand.database.writing() as connection:
            await connection.execute(sa.text("UPDATE company SET name = name"))
        ended.append("other")

    async def again() -> None:
        await stand.analysis.compute_again([(object_id, BEGIN_US, BEGIN_US + 1) for object_id in range(1, 9)])
        ended.append("again")

    await asyncio.gather(again(), other())
    assert ended == ["other", "again"]
    assert len(await todos(stand)) == 1_600
    assert statements.most_rows == MOST_RANGES


async def test_calculations_that_follow_are_noted_together(stand: AnalysisStand) -> None:
    """200 of them took 600 statements while the writer was held."""
    object_id = await stand.new_object()
    await stand.report(object_id, [(BEGIN_US, {"A": 1})])
    stand.now_us = BEGIN_US + HOUR_US + 10_000_000
    await stand.start("statistics", [object_id], COUNT)
    (statistics,) = stand.analysis._context.catalogue
    for number in range(1, 201):
        stand.analysis._context.catalogue.put(ScriptKind.CALCULATE, number, row(number, [["X", "N"]]))
    job = Job(ScriptKind.STATISTICS, statistics.id, object_id)
    begun = await stand.analysis._progress(statistics, job)
    assert begun is not None
    statements = Statements(stand)
    assert await stand.analysis._statistics.advance(statistics, job, begun)
    assert len(await todos(stand)) == 200
    assert statements.executed < 100


async def test_ranges_that_touch_become_one_whatever_their_order(stand: AnalysisStand) -> None:
    one, two = Job(ScriptKind.STATISTICS, 1, 1), Job(ScriptKind.STATISTICS, 1, 2)

    async def add(*ranges: tuple[Job, int, int]) -> list[tuple[int, int, int, int]]:
        async with stand.database.writing() as connection:
            await add_todos(connection, [JobRange(*each) for each in ranges])
        return await todos(stand)

    assert await add((one, 10, 20), (two, 10, 20), (one, 40, 50)) == [(1, 1, 10, 20), (1, 1, 40, 50), (1, 2, 10, 20)]
    assert await add((one, 60, 70), (one, 20, 30)) == [
        (1, 1, 10, 30),
        (1, 1, 40, 50),
        (1, 1, 60, 70),
        (1, 2, 10, 20),
    ]
    assert await add((two, 30, 31), (one, 29, 60)) == [(1, 1, 10, 70), (1, 2, 10, 20), (1, 2, 30, 31)]
    async with stand.database.reading() as connection:
        (before,) = (await connection.execute(sa.select(ANALYSIS_TODO.c.id).where(ANALYSIS_TODO.c.end_us == 70))).all()
    await add((one, 11, 12))
    async with stand.database.reading() as connection:
        (after,) = (await connection.execute(sa.select(ANALYSIS_TODO.c.id).where(ANALYSIS_TODO.c.end_us == 70))).all()
    assert after != before, "what is under way must not strike it off"


async def test_nothing_is_computed_while_the_writer_is_held(
    stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, inside, called = stand.database.writing, list[bool](), set[str]()

    @asynccontextmanager
    async def noted() -> AsyncIterator[Any]:
        async with writing() as connection:
            inside.append(True)
            try:
                yield connection
            finally:
                inside.pop()

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*given: Any, **named: Any) -> Any:
            called.add(name)
            assert not inside, f"{name} while the writer is held"
            return work(*given, **named)

        return watch

    monkeypatch.setattr(stand.database, "writing", noted)
    for module, name in (
        *((results, name) for name in ("encode_variables", "encode_summary", "decode_summary", "decode_variables")),
        (statistics, "joining"),
        (calculations, "calculating"),
    ):
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    catalogue = stand.analysis._context.catalogue
    monkeypatch.setattr(catalogue, "calculations", watched("calculations", catalogue.calculations))
    await stand.new_object()
    await stand.start("calculates", [], [["X", "N"]])
    object_id, script = await working(stand, 50)
    await stand.report(object_id, [(BEGIN_US + 1, {"A": 1})])
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 0
    assert (await stand.periods(script, 2))[BEGIN_US] == {"N": 25}
    assert len(called) == 7


# What goes wrong


async def working(stand: AnalysisStand, hours: int = 2) -> tuple[int, int]:
    """An object with a record an hour whose statistics are there, and their script."""
    object_id = await stand.new_object()
    await stand.report(object_id, [(BEGIN_US + n * HOUR_US, {"A": n}) for n in range(hours)])
    stand.now_us = BEGIN_US + hours * HOUR_US + 10_000_000
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    return object_id, script


async def test_a_mark_that_fails_rests_and_the_others_go_on(
    stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broken, first), (sound, second) = await working(stand), await working(stand)
    until_us = stand.analysis._statistics.affected_until_us

    async def fail(script: Any, object_id: int, end_us: int, done_us: int) -> int:
        if object_id == broken:
            raise ZeroDivisionError("nobody knows why")
        return await until_us(script, object_id, end_us, done_us)

    monkeypatch.setattr(stand.analysis._statistics, "affected_until_us", fail)
    await stand.report(broken, [(BEGIN_US + 1, {"A": 1})])
    await stand.report(sound, [(BEGIN_US + 1, {"A": 1})])
    await stand.analysis.work()
    assert (await stand.periods(second, 1))[BEGIN_US] == {"N": 2}
    assert stand.analysis.stats.failures == 1
    assert len(await stand.store.notes(PREFIX)) == 1, "it is not lost"
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 1, "it rests"
    monkeypatch.setattr(stand.analysis._statistics, "affected_until_us", until_us)
    stand.now_us += late_work.REST_US
    await stand.analysis.work()
    assert (await stand.periods(first, 1))[BEGIN_US] == {"N": 2}
    assert await stand.store.notes(PREFIX) == {}


async def test_a_note_that_cannot_be_read_keeps_nobody_from_starting(stand: AnalysisStand) -> None:
    object_id, script = await working(stand)
    await stand.store.append([], notes={f"{PREFIX}{7:020}": b"\xc1", f"{PREFIX}x": msgspec.msgpack.encode([])})
    await stand.report(object_id, [(BEGIN_US + 1, {"A": 1})])
    await stand.open_analysis()
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 2
    assert (await stand.periods(script, 1))[BEGIN_US] == {"N": 2}
    assert len(await stand.store.notes(PREFIX)) == 2, "it is left as it is"


async def test_a_script_that_cannot_be_read_keeps_its_results_and_nobody_from_starting(stand: AnalysisStand) -> None:
    (_, broken), (_, sound) = await working(stand), await working(stand)
    async with stand.database.writing() as connection:
        table = stand.entities.statistics.table
        await connection.execute(table.update().where(table.c.id == broken).values(script='[["only a name"]]'))
    await stand.open_analysis()
    stand.now_us += HOUR_US
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 1
    assert len(await stand.periods(broken, 1)) == 2
    async with stand.database.reading() as connection:
        found = (await connection.execute(sa.select(ANALYSIS_PROGRESS))).all()
    done = {each.script_id: each.done_us for each in found}
    assert done == {broken: BEGIN_US + 2 * HOUR_US, sound: BEGIN_US + 3 * HOUR_US}


async def test_a_deleted_script_of_which_something_stays_is_tried_again(
    stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, broken), (_, gone), (_, sound) = await working(stand), await working(stand), await working(stand)
    forget = analysis.forget_script

    async def fail(connection: Any, kind: ScriptKind, script_id: int) -> bool:
        if script_id == broken:
            raise ZeroDivisionError("nobody knows why")
        return await forget(connection, kind, script_id)

    monkeypatch.setattr(analysis, "forget_script", fail)
    await stand.entities.statistics.delete(SYSTEM, broken)
    await stand.entities.statistics.delete(SYSTEM, gone)
    stand.now_us += HOUR_US
    await stand.analysis.work()
    assert await stand.periods(gone, 1) == {}
    assert len(await stand.periods(broken, 1)) == 2
    assert stand.analysis.stats.failures == 1
    assert stand.analysis._context.progress.get(Job(ScriptKind.STATISTICS, sound, 3)).done_us == BEGIN_US + 3 * HOUR_US
    monkeypatch.setattr(analysis, "forget_script", forget)
    stand.now_us += late_work.REST_US
    await stand.analysis.work()
    assert await stand.periods(broken, 1) == {}


async def test_a_job_that_takes_the_database_too_long_comes_after_the_others(
    stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is due stays so while the store or the database is away; a statement may take too long for one alone."""
    (slow, _), (_, sound) = await working(stand), await working(stand)
    advance = stand.analysis._statistics.advance

    async def too_long(script: Any, job: Job, progress: Any) -> bool:
        if job.object_id == slow:
            raise Unavailable("a statement took longer than 10 s")
        return await advance(script, job, progress)

    monkeypatch.setattr(stand.analysis._statistics, "advance", too_long)
    stand.now_us += HOUR_US
    with pytest.raises(Unavailable):
        await stand.analysis.work()
    with pytest.raises(Unavailable):
        await stand.analysis.work()
    assert stand.analysis._context.progress.get(Job(ScriptKind.STATISTICS, sound, 2)).done_us == BEGIN_US + 3 * HOUR_US


# Marks


def commit(marks: LateMarks, *series: int, time_us: int) -> dict[str, bytes | None]:
    notes = marks.on_sealed([Record(f"m/{each}", time_us, b"") for each in series])
    marks.on_committed()
    return dict(notes)


async def test_marks_of_a_company_are_bounded_and_counted(tmp_path: Path) -> None:
    marks, stored = LateMarks(), dict[str, bytes | None]()
    for object_id in range(1, 101):
        await marks.fence(1, object_id, BEGIN_US)
    await marks.fence(2, 200, BEGIN_US)
    stored |= commit(marks, 200, time_us=BEGIN_US - 1)
    for number in range(1_000):
        stored |= commit(marks, *range(1, 101), time_us=BEGIN_US - 1 - 2 * QUARTER_US * number)
        assert len(marks.marked(1)) <= MOST_NOTES
        assert marks.kept()[1].bytes <= 150 * (2 * MOST_SPANS + 100)
    assert marks.kept()[2].items == 1
    kept = {name: body for name, body in stored.items() if body is not None}
    assert kept.keys() == marks.marked(1).keys() | marks.marked(2).keys(), "the store has what is in memory"
    again = LateMarks()
    again.load(kept)
    found = [span for some in again.marked(0).values() for span in some]
    whole = [span for span in found if span[0] < 0]
    assert {span[0] for span in whole} == {-1}
    for number in range(1_000):
        time_us = BEGIN_US - 1 - 2 * QUARTER_US * number
        assert any(object_id in (7, -1) and start_us <= time_us < end_us for object_id, start_us, end_us in found)
    assert [span for span in found if span[0] == 200] == [(200, BEGIN_US - QUARTER_US, BEGIN_US)]


async def test_a_company_with_too_many_marks_has_all_its_objects_computed_again(stand: AnalysisStand) -> None:
    (one, first), (other, second) = await working(stand), await working(stand)
    for object_id in (one, other):
        await stand.store.append([Record(f"m/{object_id}", BEGIN_US + 1, msgspec.msgpack.encode({"A": 1}))])
    note = msgspec.msgpack.encode([(-1, BEGIN_US, BEGIN_US + 2)])
    await stand.store.append([], notes={f"{PREFIX}{3:020}": note})
    await stand.open_analysis()
    await stand.analysis.work()
    assert (await stand.periods(first, 1))[BEGIN_US] == (await stand.periods(second, 1))[BEGIN_US] == {"N": 2}


async def test_marks_are_worked_off_company_by_company(stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, _), marks = await working(stand), stand.marks
    await marks.fence(2, 77, BEGIN_US)
    monkeypatch.setattr(late_work, "_SPANS_AT_ONCE", 2)
    taken = list[int]()

    async def note(object_id: int, spans: Any) -> bool:
        taken.append(object_id)
        return True

    monkeypatch.setattr(stand.analysis._late, "_has_worked", note)
    for number in range(6):
        await stand.report(one, [(BEGIN_US - number * HOUR_US, {"A": 1})])
    await stand.report(77, [(BEGIN_US - 1, {"A": 1})])
    await stand.analysis.work()
    assert taken == [one, 77, one, one]
    assert marks.companies() == []
