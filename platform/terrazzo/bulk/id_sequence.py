"""Explicit ids in imports of entities whose uid is the id: ids that were ever used are not used again."""

from __future__ import annotations

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection

FURTHEST_AHEAD = 1_000_000  # of the last id: so that no file uses up all ids


async def last_id(connection: AsyncConnection, table: sa.Table) -> int:
    """The highest id that the table ever gave, also to records deleted since."""
    if connection.dialect.name == "postgresql":
        query = sa.text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(table)}")  # ours  # nosec B608
        return int((await connection.execute(query)).scalar_one())
    query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name").bindparams(name=table.name)
    return int((await connection.execute(query)).scalar() or 0)


async def go_on_after(connection: AsyncConnection, table: sa.Table) -> None:
    """Raises PostgreSQL's sequence above ids that were inserted explicitly; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        name = _sequence(table)
        given = sa.select(sa.func.max(table.c.id)).scalar_subquery()
        last = sa.select(sa.literal_column("last_value")).select_from(sa.text(name)).scalar_subquery()
        await connection.execute(sa.select(sa.func.setval(name, sa.func.greatest(given, last))))


def _sequence(table: sa.Table) -> str:
    """PostgreSQL's name for the sequence of a table's id, quoted."""
    return f'"{table.name}_id_seq"'
