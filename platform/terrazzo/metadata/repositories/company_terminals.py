"""Finds a company's terminals by many uids or ids at once, and those that lists name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.field import shorten
from terrazzo.database.one_of import one_of, one_of_given
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.lookup import as_id, is_unfinished
from terrazzo.reasons import say


async def company_terminals(
    connection: AsyncConnection, column: str, keys: list[int] | list[str], company: int
) -> dict[int, str]:
    """The uids, by id, of the company's terminals that have these keys in a unique column.

    The company is compared here: in the statement SQLite takes it for the narrower condition, and reads all of its
    terminals.
    """
    if not keys:
        return {}
    table = TERMINAL.table
    query = sa.select(table.c.id, table.c.uid, table.c[TERMINAL.company].label("company"))
    found = await connection.execute(query.where(one_of(table.c[column], keys)))
    return {row.id: row.uid for row in found if row.company == company}


class NamedTerminals:
    """Terminals that lists name by uid or id, as they are in one transaction: many lists can be looked up together."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._by_key: dict[str | int, tuple[str, int] | None] = {}  # uid and company; None: there is no such terminal
        self._unfinished: set[str] = set()  # uids of those that are being imported

    async def look_up(self, keys: Iterable[int | str]) -> None:
        """Looks up these in place of what was looked up before; a text is a uid, or else the digits of an id."""
        self._by_key, self._unfinished = {}, set()
        await self._add(keys)

    async def uids(self, keys: list[int | str], company: int) -> list[str]:
        """The uids of a company's terminals with these uids or ids, in order.

        Raises:
            BadParameter: the company has no such terminal, it is being imported, or it is listed twice.
        """
        await self._add(key for key in keys if key not in self._by_key)
        uids: dict[str, None] = {}
        for key in keys:
            uid = self._uid(key, company)
            if uid is None:
                raise BadParameter("terminal_list", say("no_terminal", terminal=shorten(key)))
            if uid in self._unfinished:
                told = say("record_being_imported", entity=TERMINAL.name, key=shorten(key))
                raise BadParameter("terminal_list", told)
            if uid in uids:
                raise BadParameter("terminal_list", say("terminal_twice", terminal=uid))
            uids[uid] = None
        return list(uids)

    def _uid(self, key: int | str, company: int) -> str | None:
        """Its uid; a text of digits that is another company's uid may still be the id of one of this company's."""
        for each in (key, as_id(key)):
            found = self._by_key.get(each) if each is not None else None
            if found is not None and found[1] == company:
                return found[0]
        return None

    async def _add(self, keys: Iterable[int | str]) -> None:
        wanted = list(dict.fromkeys(keys))
        if not wanted:
            return
        numbers = {number for key in wanted if (number := as_id(key)) is not None}
        self._by_key |= dict.fromkeys([*wanted, *numbers])
        await self._read("uid", [key for key in wanted if isinstance(key, str)])
        await self._read("id", list(numbers))

    async def _read(self, column: str, keys: list[str] | list[int]) -> None:
        if not keys:
            return
        query = _named_query(column, is_sqlite=self._connection.dialect.name == "sqlite")
        for row in await self._connection.execute(query, {"named": keys}):
            self._by_key[row.uid if column == "uid" else row.id] = row.uid, row.company
            if row.unfinished:
                self._unfinished.add(row.uid)


@cache
def _named_query(column: str, *, is_sqlite: bool) -> sa.Select[Any]:
    table = TERMINAL.table
    columns = (table.c.id, table.c.uid, table.c[TERMINAL.company].label("company"))
    query = sa.select(*columns, is_unfinished(TERMINAL, is_sqlite=is_sqlite))
    return query.where(one_of_given(table.c[column], "named", is_text=column == "uid"))
