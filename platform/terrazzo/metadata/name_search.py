"""``NameSearch``: finds records of all kinds by what people call them, the best first.

No index of a database finds the middle of a name, so that names are found in memory (``name_index``), in slices of the
loop: those of a kind are read when it is searched first, and follow the changes of its records from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.conditions import contains
from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.database.port import Row
from terrazzo.database.tables.access import WALL_LINK
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.loop_pauses import LoopPauses, in_turns
from terrazzo.metadata.definitions.access import API_KEY
from terrazzo.metadata.definitions.components import COLLECTOS, GROUP, SERVICE
from terrazzo.metadata.definitions.registry import (
    BALANCE,
    CALCULATE,
    CAMPAIGN,
    CLAIM_KEY,
    COMPANY,
    CONFIGURATION,
    CONTROL,
    CUSTOMER,
    DASHBOARD,
    MAPPING,
    OBJECT,
    RETAINER,
    STATISTICS,
    USER,
)
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.name_index import Named, NameIndex, rank_of
from terrazzo.metadata.repositories.repository import EntityRepository, RowChange

LATEST_EVENTS = 2_000  # events of a company that are looked at
LATEST_WRITTEN = 2_000  # service and offline records, each; people write as many as they like
_READ_AT_ONCE = 1_000  # records: what users of others do goes on meanwhile


class Searched(NamedTuple):
    """A kind of record that is searched, in which columns; who is none of ``least`` doesn't find it."""

    kind: str
    entity: Entity
    columns: tuple[str, ...] = ("name",)
    least: Role = Role.VIEWER
    is_for_super: bool = False


SEARCHED = (
    Searched("object", OBJECT, ("name", "serial_no")),
    Searched("customer", CUSTOMER),
    Searched("group", GROUP),
    Searched("terminal_config", CONFIGURATION),
    Searched("mapping", MAPPING),
    Searched("control", CONTROL),
    Searched("retainer", RETAINER),
    Searched("statistics", STATISTICS),
    Searched("calculate", CALCULATE),
    Searched("balance", BALANCE),
    Searched("dashboard", DASHBOARD),
    Searched("rule", RULE, least=Role.ADMIN),
    Searched("campaign", CAMPAIGN),
    Searched("user", USER, ("username", "email"), Role.ADMIN),
    Searched("company", COMPANY, least=Role.ADMIN, is_for_super=True),
    Searched("api_key", API_KEY, ("name", "prefix"), Role.ADMIN),
    Searched("claim_key", CLAIM_KEY, ("name", "prefix"), Role.ADMIN),
)
"""What is found in the database; ``terminal`` and what is in ``ASKED`` are found otherwise."""


class Found(NamedTuple):
    """A record that was found. ``rank``: 0 its name is the text, 1 begins with it, 2 a word does, 3 it is within.

    ``key`` is its uid (an event's id); ``name`` what it is called, ``text`` what else was found of it, ``object_id``
    whose service or offline record it is.
    """

    rank: int
    length: int
    kind: str
    key: str
    record_id: int
    name: str
    text: str
    object_id: int | None = None


class NameSearch:
    """Searches the records that an actor may see."""

    def __init__(self, database: Database, registry: Registry, entities: Entities) -> None:
        self._database = database
        self._terminals = _names_of_terminals(registry)
        repositories = {each.entity.name: each for each in entities.every()}
        self._names = [(each, _names_of_records(each, repositories[each.entity.name])) for each in SEARCHED]

    async def find(self, actor: Actor, text: str, *, kinds: Iterable[str] = (), limit: int) -> list[Found]:
        """The best ``limit`` records that have the text in their names; the case of letters doesn't matter.

        Args:
            kinds: of these kinds alone; none: all.

        Raises:
            Unavailable: the database doesn't answer.
        """
        wanted, found = frozenset(kinds), list[Found]()
        if not wanted or "terminal" in wanted:
            best = await self._terminals.best(actor, text, limit)
            found += [Found(rank, len(uid), "terminal", uid, id_, name, uid) for rank, id_, _, (uid, name) in best]
        for each, names in self._names:
            if (not wanted or each.kind in wanted) and _may(actor, each):
                best = await names.best(actor, text, limit)
                found += [
                    Found(rank, len(texts[0]), each.kind, key, id_, texts[0], " ".join(filter(None, texts[1:])))
                    for rank, id_, key, texts in best
                ]
        asked = [ask for kind, ask in ASKED.items() if not wanted or kind in wanted]
        if asked:
            async with self._database.reading() as connection:
                for ask in asked:
                    found += await ask(connection, actor, text, limit)
        return nsmallest(limit, found, key=_place)


class _KindNames:
    """The names of one kind, by company: read when they are asked for first, and changed with the records since then.

    Args:
        read: hands all records of the kind to ``add``.
    """

    def __init__(self, read: Callable[[_KindNames], Awaitable[None]]) -> None:
        self._read = read
        self._turn = asyncio.Lock()
        self._is_there = False
        self._of: dict[int, NameIndex] = {}
        self._company: dict[int, int] = {}  # of each record
        self._newer: set[int] | None = None  # ids of records that have changed while all are read

    async def best(self, actor: Actor, text: str, limit: int) -> list[tuple[int, int, str, tuple[str, ...]]]:
        """The best ``limit`` that the actor may see: rank, id, key and names."""
        async with self._turn:
            if not self._is_there:
                await self._begin()
        ids = list(self._of) if actor.is_super else [actor.company_id]
        found: list[tuple[int, Named]] = []
        for company_id in ids:
            if (names := self._of.get(company_id)) is not None:
                found += await in_turns(names.find_steps(text, limit))
                if len(found) > 10 * limit:
                    found = nsmallest(limit, found)
        return [(rank, each.record_id, each.key, each.texts) for rank, each in nsmallest(limit, found)]

    async def _begin(self) -> None:
        self._of, self._company, self._newer = {}, {}, set()
        try:
            await self._read(self)
            self._is_there = True
        finally:
            self._newer = None

    def add(self, company_id: int, record: Named) -> None:
        """A record as it was read, unless it has changed since."""
        if self._newer is not None and record.record_id not in self._newer:
            self._put(company_id, record)

    def change(self, company_id: int, record: Named) -> None:
        """A record was made or changed."""
        if self._newer is not None:
            self._newer.add(record.record_id)
        if self._is_there or self._newer is not None:
            self._put(company_id, record)

    def drop(self, record_id: int) -> None:
        """A record was deleted."""
        if self._newer is not None:
            self._newer.add(record_id)
        company_id = self._company.pop(record_id, None)
        if company_id is not None:
            names = self._of[company_id]
            names.drop(record_id)
            if not names:
                del self._of[company_id]

    def _put(self, company_id: int, record: Named) -> None:
        if self._company.get(record.record_id, company_id) != company_id:
            self.drop(record.record_id)
        self._company[record.record_id] = company_id
        if (names := self._of.get(company_id)) is None:
            names = self._of[company_id] = NameIndex()
        names.put(record)


def _names_of_terminals(registry: Registry) -> _KindNames:
    async def read(names: _KindNames) -> None:
        pauses = LoopPauses()
        for each in list(registry.terminals()):
            names.add(each.company_id, _named_terminal(each))
            await pauses.pause()

    names = _KindNames(read)

    def change(before: Terminal | None, after: Terminal | None) -> None:
        if after is not None:
            names.change(after.company_id, _named_terminal(after))
        elif before is not None:
            names.drop(before.id)

    registry.terminal_changes.listen(change)
    return names


def _named_terminal(terminal: Terminal) -> Named:
    return Named(len(terminal.uid), terminal.uid, terminal.id, (terminal.uid, terminal.name))


def _names_of_records(searched: Searched, repository: EntityRepository) -> _KindNames:
    entity = searched.entity

    def named(row: Row) -> Named:
        texts = tuple(str(row[name] or "") for name in searched.columns)
        return Named(len(texts[0]), str(row[entity.uid_name]), row["id"], texts)

    async def read(names: _KindNames) -> None:
        pauses = LoopPauses()
        columns = (entity.uid_name, entity.company, *searched.columns)
        async for row in repository.every(only=columns, at_once=_READ_AT_ONCE):
            names.add(row[entity.company], named(row))
            await pauses.pause()

    names = _KindNames(read)

    def change(changed: RowChange) -> None:
        if changed.row is None:
            names.drop(changed.record_id)
        else:
            names.change(changed.row[entity.company], named(changed.row))

    repository.changes.listen(change)
    return names


def _may(actor: Actor, each: Searched) -> bool:
    return actor.may(each.least) and (actor.is_super or not each.is_for_super)


async def _events(connection: AsyncConnection, actor: Actor, text: str, limit: int) -> list[Found]:
    """Of the company's latest events those whose code or label has the text, each code of an object once."""
    mine: Sequence[sa.ColumnElement[bool]] = [] if actor.is_super else [EVENT.c.company_id == actor.company_id]
    columns = (EVENT.c.id, EVENT.c.object_id, EVENT.c.code, EVENT.c.label_en, EVENT.c.label_cn)
    latest = sa.select(*columns).where(*mine).order_by(EVENT.c.id.desc()).limit(LATEST_EVENTS).subquery()
    fits = sa.or_(*(contains(latest.c[name], text) for name in ("code", "label_en", "label_cn")))
    last = sa.func.max(latest.c.id)
    named = (latest.c.object_id, latest.c.code, latest.c.label_en)
    query = sa.select(last, *named).where(fits).group_by(*named).order_by(last.desc()).limit(limit)
    return [
        Found(_best_rank(code, label, text.lower()), len(code), "event", str(key), key, label or code, code)
        for key, _, code, label in (await connection.execute(query)).all()
    ]


async def _services(connection: AsyncConnection, actor: Actor, text: str, limit: int) -> list[Found]:
    return await _written(connection, actor, text, limit, kind="service", entity=SERVICE)


async def _offline(connection: AsyncConnection, actor: Actor, text: str, limit: int) -> list[Found]:
    return await _written(connection, actor, text, limit, kind="offline", entity=COLLECTOS)


async def _written(
    connection: AsyncConnection, actor: Actor, text: str, limit: int, *, kind: str, entity: Entity
) -> list[Found]:
    """Of what people wrote last those whose name or description has the text."""
    c = entity.table.c
    mine: Sequence[sa.ColumnElement[bool]] = [] if actor.is_super else [c[entity.company] == actor.company_id]
    columns = (c.id, c.uid, c.object_id, c.name, c.description)
    latest = sa.select(*columns).where(*mine).order_by(c.id.desc()).limit(LATEST_WRITTEN).subquery()
    fits = sa.or_(*(contains(latest.c[name], text) for name in ("name", "description")))
    query = sa.select(latest).where(fits).order_by(latest.c.id.desc()).limit(limit)
    return [
        Found(_best_rank(name, said, text.lower()), len(name), kind, uid, id_, name, said, of)
        for id_, uid, of, name, said in (await connection.execute(query)).all()
    ]


async def _wall_links(connection: AsyncConnection, actor: Actor, text: str, limit: int) -> list[Found]:
    """Dashboards that have a link, by their names and what the keys begin with, for administrators."""
    if not actor.may(Role.ADMIN):
        return []
    c, links = DASHBOARD.table.c, WALL_LINK.c
    mine: Sequence[sa.ColumnElement[bool]] = [] if actor.is_super else [c[DASHBOARD.company] == actor.company_id]
    fits = sa.or_(contains(c.name, text), contains(links.prefix, text))
    linked = WALL_LINK.join(DASHBOARD.table, c.id == links.dashboard_id)
    query = sa.select(c.id, c.uid, c.name, links.prefix).select_from(linked).where(*mine, fits).limit(limit)
    return [
        Found(rank_of(name, text.lower()), len(name), "wall_link", uid, id_, name, prefix)
        for id_, uid, name, prefix in (await connection.execute(query)).all()
    ]


def _place(found: Found) -> tuple[int, int, str, str]:
    return found.rank, found.length, found.kind, found.key


def _best_rank(one: str, other: str, lowered: str) -> int:
    return min(rank_of(one, lowered), rank_of(other, lowered))


ASKED: Mapping[str, Callable[[AsyncConnection, Actor, str, int], Awaitable[list[Found]]]] = {
    "event": _events,
    "service": _services,
    "offline": _offline,
    "wall_link": _wall_links,
}
"""Kinds that the database is asked for whenever somebody searches."""
