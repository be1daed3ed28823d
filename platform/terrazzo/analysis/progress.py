"""How far each script has come on each object, and what is to be computed again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.analysis.scripts import Job, Script, ScriptKind
from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.analysis import ANALYSIS_PROGRESS, ANALYSIS_TODO
from terrazzo.loop_pauses import LoopPauses

MOST_RANGES = 500  # that are added in one transaction
_AT_ONCE = 500
_KINDS = [kind.value for kind in ScriptKind]  # what a later version may have left beside is not this one's


class ScriptProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Results begin at ``origin_us`` and are complete up to ``done_us``."""

    digest: str
    origin_us: int
    done_us: int


class Todo(NamedTuple):
    """A time range, in UTC microseconds, whose finished periods are to be computed again."""

    id: int
    job: Job
    start_us: int
    end_us: int


async def saved_progress(database: Database) -> AsyncIterator[tuple[int, Job, ScriptProgress]]:
    """How far every job of each company has come; some are read at a time, and nothing is held in between."""
    table, last, pauses = ANALYSIS_PROGRESS, 0, LoopPauses()
    while True:
        query = sa.select(table).where(table.c.id > last, one_of(table.c.kind, _KINDS)).order_by(table.c.id)
        async with database.reading() as connection:
            rows = (await connection.execute(query.limit(_AT_ONCE))).all()
        for row in rows:
            job = Job(ScriptKind(row.kind), row.script_id, row.object_id)
            yield row.company_id, job, ScriptProgress(digest=row.digest, origin_us=row.origin_us, done_us=row.done_us)
            await pauses.pause()
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1].id


async def save_progress(connection: AsyncConnection, script: Script, job: Job, progress: ScriptProgress) -> None:
    """Writes how far a job has come, in the transaction that writes the results up to there."""
    table = ANALYSIS_PROGRESS
    mine = _of_job(table, job)
    values = msgspec.structs.asdict(progress)
    changed = await connection.execute(table.update().where(*mine).values(**values))
    if not changed.rowcount:
        named = {"company_id": script.company_id, "script_uid": script.uid}
        await connection.execute(table.insert().values(**job._asdict(), **named, **values))


class JobRange(NamedTuple):
    """A time range of a job, in UTC microseconds, whose finished periods have to be computed again."""

    job: Job
    start_us: int
    end_us: int


async def add_todos(connection: AsyncConnection, ranges: Sequence[JobRange]) -> None:
    """Ranges to compute again, at most ``MOST_RANGES``; those of a job that touch become one, a new one.

    New also where one that is there has all of it: that may be under way, on what was there before.
    """
    if not ranges:
        return
    table, wanted = ANALYSIS_TODO, _by_job(ranges)
    near = [
        one_of(table.c.kind, {job.kind.value for job in wanted}),
        one_of(table.c.script_id, {job.script_id for job in wanted}),
        one_of(table.c.object_id, {job.object_id for job in wanted}),
        table.c.start_us <= max(each.end_us for each in ranges),
        table.c.end_us >= min(each.start_us for each in ranges),
    ]
    there: dict[Job, list[tuple[int, int, int]]] = {}
    for row in await connection.execute(sa.select(table).where(*near).order_by(table.c.start_us)):
        job = Job(ScriptKind(row.kind), row.script_id, row.object_id)
        there.setdefault(job, []).append((row.start_us, row.end_us, row.id))
    gone: list[int] = []
    rows: list[dict[str, Any]] = []
    for job, some in wanted.items():
        found, ids = _with_touching(some, there.get(job, ()))
        gone += ids
        rows += [{**job._asdict(), "start_us": start_us, "end_us": end_us} for start_us, end_us in found]
    if gone:
        await connection.execute(table.delete().where(one_of(table.c.id, gone)))
    await connection.execute(table.insert(), rows)


def _by_job(ranges: Iterable[JobRange]) -> dict[Job, list[tuple[int, int]]]:
    """The ranges of each job in order of time, those that touch joined."""
    found: dict[Job, list[tuple[int, int]]] = {}
    for job, start_us, end_us in sorted(ranges):
        mine = found.setdefault(job, [])
        if mine and start_us <= mine[-1][1]:
            mine[-1] = (mine[-1][0], max(mine[-1][1], end_us))
        else:
            mine.append((start_us, end_us))
    return found


def _with_touching(
    ranges: Iterable[tuple[int, int]], there: Sequence[tuple[int, int, int]]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Ranges with what they touch of those that are there (from, to, id), and the ids of these. Both in order of time.

    Those that are there don't touch each other.
    """
    found: list[tuple[int, int]] = []
    ids: list[int] = []
    at = 0
    for start_us, end_us in ranges:
        while at < len(there) and there[at][1] < start_us:
            at += 1
        while at < len(there) and there[at][0] <= end_us:
            start_us, end_us = min(start_us, there[at][0]), max(end_us, there[at][1])
            ids.append(there[at][2])
            at += 1
        if found and start_us <= found[-1][1]:  # the one before has grown up to here
            start_us, end_us = found[-1][0], max(end_us, found.pop()[1])
        found.append((start_us, end_us))
    return found, ids


async def finish_todo(connection: AsyncConnection, todo: Todo, done_us: int) -> None:
    """Notes that a range to be computed again is done up to here, or removes it at its end."""
    mine = ANALYSIS_TODO.c.id == todo.id
    if done_us >= todo.end_us:
        await connection.execute(ANALYSIS_TODO.delete().where(mine))
    else:
        await connection.execute(ANALYSIS_TODO.update().where(mine).values(start_us=done_us))


class Remaining(NamedTuple):
    """What is still to be computed again on an object: so many ranges from first to last, and how long they are."""

    object_id: int
    start_us: int
    end_us: int
    ranges: int
    length_us: int


async def remaining_todos(connection: AsyncConnection, kind: ScriptKind, script_id: int) -> list[Remaining]:
    """What a script has still to compute again, an object each, by its id."""
    todo = ANALYSIS_TODO.c
    length_us = sa.func.sum(todo.end_us - todo.start_us)
    query = (
        sa.select(todo.object_id, sa.func.min(todo.start_us), sa.func.max(todo.end_us), sa.func.count(), length_us)
        .where(todo.kind == kind, todo.script_id == script_id)
        .group_by(todo.object_id)
        .order_by(todo.object_id)
    )
    rows = (await connection.execute(query)).all()
    return [Remaining(row[0], row[1], row[2], row[3], int(row[4])) for row in rows]


async def next_todos(connection: AsyncConnection, is_wanted: Callable[[Job], bool]) -> list[Todo]:
    """The oldest of jobs that are wanted, at most one a job; the first of each company, then the second."""
    found = dict[Job, Todo]()
    todo, progress = ANALYSIS_TODO.c, ANALYSIS_PROGRESS.c
    same = sa.and_(*(todo[name] == progress[name] for name in Job._fields))
    turn = sa.func.row_number().over(partition_by=progress.company_id, order_by=todo.id).label("turn")
    joined = ANALYSIS_TODO.outerjoin(ANALYSIS_PROGRESS, same)
    ranked = sa.select(ANALYSIS_TODO, turn).select_from(joined).where(one_of(todo.kind, _KINDS)).subquery()
    query, first = sa.select(ranked).order_by(ranked.c.turn, ranked.c.id).limit(_AT_ONCE), 0
    while not found and (rows := (await connection.execute(query.offset(first))).all()):
        first += len(rows)
        for row in rows:
            job = Job(ScriptKind(row.kind), row.script_id, row.object_id)
            if job not in found and is_wanted(job):
                found[job] = Todo(row.id, job, row.start_us, row.end_us)
    return list(found.values())


def _of_job(table: sa.Table, job: Job) -> list[sa.ColumnElement[bool]]:
    return [table.c.kind == job.kind, table.c.script_id == job.script_id, table.c.object_id == job.object_id]
