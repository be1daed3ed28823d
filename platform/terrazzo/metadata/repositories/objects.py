"""The repository of objects: their ordered list of terminals, and the scripts and rules that refer to them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.field import shorten
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import OBJECT_TERMINAL
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import OBJECT, SCRIPTS, TERMINAL
from terrazzo.metadata.lookup import as_id, refuse_if_used
from terrazzo.metadata.repositories.company_terminals import company_terminals
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.metadata.repositories.scripts import naming_object, resolve_objects


class ObjectRepository(EntityRepository):
    """Objects. Rows show ``terminal_list`` as a list of uids; callers may give uids or ids, as a list or as text."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(OBJECT, **parts)

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        await resolve_objects(connection, draft, company)
        if "terminal_list" in draft:
            draft["terminal_list"] = await _terminal_uids(connection, draft["terminal_list"] or [], company)

    async def _written(self, connection: AsyncConnection, record_id: int, draft: Draft) -> None:
        if "terminal_list" not in draft:
            return
        await connection.execute(OBJECT_TERMINAL.delete().where(OBJECT_TERMINAL.c.object_id == record_id))
        uids = draft["terminal_list"]
        if not uids:
            return
        table = TERMINAL.table
        found = await connection.execute(sa.select(table.c.uid, table.c.id).where(one_of(table.c.uid, uids)))
        ids = {row.uid: row.id for row in found}
        links = [
            {"object_id": record_id, "terminal_id": ids[uid], "position": position} for position, uid in enumerate(uids)
        ]
        await connection.execute(OBJECT_TERMINAL.insert(), links)

    async def _check_unused(self, connection: AsyncConnection, row: Row) -> None:
        await super()._check_unused(connection, row)
        for entity in (*SCRIPTS, OBJECT):
            others = entity.table.c.id != row["id"] if entity is OBJECT else sa.true()
            uses = sa.select(entity.table.c[entity.uid_name]).where(naming_object(entity.table, row), others)
            await refuse_if_used(connection, uses, f"object {row['uid']}", entity.name)


async def _terminal_uids(connection: AsyncConnection, keys: list[int | str], company: int) -> list[str]:
    """The uids of the terminals with these uids or ids, in order.

    Raises:
        BadParameter: the company has no such terminal, or it is listed twice.
    """
    texts = [key for key in keys if isinstance(key, str)]
    by_uid = set((await company_terminals(connection, "uid", texts, company)).values())
    numbers = [number for key in keys if key not in by_uid and (number := as_id(key)) is not None]
    by_id = await company_terminals(connection, "id", numbers, company)
    uids: dict[str, None] = {}
    for key in keys:
        uid = key if key in by_uid else by_id.get(as_id(key) or 0)
        if uid is None:
            raise BadParameter("terminal_list", f"no terminal {shorten(key)}")
        if uid in uids:
            raise BadParameter("terminal_list", f"terminal {uid} is listed twice")
        uids[str(uid)] = None
    return list(uids)
