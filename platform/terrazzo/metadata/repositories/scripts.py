"""The repository of scripts (retainer, statistics, calculation, balance), which name objects and can be started."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.field import shorten
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import OBJECT
from terrazzo.metadata.lookup import as_id, being_imported
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say


class ScriptRepository(EntityRepository):
    """The scripts of one kind. ``object_list`` is a list of object ids as texts."""

    async def set_active(self, actor: Actor, key: int | str, is_active: bool) -> Row:
        """Starts or stops a script; without effect where it is so already."""
        return await self._update(actor, key, {}, {"is_active": int(is_active)})

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        await resolve_objects(connection, draft, company)


async def resolve_objects(connection: AsyncConnection, draft: Draft, company: int) -> None:
    """Replaces the uids and ids in a draft's ``object_list`` by ids as texts.

    Raises:
        BadParameter: an object isn't the company's, is being imported, or is listed twice.
    """
    keys = draft.get("object_list")
    if not keys:
        return
    numbers = [as_id(key) for key in keys]
    table = OBJECT.table
    wanted = [number for number in numbers if number is not None]
    query = sa.select(table.c.id).where(one_of(table.c.id, wanted), table.c[OBJECT.company] == company)
    known = set((await connection.execute(query)).scalars())
    unfinished = await being_imported(connection, OBJECT, known)
    ids: dict[str, None] = {}
    for key, number in zip(keys, numbers, strict=True):
        if number not in known:
            raise BadParameter("object_list", say("no_object", object=shorten(key)))
        if number in unfinished:
            raise BadParameter("object_list", say("record_being_imported", entity=OBJECT.name, key=shorten(key)))
        if str(number) in ids:
            raise BadParameter("object_list", say("object_twice", object=number))
        ids[str(number)] = None
    draft["object_list"] = list(ids)


def naming_object(table: sa.Table, row: Row) -> sa.ColumnElement[Any]:
    """The SQL condition that a record's ``object_list`` (a JSON array of ids as texts) has this object."""
    return table.c.object_list.contains(f'"{row["id"]}"')
