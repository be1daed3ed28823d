"""Numbers of records that a file brings along, where the number is the record's key: never one that was used before."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

FURTHEST_AHEAD = 1_000_000  # of the last number: nobody uses up all of them


async def last_id(connection: AsyncConnection, table: sa.Table) -> int:
    """The highest id that a table ever gave, to records long deleted too."""
    if connection.dialect.name == "postgresql":
        query = sa.text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(table)}")
        return int((await connection.execute(query)).scalar_one())
    query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name").bindparams(name=table.name)
    return int((await connection.execute(query)).scalar() or 0)


async def go_on_after(connection: AsyncConnection, table: sa.Table) -> None:
    """Has the table number on after the ids that were given explicitly; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        name = _sequence(table)
        given = sa.select(sa.func.max(table.c.id)).scalar_subquery()
        last = sa.select(sa.literal_column("last_value")).select_from(sa.text(name)).scalar_subquery()
        await connection.execute(sa.select(sa.func.setval(name, sa.func.greatest(given, last))))


def _sequence(table: sa.Table) -> str:
    """PostgreSQL's own name of a numbered column's sequence; the table's name is ours."""
    return f'"{table.name}_id_seq"'
