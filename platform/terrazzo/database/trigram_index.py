"""Trigram indexes for searching in names, on PostgreSQL servers that have the extension ``pg_trgm``.

They are no part of the schema: with them ``like`` on long lists doesn't read every row; without them the answers are
the same, only slower.
"""

from __future__ import annotations

import logging

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from terrazzo.async_engine import AsyncEngine

_log = logging.getLogger(__name__)

PREFIX = "trigrams_"  # of the indexes' names
_SEARCHED = ("terminal", "object")  # the lists that grow long
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


async def ensure_name_search(engine: AsyncEngine) -> None:
    """Creates the indexes that are missing; does nothing on SQLite.

    The indexes have the collation of the conditions, ``"C"``: PostgreSQL uses no other for them. They lower letters by
    the database's locale, conditions by English rules; where these differ (Turkish) no index is made.
    """
    if engine.dialect.name != "postgresql":
        return
    try:
        async with engine.begin() as connection:
            lowered = (await connection.execute(sa.select(sa.func.lower(_LETTERS)))).scalar()
            if lowered != _LETTERS.lower():
                return
            await connection.execute(sa.text("SET LOCAL lock_timeout = '5s'"))  # the index can come later
            await connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            for table in _SEARCHED:
                await connection.execute(sa.text(f"DROP INDEX IF EXISTS {PREFIX}{table}_name"))  # had another collation
                name = f"{PREFIX}{table}_name_c"
                index = f'CREATE INDEX IF NOT EXISTS {name} ON {table} USING gin (name COLLATE "C" gin_trgm_ops)'
                await connection.execute(sa.text(index))
    except DBAPIError as error:
        _log.info("searching in names takes longer than it could: no extension pg_trgm: %s", error.orig)
