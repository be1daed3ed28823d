"""How far each script has come on each object, and what is to be computed again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.analysis.scripts import Job, Script, ScriptKind
from terrazzo.async_engine import AsyncConnection
from terrazzo.database.tables.analysis import ANALYSIS_PROGRESS, ANALYSIS_TODO

_AT_ONCE = 500


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


async def load_progress(connection: AsyncConnection) -> dict[Job, ScriptProgress]:
    """Reads from the database how far every job has come."""
    rows = (await connection.execute(sa.select(ANALYSIS_PROGRESS))).all()
    return {
        Job(ScriptKind(row.kind), row.script_id, row.object_id): ScriptProgress(
            digest=row.digest, origin_us=row.origin_us, done_us=row.done_us
        )
        for row in rows
    }


async def save_progress(connection: AsyncConnection, script: Script, job: Job, progress: ScriptProgress) -> None:
    """Writes how far a job has come, in the transaction that writes the results up to there."""
    table = ANALYSIS_PROGRESS
    mine = _of_job(table, job)
    values = msgspec.structs.asdict(progress)
    changed = await connection.execute(table.update().where(*mine).values(**values))
    if not changed.rowcount:
        named = {"company_id": script.company_id, "script_uid": script.uid}
        await connection.execute(table.insert().values(**job._asdict(), **named, **values))


async def add_todo(connection: AsyncConnection, job: Job, start_us: int, end_us: int) -> None:
    """A range to compute again; ranges of a job that touch become one."""
    table = ANALYSIS_TODO
    touching = [*_of_job(table, job), table.c.start_us <= end_us, table.c.end_us >= start_us]
    rows = (await connection.execute(sa.select(table).where(*touching))).all()
    if rows:
        start_us, end_us = min(start_us, *(row.start_us for row in rows)), max(end_us, *(row.end_us for row in rows))
        await connection.execute(table.delete().where(*touching))
    await connection.execute(table.insert().values(**job._asdict(), start_us=start_us, end_us=end_us))


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


async def next_todos(connection: AsyncConnection, jobs: Iterable[Job]) -> list[Todo]:
    """The oldest that belong to one of these jobs, at most one a job; the first of each company, then the second."""
    wanted, found = set(jobs), dict[Job, Todo]()
    todo, progress = ANALYSIS_TODO.c, ANALYSIS_PROGRESS.c
    same = sa.and_(*(todo[name] == progress[name] for name in Job._fields))
    turn = sa.func.row_number().over(partition_by=progress.company_id, order_by=todo.id).label("turn")
    ranked = sa.select(ANALYSIS_TODO, turn).select_from(ANALYSIS_TODO.outerjoin(ANALYSIS_PROGRESS, same)).subquery()
    query, first = sa.select(ranked).order_by(ranked.c.turn, ranked.c.id).limit(_AT_ONCE), 0
    while not found and (rows := (await connection.execute(query.offset(first))).all()):
        first += len(rows)
        for row in rows:
            job = Job(ScriptKind(row.kind), row.script_id, row.object_id)
            if job in wanted:
                found.setdefault(job, Todo(row.id, job, row.start_us, row.end_us))
    return list(found.values())


def _of_job(table: sa.Table, job: Job) -> list[sa.ColumnElement[bool]]:
    return [table.c.kind == job.kind, table.c.script_id == job.script_id, table.c.object_id == job.object_id]
