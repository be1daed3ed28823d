"""Finds a company's terminals by many uids or ids at once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.one_of import one_of
from terrazzo.metadata.definitions.registry import TERMINAL


async def company_terminals(
    connection: AsyncConnection, column: str, keys: list[int] | list[str], company: int
) -> dict[int, str]:
    """The uids, by id, of the company's terminals that have these keys in a unique column.

    The company is compared here: in the statement SQLite takes it for the narrower condition, and reads all of its
    terminals.
    """
    if not keys:
        return {}
    table = TERMINAL.table
    query = sa.select(table.c.id, table.c.uid, table.c[TERMINAL.company].label("company"))
    found = await connection.execute(query.where(one_of(table.c[column], keys)))
    return {row.id: row.uid for row in found if row.company == company}
