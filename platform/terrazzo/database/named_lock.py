"""Named locks across processes, for transactions that read before they write (two at once would both find nothing)."""

from __future__ import annotations

from hashlib import blake2b

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection


async def take_turn(connection: AsyncConnection, what: str) -> None:
    """Waits for the lock with this name; the transaction holds it until it ends.

    PostgreSQL needs it, because transactions don't see what others have not committed yet. SQLite has one writer at a
    time anyway.
    """
    if connection.dialect.name != "postgresql":
        return
    key = int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "big", signed=True)
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))
