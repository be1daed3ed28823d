"""``CompanyRecords``: pages, single records and counts of tables that are no entities (events, messages, ...)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.entity import past
from terrazzo.database.field import MAX_INTEGER, Field
from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.database.unindexed import beside
from terrazzo.domain.actor import Actor
from terrazzo.domain.calendar_days import Days, tally_by_day
from terrazzo.errors import NotFound


class CompanyRecords:
    """Reads one table of events, labels, messages, results or the like; an actor sees the own company's rows.

    Args:
        fields: the columns that conditions may name.
        moment: the column of the time by which pages are ordered and days counted (UTC microseconds).
        zone: the time zone of times without an offset in conditions.
        derived: SQL expressions for names in conditions that aren't columns.
    """

    def __init__(
        self,
        database: Database,
        table: sa.Table,
        fields: tuple[Field, ...],
        *,
        moment: str,
        zone: tzinfo,
        derived: Mapping[str, sa.ColumnElement[Any]] | None = None,
    ) -> None:
        self.table = table
        self.zone = zone
        self._database = database
        self._moment = moment
        firsts = {next(iter(index.columns)).name for index in table.indexes}
        self._narrow = {"id", *(name for name in firsts if name.endswith("_id") and name != "company_id")}
        self._selection = Selection(past(table, fields, moment=moment), {}, zone, derived=derived)

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,
    ) -> Rows:
        """One page, newest first unless ``order_by`` (column, descending) says otherwise, and the exact total.

        Raises:
            BadParameter: an unknown column, or a value that doesn't suit it.
        """
        where = self._where(actor, conditions)
        order = self._selection.order(order_by or (self._moment, True))
        offset = min((page_index - 1) * page_size, MAX_INTEGER)
        # ids first: they come from an index alone, however far back the page is
        ids = sa.select(self.table.c.id).where(*where).order_by(*order).limit(page_size).offset(offset)
        async with self._database.reading() as connection:
            on_page = (await connection.execute(ids)).scalars().all()
            total = (await connection.execute(self._count(where))).scalar_one()
            query = sa.select(self.table).where(self.table.c.id.in_(on_page)).order_by(*order)
            found = (await connection.execute(query)).mappings().all() if on_page else []
            return Rows(await self._complete(connection, [dict(row) for row in found]), total)

    async def item(self, actor: Actor, record_id: int) -> Row:
        """One record.

        Raises:
            NotFound: there is none, or it is another company's.
        """
        async with self._database.reading() as connection:
            return await self._item(connection, actor, record_id)

    async def count(self, actor: Actor, conditions: Conditions = EVERYTHING) -> int:
        """The number of records that match; raises as ``page`` does."""
        async with self._database.reading() as connection:
            return int((await connection.execute(self._count(self._where(actor, conditions)))).scalar_one())

    async def count_by_day(self, actor: Actor, days: Days, conditions: Conditions = EVERYTHING) -> list[int]:
        """The number of records of each of the days; raises as ``page`` does."""
        where, moment = self._where(actor, conditions), self.table.c[self._moment]
        async with self._database.reading() as connection:
            counts = await tally_by_day(connection, moment, days, where)
        return [counts.get((day,), 0) for day in range(len(days.names))]

    async def _item(self, connection: AsyncConnection, actor: Actor, record_id: int, *, lock: bool = False) -> Row:
        query = sa.select(self.table).where(self.table.c.id == record_id, *self._visible(actor))
        found = (await connection.execute(query.with_for_update() if lock else query)).mappings().first()
        if found is None:
            raise NotFound("id", record_id)
        return (await self._complete(connection, [dict(found)]))[0]

    async def _complete(self, connection: AsyncConnection, rows: list[dict[str, Any]]) -> list[Row]:
        """Hook: adds to rows what is kept in other tables."""
        return list(rows)

    def _where(self, actor: Actor, conditions: Conditions) -> list[sa.ColumnElement[bool]]:
        return [*self._visible(actor, conditions), *self._selection.where(conditions)]

    def _visible(self, actor: Actor, conditions: Conditions = EVERYTHING) -> list[sa.ColumnElement[bool]]:
        if actor.is_super:
            return []
        return [beside(self.table.c.company_id, conditions, self._narrow) == actor.company_id]

    def _count(self, where: list[sa.ColumnElement[bool]]) -> sa.Select[Any]:
        return sa.select(sa.func.count()).select_from(self.table).where(*where)
