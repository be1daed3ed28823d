"""Looks up the records that an import's rows refer to by uid, id or unique name, each only once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import Entity
from terrazzo.database.field import shorten
from terrazzo.errors import BadParameter
from terrazzo.metadata.lookup import being_imported, key_clause, key_parameters, storable
from terrazzo.reasons import say

_AMBIGUOUS, _UNFINISHED = -1, -2


class References:
    """The lookups of one import, cached. ``use`` says in which transaction."""

    def __init__(self) -> None:
        self._connection: AsyncConnection | None = None
        self._found: dict[tuple[str, int | None, Any], int | None] = {}

    def use(self, connection: AsyncConnection) -> None:
        """The transaction of what is looked up next."""
        self._connection = connection

    async def id_of(self, entity: Entity, key: Any, *, company: int | None, field: str) -> int:
        """The id of the company's record with this key; of any company's where ``company`` is None.

        Raises:
            BadParameter: there is none, several have the name, or it is being imported itself.
        """
        place = (entity.name, company, key)
        if place not in self._found:
            assert self._connection is not None
            found = await self._look(self._connection, entity, key, company)
            if found is not None and await being_imported(self._connection, entity, [found]):
                found = _UNFINISHED
            self._found[place] = found
        found = self._found[place]
        if found is None:
            raise BadParameter(field, say("no_record_by_key", entity=entity.name, key=shorten(key)))
        if found == _AMBIGUOUS:
            raise BadParameter(field, say("several_records_named", entity=entity.name, key=shorten(key)))
        if found == _UNFINISHED:
            raise BadParameter(field, say("record_being_imported", entity=entity.name, key=shorten(key)))
        return found

    @staticmethod
    async def _look(connection: AsyncConnection, entity: Entity, key: Any, company: int | None) -> int | None:
        table = entity.table
        visible = [] if company is None else [table.c[entity.company] == company]
        asked = key_parameters(key)
        clause, order = key_clause(entity, frozenset(asked))
        query = sa.select(table.c.id).where(clause, *visible).order_by(order).limit(1)
        found = (await connection.execute(query, asked)).scalar()
        if found is not None or not isinstance(key, str) or "name" not in entity.fields or not storable(key):
            return None if found is None else int(found)
        named = sa.select(table.c.id).where(table.c.name == key, *visible).limit(2)
        ids = (await connection.execute(named)).scalars().all()
        return _AMBIGUOUS if len(ids) > 1 else int(ids[0]) if ids else None
