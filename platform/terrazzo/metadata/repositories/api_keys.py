"""The repository of API keys: users see and delete their own, administrators those of their company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import EVERYTHING, Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import QuotaExceeded
from terrazzo.metadata.company_limits import Limit
from terrazzo.metadata.definitions.access import API_KEY
from terrazzo.metadata.quotas import RecordQuotas, UseMeter
from terrazzo.metadata.repositories.repository import Draft, EntityRepository

MOST_OF_USER = 50  # so that one user can't take the company's share


class ApiKeyRepository(EntityRepository):
    """API keys, which are stored as hashes. ``of_company``: how many a company may have."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(API_KEY, **parts)
        self.of_company = 1_000

    async def create_hashed(self, actor: Actor, values: Mapping[str, Any], internal: Draft) -> Row:
        """Stores a key of the actor's.

        Args:
            values: what the user has chosen.
            internal: hash, prefix and expiry.

        Raises:
            QuotaExceeded: the user or the company has as many as they may.
        """
        owner = {"user_id": actor.user_id, "username": actor.username}
        return await self._create(actor, values, {**internal, **owner})

    async def note_uses(self, used_us: Mapping[int, int]) -> None:
        """Writes when keys were used last, by their ids, unless another process has written later; UTC microseconds."""
        ids, times, used = self.table.c.id, self.table.c.last_used, sa.bindparam("used_us", type_=sa.BigInteger)
        earlier = sa.or_(times.is_(None), times < used)
        statement = self.table.update().where(ids == sa.bindparam("key_id"), earlier).values({times: used})
        rows = [{"key_id": key_id, "used_us": time_us} for key_id, time_us in used_us.items()]
        async with self._database.writing() as connection:
            await connection.execute(statement, rows)

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        if before is not None:
            return
        columns = self.table.c
        of_company = self._quotas.own.limit(actor.company_id, "api_keys", self.of_company)
        for mine, limit in (
            (columns.user_id == actor.user_id, Limit(MOST_OF_USER, "for each user")),
            (columns[COMPANY] == actor.company_id, of_company),
        ):
            has = (await connection.execute(sa.select(sa.func.count()).where(mine))).scalar_one()
            if has >= limit.most:
                raise QuotaExceeded("api_key", has + 1, limit.most, "API keys", limit.key)

    def _visible(self, actor: Actor, beside: Conditions = EVERYTHING) -> list[sa.ColumnElement[bool]]:
        seen = super()._visible(actor, beside)
        return seen if actor.may(Role.ADMIN) else [*seen, self.table.c.user_id == actor.user_id]

    def _sees(self, actor: Actor, row: Row) -> bool:
        return super()._sees(actor, row) and (actor.may(Role.ADMIN) or row["user_id"] == actor.user_id)


async def remove_keys_of(connection: AsyncConnection, user_id: int, quotas: RecordQuotas) -> None:
    """Deletes the keys of a user who is being deleted, in the same transaction."""
    table = API_KEY.table
    ids: Sequence[int] = (
        (await connection.execute(sa.select(table.c.id).where(table.c.user_id == user_id))).scalars().all()
    )
    meter = UseMeter(API_KEY, quotas)
    await meter.take(connection, ids)
    await connection.execute(table.delete().where(table.c.user_id == user_id))
    await meter.settle(connection)
