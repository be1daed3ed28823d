"""What is special about service and offline records: the platform notes when they were made."""

from __future__ import annotations

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.entity import Entity
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.calendar_days import Days, tally_by_day
from terrazzo.metadata.repositories.repository import Draft, EntityRepository


class StampedRepository(EntityRepository):
    """Records with a time of their own, which is that of their creation."""

    def __init__(self, entity: Entity, stamp: str, **parts: Any) -> None:
        """``stamp``: the column of the time."""
        super().__init__(entity, **parts)
        self._stamp = stamp

    async def tally(self, actor: Actor, days: Days, conditions: Conditions, *, by: str) -> dict[tuple[Any, ...], int]:
        """How many records there are of each day and each value of the column ``by``: ``(day, value)`` to count."""
        where = [*self._visible(actor), *self._selection.where(conditions)]
        async with self._database.reading() as connection:
            return await tally_by_day(connection, self.table.c[self._stamp], days, where, self.table.c[by])

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        if before is None:
            draft[self._stamp] = self._clock()
