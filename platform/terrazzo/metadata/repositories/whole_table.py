"""Reads all of a table a column at a time: what a start fills memory with.

Some thousand rows are one row of an answer, in which each column is a JSON array: the database makes it, SQLite in its
connection's thread and without the interpreter's lock, while the rows before it are looked at here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database

_decode = msgspec.json.Decoder().decode


async def columns_of(
    database: Database, table: sa.Table, names: Sequence[str], *, at_once: int
) -> AsyncIterator[list[list[Any]]]:
    """The stored values of these columns, by column, of ``at_once`` rows at a time, in order of ``id``.

    ``names`` begins with ``id``. The next rows are asked for as soon as some are here, and read while whoever takes
    these lets the loop go on. Columns of fractions would lose their last digits: no entity has one.
    """
    rows = sa.select(*(table.c[name] for name in names)).order_by(table.c.id).limit(at_once)
    async with database.reading() as connection:
        reading = _begin(connection, rows, 0)
        try:
            while (columns := await reading)[0]:
                reading = _begin(connection, rows, max(columns[0]))
                await asyncio.sleep(0)  # it begins before these are looked at
                yield columns
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


def _begin(connection: AsyncConnection, rows: sa.Select[Any], after: int) -> asyncio.Task[list[list[Any]]]:
    return asyncio.create_task(_next_columns(connection, rows, after), name="the next rows of all")


async def _next_columns(connection: AsyncConnection, rows: sa.Select[Any], after: int) -> list[list[Any]]:
    found = rows.where(rows.selected_columns[0] > after).subquery()
    arrays = (await connection.execute(sa.select(*map(_Array, found.c)))).one()
    return [_decode(each or "[]") for each in arrays]


class _Array(FunctionElement[str]):
    """All values of a column as the text of a JSON array; null where there are none, on PostgreSQL."""

    name = "array"
    inherit_cache = True
    type = sa.Text()


@compiles(_Array)
def _on_postgresql(element: _Array, compiler: Any, **options: Any) -> str:
    return f"CAST(json_agg({compiler.process(element.clauses, **options)}) AS text)"


@compiles(_Array, "sqlite")
def _on_sqlite(element: _Array, compiler: Any, **options: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **options)})"
