"""The repository of objects: their ordered list of terminals, and the scripts and rules that refer to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.one_of import one_of_given
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import OBJECT_TERMINAL
from terrazzo.metadata.definitions.registry import OBJECT, SCRIPTS, TERMINAL
from terrazzo.metadata.lookup import refuse_if_used
from terrazzo.metadata.repositories.company_terminals import NamedTerminals
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.metadata.repositories.scripts import naming_object, resolve_objects

_AT_ONCE = 5_000  # terminals that one statement looks up
_NO_LINKS = OBJECT_TERMINAL.delete().where(one_of_given(OBJECT_TERMINAL.c.object_id, "objects"))
_IDS = sa.select(TERMINAL.table.c.uid, TERMINAL.table.c.id).where(
    one_of_given(TERMINAL.table.c.uid, "uids", is_text=True)
)


class ObjectRepository(EntityRepository):
    """Objects. Rows show ``terminal_list`` as a list of uids; callers may give uids or ids, as a list or as text."""

    in_other_tables = ("terminal_list",)

    def __init__(self, **parts: Any) -> None:
        super().__init__(OBJECT, **parts)
        self.keep_names("name", "model", "serial_no")

    async def _resolve(self, connection: AsyncConnection, draft: Draft, company: int) -> None:
        await super()._resolve(connection, draft, company)
        await resolve_objects(connection, draft, company)
        if "terminal_list" in draft:
            draft["terminal_list"] = await NamedTerminals(connection).uids(draft["terminal_list"] or [], company)

    async def _written_all(self, connection: AsyncConnection, written: Sequence[tuple[int, Draft]]) -> None:
        lists = {record_id: draft["terminal_list"] or [] for record_id, draft in written if "terminal_list" in draft}
        if not lists:
            return
        await connection.execute(_NO_LINKS, {"objects": [*lists]})
        uids = list({uid: None for listed in lists.values() for uid in listed})
        ids: dict[str, int] = {}
        for start in range(0, len(uids), _AT_ONCE):
            some = {"uids": uids[start : start + _AT_ONCE]}
            ids |= {row.uid: row.id for row in await connection.execute(_IDS, some)}
        links = [
            {"object_id": record_id, "terminal_id": ids[uid], "position": position}
            for record_id, listed in lists.items()
            for position, uid in enumerate(listed)
        ]
        if links:
            await connection.execute(OBJECT_TERMINAL.insert(), links)

    async def _check_unused(self, connection: AsyncConnection, row: Row) -> None:
        await super()._check_unused(connection, row)
        for entity in (*SCRIPTS, OBJECT):
            others = entity.table.c.id != row["id"] if entity is OBJECT else sa.true()
            uses = sa.select(entity.table.c[entity.uid_name]).where(naming_object(entity.table, row), others)
            if entity is OBJECT:  # in the words of the index of the few that name objects
                uses = uses.where(sa.text("object_list IS NOT NULL"))
            await refuse_if_used(connection, uses, f"object {row['uid']}", entity.name)
