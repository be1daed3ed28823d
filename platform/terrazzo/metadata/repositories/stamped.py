"""The repository of service and offline records, which show the time of their creation in a column of their own."""

from __future__ import annotations

from typing import Any

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import Entity
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor
from terrazzo.domain.calendar_days import Days, tally_by_day
from terrazzo.metadata.repositories.repository import Draft, EntityRepository


class StampedRepository(EntityRepository):
    """Records with a time column that is set at creation (``service_at``, ``collect_at``)."""

    def __init__(self, entity: Entity, stamp: str, **parts: Any) -> None:
        """``stamp``: the name of the time column."""
        super().__init__(entity, **parts)
        self._stamp = stamp

    async def tally(self, actor: Actor, days: Days, conditions: Conditions, *, by: str) -> dict[tuple[Any, ...], int]:
        """Counts records by day and by the values of the column ``by``.

        Returns:
            ``(day, value)`` to count; ``day`` is a place in ``days``.
        """
        where = [*self._visible(actor, conditions), *self._selection.where(conditions)]
        async with self._database.reading() as connection:
            return await tally_by_day(connection, self.table.c[self._stamp], days, where, self.table.c[by])

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        if before is None:
            draft[self._stamp] = self._clock()
