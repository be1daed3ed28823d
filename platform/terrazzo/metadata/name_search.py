"""Searching in names on PostgreSQL: an index of trigrams, where the server has the extension ``pg_trgm``.

It is no part of the schema: a server that has it answers ``like`` on long lists without reading them all, another one
answers the same, later.
"""

from __future__ import annotations

import logging

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

_log = logging.getLogger(__name__)

PREFIX = "trigrams_"  # of the indexes' names
_SEARCHED = ("terminal", "object")  # the lists that grow long


async def ensure_name_search(engine: AsyncEngine) -> None:
    """Makes the indexes that are missing; a database of another kind has none."""
    if engine.dialect.name != "postgresql":
        return
    try:
        async with engine.begin() as connection:
            await connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            for table in _SEARCHED:
                index = f"CREATE INDEX IF NOT EXISTS {PREFIX}{table}_name ON {table} USING gin (name gin_trgm_ops)"
                await connection.execute(sa.text(index))
    except DBAPIError as error:
        _log.info("searching in names takes longer than it could: no extension pg_trgm: %s", error.orig)
