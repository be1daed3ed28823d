"""The repository of claim keys: their hashes are kept, and their uses are counted with the terminals that come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.changes import record_change
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict
from terrazzo.metadata.definitions.registry import CLAIM_KEY
from terrazzo.metadata.repositories.repository import EntityRepository
from terrazzo.reasons import say


class ClaimKeyRepository(EntityRepository):
    """The claim keys."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(CLAIM_KEY, **parts)

    async def create_hashed(self, actor: Actor, values: Mapping[str, Any], key_hash: str) -> Row:
        """Stores a new claim key, of which only the hash is known."""
        return await self._create(actor, values, {"key_hash": key_hash})


async def count_use(connection: AsyncConnection, key_id: int, now_us: int) -> None:
    """Counts a use of a claim key, in the transaction of the terminal that comes in by it.

    Raises:
        Conflict: it has none left, or is disabled, expired or deleted.
    """
    table = CLAIM_KEY.table
    is_good = sa.and_(
        table.c.used < table.c.uses,
        table.c.is_available == 1,
        sa.or_(table.c.expires.is_(None), table.c.expires > now_us),
    )
    statement = table.update().where(table.c.id == key_id, is_good).values(used=table.c.used + 1)
    uid = (await connection.execute(statement.returning(table.c.uid))).scalar()
    if uid is None:
        raise Conflict(say("claim_key_used_up"))
    await record_change(connection, MetadataChange(CLAIM_KEY.name, key_id, uid))
