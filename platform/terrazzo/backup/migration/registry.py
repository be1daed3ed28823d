"""The registry from one database to another: each table in the order of its references, and the ids to come.

How far a table is stands in a table of the target, written in the transaction of its rows: whenever this is killed, it
goes on with the next row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.backup.migration.marker import Unmovable
from terrazzo.backup.migration.rows import Checksum, Key, key_of, pieces
from terrazzo.database.database import Database, connected
from terrazzo.database.entity import METADATA
from terrazzo.metadata.schema import ALL_TABLES

Tell = Callable[[str, int, int], None]
"""Told of progress: of what, how much is done, of how much."""

PROGRESS = sa.Table(
    "terrazzo_migration",
    sa.MetaData(),  # of its own: the schema has no such table
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""The table of a half-done target: the migration's ``id``, and by table the last key that is there."""

_ID = "id"
_BESIDE = {PROGRESS.name, "alembic_version", "terrazzo_leader", "terrazzo_position"}
_SEQUENCE = sa.text("SELECT pg_get_serial_sequence(:table, 'id')")


def ordered_tables() -> list[sa.Table]:
    """All tables, each behind those that it refers to."""
    known = {table.name for table in ALL_TABLES}
    return [table for table in METADATA.sorted_tables if table.name in known]


async def claim_database(url: str, data_dir: Path, migration_id: str) -> None:
    """Marks an empty database as the target of this migration; one that is marked so already stays as it is.

    Raises:
        Unmovable: there are tables in it, or it is another migration's.
        DatabaseUnusable: it can't be reached.
    """
    async with connected(url, data_dir=data_dir) as connection:
        names = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
        if not names:
            await connection.run_sync(PROGRESS.create)
            await connection.execute(PROGRESS.insert().values(name=_ID, value=migration_id))
            return
        found = await _value(connection, _ID) if PROGRESS.name in names else None
    if found != migration_id:
        whose = "is the target of another migration" if found else f"has tables already ({', '.join(names[:3])}, ...)"
        raise Unmovable(f"database.url of the target: the database {whose}; name an empty one")


async def _value(connection: AsyncConnection, name: str) -> str | None:
    query = sa.select(PROGRESS.c.value).where(PROGRESS.c.name == name)
    return (await connection.execute(query)).scalar_one_or_none()


async def copy_registry(source: AsyncConnection, target: Database, tell: Tell) -> None:
    """Copies what the target does not have yet of all tables, then the ids that come next.

    Raises:
        Unmovable: a value is not of its column's type; names it.
    """
    tables = ordered_tables()
    for done, table in enumerate(tables):
        tell("tables", done, len(tables))
        await _copy_table(source, target, table)
    used = await used_ids(source)
    async with target.writing() as connection:
        for name, last in used.items():
            await _use_ids(connection, name, last)
    tell("tables", len(tables), len(tables))


async def _copy_table(source: AsyncConnection, target: Database, table: sa.Table) -> None:
    async with target.reading() as connection:
        noted = await _value(connection, table.name)
    after: Key | None = None if noted is None else msgspec.json.decode(noted)
    async for rows in pieces(source, table, after):
        last = msgspec.json.encode(key_of(table, rows[-1])).decode()
        async with target.writing() as connection:
            await connection.execute(table.insert(), rows)
            if noted is None:
                await connection.execute(PROGRESS.insert().values(name=table.name, value=last))
            else:
                await connection.execute(PROGRESS.update().where(PROGRESS.c.name == table.name).values(value=last))
        noted = last


async def used_ids(connection: AsyncConnection) -> dict[str, int]:
    """The last id that each table has given out, 0 for none; a deleted record's is never given again."""
    names = [table.name for table in ordered_tables() if table.autoincrement_column is not None]
    if connection.dialect.name == "sqlite":
        rows = (await connection.execute(sa.text("SELECT name, seq FROM sqlite_sequence"))).all()
        found = {str(name): int(last) for name, last in rows}
        return {name: found.get(name, 0) for name in names}
    return {name: await _last_value(connection, await _sequence(connection, name)) for name in names}


async def _sequence(connection: AsyncConnection, name: str) -> str:
    return str((await connection.execute(_SEQUENCE, {"table": f'"{name}"'})).scalar_one())


async def _last_value(connection: AsyncConnection, sequence: str) -> int:
    # the name is the server's own, quoted by it
    query = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"  # nosec B608
    return int((await connection.execute(sa.text(query))).scalar_one())


async def _use_ids(connection: AsyncConnection, name: str, last: int) -> None:
    if connection.dialect.name == "sqlite":
        await connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": name})
        if last:
            insert = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
            await connection.execute(insert, {"name": name, "last": last})
        return
    given = {"sequence": await _sequence(connection, name), "last": max(last, 1), "used": last > 0}
    await connection.execute(sa.text("SELECT setval(CAST(:sequence AS regclass), :last, :used)"), given)


async def measure_registry(connection: AsyncConnection, tell: Tell, what: str) -> dict[str, tuple[int, str]]:
    """Of each table its rows and their checksum; computed the same way of any database."""
    measured: dict[str, tuple[int, str]] = {}
    tables: Sequence[sa.Table] = ordered_tables()
    for done, table in enumerate(tables):
        tell(what, done, len(tables))
        checksum = Checksum(table)
        async for rows in pieces(connection, table, None):
            checksum.add(rows)
        measured[table.name] = (checksum.rows, checksum.hex())
    tell(what, len(tables), len(tables))
    return measured


async def foreign_tables(connection: AsyncConnection) -> list[str]:
    """The tables of a database that this version doesn't know, and which therefore stay behind."""
    names: list[Any] = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
    return sorted(set(names) - {table.name for table in ALL_TABLES} - _BESIDE)


async def release_database(target: Database) -> None:
    """Removes the mark from a target that is complete."""
    async with target.writing() as connection:
        await connection.run_sync(lambda sync: PROGRESS.drop(sync, checkfirst=True))
