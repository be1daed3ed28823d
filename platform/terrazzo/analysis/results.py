"""Results in the database: written once for each period, written over when it is computed again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.analysis.periods import Calendar, Period, PeriodType
from terrazzo.analysis.scripts import Job, Script, ScriptKind
from terrazzo.analysis.tally import Summary, decode_summary, encode_summary
from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.field import storable_text
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.analysis import (
    ANALYSIS_PROGRESS,
    ANALYSIS_TODO,
    BALANCE_RESULT,
    CALCULATE_RESULT,
    STATISTICS_RESULT,
)
from terrazzo.database.tables.analysis import STATISTICS_PERIOD as PERIOD
from terrazzo.database.upsert import insert_into
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mosaic.body import text_of
from terrazzo.ports.store import Value

VARIABLES = {ScriptKind.STATISTICS: STATISTICS_RESULT, ScriptKind.CALCULATE: CALCULATE_RESULT}
"""The tables with a row for each variable."""

_AT_ONCE = 200  # rows of one statement: SQLite binds at most 32,766 values
_FORGOTTEN_AT_ONCE = 5_000


class Variable(msgspec.Struct):
    """One variable of a period's record: an element of its ``data``."""

    var_name: str
    value: Value


class Summarized(NamedTuple):
    """A finished period with the summary of each variable in it."""

    period: Period
    summary: Summary


_PERIOD_KEY = ("script_id", "object_id", "type", "start_time")
_variables = msgspec.json.Decoder(list[Variable])


def encode_variables(values: Mapping[str, Value]) -> str:
    """The JSON text that a period's record shows."""
    return msgspec.json.encode([Variable(*each) for each in values.items()]).decode()


def decode_variables(data: str) -> dict[str, Value]:
    """The variables of a period."""
    return {each.var_name: each.value for each in _variables.decode(data)}


class ResultRows(NamedTuple):
    """The rows of a table for a job's periods of one type that begin in ``span``; others of it are no more."""

    table: sa.Table
    span: Period
    rows: Sequence[Mapping[str, Any]]


class ResultMaker:
    """Makes the rows of one job's results, in turns of the event loop: before the database's writer is taken.

    Args:
        now_us: the time of creation.
    """

    def __init__(self, script: Script, job: Job, *, calendar: Calendar, now_us: int) -> None:
        self._script = script
        self._job = job
        self._calendar = calendar
        self._now_us = now_us

    async def summaries(self, span: Period, found: Sequence[Summarized]) -> list[ResultRows]:
        """The periods of ``span``'s type that begin in it, and a row for each of their variables."""
        values: dict[Period, Mapping[str, Value]] = {}
        rows, pauses = [], LoopPauses()
        for period, summary in found:
            named = values[period] = self._script.body.values(summary)
            await pauses.pause()
            data = encode_variables(named)
            await pauses.pause()
            rows.append(
                {**self._named(period), "data": data, "summary": encode_summary(summary), "created": self._now_us}
            )
            await pauses.pause()
        return [ResultRows(PERIOD, span, rows), await self.values(span, values)]

    async def values(self, span: Period, values: Mapping[Period, Mapping[str, Value]]) -> ResultRows:
        """A row for each variable of each period; variables that the script doesn't have any more go."""
        rows: list[Mapping[str, Any]] = []
        pauses = LoopPauses()
        for period, named in values.items():
            described = self._calendar.describe(period.type, period.start_us)
            said = {**self._named(period), "description": described, "created": self._now_us, "is_available": 1}
            for name, value in named.items():
                rows.append({**said, "var_name": name, "data": storable_text(text_of(value) or "")})
                await pauses.pause()
        return ResultRows(VARIABLES[self._script.kind], span, rows)

    def _named(self, period: Period) -> dict[str, Any]:
        return {
            "company_id": self._script.company_id,
            "script_id": self._script.id,
            "script_uid": self._script.uid,
            "object_id": self._job.object_id,
            "type": int(period.type),
            "start_time": period.start_us,
            "end_time": period.end_us,
        }


async def write_results(connection: AsyncConnection, job: Job, results: Iterable[ResultRows]) -> None:
    """Writes rows over those that are there, and deletes what is no more."""
    for table, span, rows in results:
        inside = _beginning_in(table, job, span)
        await _clear(connection, table, inside, {row["start_time"] for row in rows})
        if table is PERIOD:
            await _upsert(connection, table, rows, _PERIOD_KEY)
            continue
        if names := {row["var_name"] for row in rows}:
            await connection.execute(table.delete().where(*inside, sa.not_(one_of(table.c.var_name, names))))
        await _upsert(connection, table, rows, (*_PERIOD_KEY, "var_name"))


async def write_balances(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes one balance record for each window, over those that are there."""
    await _upsert(connection, BALANCE_RESULT, rows, ("project_id", "object_id", "start_time"))


async def _clear(
    connection: AsyncConnection, table: sa.Table, inside: Sequence[sa.ColumnElement[bool]], kept: Collection[int]
) -> None:
    """Deletes the records of periods that have no values any more; ``kept``: where the others begin."""
    query = sa.select(table.c.start_time).where(*inside).distinct()
    gone = [start_us for start_us in (await connection.execute(query)).scalars() if start_us not in kept]
    for some in _pieces(gone):
        await connection.execute(table.delete().where(*inside, one_of(table.c.start_time, some)))


async def _upsert(
    connection: AsyncConnection, table: sa.Table, rows: Sequence[Mapping[str, Any]], key: Sequence[str]
) -> None:
    """Inserts rows; those whose key is there already are written over and keep their id."""
    if not rows:
        return
    statement = insert_into(connection.dialect.name, table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in key}
    statement = statement.on_conflict_do_update(index_elements=list(key), set_=changed)
    for some in _pieces(rows):
        await connection.execute(statement, [dict(row) for row in some])


async def read_summaries(database: Database, job: Job, spans: Iterable[Period]) -> list[Summarized]:
    """The stored periods that lie within spans of their type, in order of time; read in turns of the event loop."""
    any_of = [
        sa.and_(PERIOD.c.type == span.type, PERIOD.c.start_time >= span.start_us, PERIOD.c.end_time <= span.end_us)
        for span in spans
    ]
    mine = (PERIOD.c.script_id == job.script_id, PERIOD.c.object_id == job.object_id)
    query = sa.select(PERIOD.c.type, PERIOD.c.start_time, PERIOD.c.end_time, PERIOD.c.summary)
    async with database.reading() as connection:
        rows = (await connection.execute(query.where(*mine, sa.or_(*any_of)).order_by(PERIOD.c.start_time))).all()
    found, pauses = list[Summarized](), LoopPauses()
    for row in rows:
        period = Period(PeriodType(row.type), row.start_time, row.end_time)
        found.append(Summarized(period, decode_summary(row.summary)))
        await pauses.pause()
    return found


async def read_variables(
    database: Database, company_id: int, object_id: int, span: Period
) -> dict[Period, dict[str, Value]]:
    """All statistics of an object by period, of those of ``span``'s type that begin in it; read in turns of the loop.

    Where scripts have a variable of the same name, that of the one that was made first counts.
    """
    query = sa.select(PERIOD.c.type, PERIOD.c.start_time, PERIOD.c.end_time, PERIOD.c.data).where(
        PERIOD.c.company_id == company_id,
        PERIOD.c.object_id == object_id,
        PERIOD.c.type == span.type,
        PERIOD.c.start_time >= span.start_us,
        PERIOD.c.start_time < span.end_us,
    )
    async with database.reading() as connection:
        rows = (await connection.execute(query.order_by(PERIOD.c.start_time, PERIOD.c.script_id))).all()
    found, pauses = dict[Period, dict[str, Value]](), LoopPauses()
    for row in rows:
        period = Period(PeriodType(row.type), row.start_time, row.end_time)
        found[period] = {**decode_variables(row.data), **found.get(period, {})}
        await pauses.pause()
    return found


async def forget_script(connection: AsyncConnection, kind: ScriptKind, script_id: int) -> bool:
    """Deletes some of what is left of a deleted script; True when nothing is."""
    tables = {
        ScriptKind.STATISTICS: (PERIOD, STATISTICS_RESULT),
        ScriptKind.CALCULATE: (CALCULATE_RESULT,),
        ScriptKind.BALANCE: (BALANCE_RESULT,),
    }[kind]
    for table in (*tables, ANALYSIS_TODO, ANALYSIS_PROGRESS):
        mine = [(table.c.project_id if table is BALANCE_RESULT else table.c.script_id) == script_id]
        mine += [table.c.kind == kind.value] if "kind" in table.c else []
        some = sa.select(table.c.id).where(*mine).limit(_FORGOTTEN_AT_ONCE)
        if (await connection.execute(table.delete().where(table.c.id.in_(some)))).rowcount == _FORGOTTEN_AT_ONCE:
            return False
    return True


def _beginning_in(table: sa.Table, job: Job, span: Period) -> list[sa.ColumnElement[bool]]:
    return [
        table.c.script_id == job.script_id,
        table.c.object_id == job.object_id,
        table.c.type == span.type,
        table.c.start_time >= span.start_us,
        table.c.start_time < span.end_us,
    ]


def _pieces(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE))
