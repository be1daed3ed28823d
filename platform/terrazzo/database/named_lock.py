"""Whose turn it is: what reads before it writes, where two at once would both find nothing and both write."""

from __future__ import annotations

from hashlib import blake2b

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection


async def take_turn(connection: AsyncConnection, what: str) -> None:
    """Waits until nobody else has the turn of this name, and has it until the transaction ends.

    SQLite has one writer at a time anyway; PostgreSQL has as many as come, and doesn't show one what another has not
    committed yet.
    """
    if connection.dialect.name != "postgresql":
        return
    key = int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "big", signed=True)
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))
