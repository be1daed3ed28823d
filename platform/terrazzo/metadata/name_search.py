"""``NameSearch``: finds records of all kinds by what people call them, the best first.

Terminals are found in memory, in slices of the loop: no index of a database finds the middle of a uid. Of the other
kinds the columns that are searched have an index with the company, which is read from end to end at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.conditions import begins, contains
from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.definitions.components import GROUP
from terrazzo.metadata.definitions.registry import (
    BALANCE,
    CALCULATE,
    CAMPAIGN,
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

LATEST_EVENTS = 2_000  # events of a company that are looked at
_SLICE = 500  # terminals between two looks at the clock
_EXACT, _BEGINS, _WORD, _WITHIN = range(4)


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
)
"""What is found in the database; ``terminal`` and ``event`` are found otherwise."""


class Found(NamedTuple):
    """A record that was found. ``rank``: 0 its name is the text, 1 begins with it, 2 a word does, 3 it is within.

    ``key`` is its uid (an event's id); ``name`` what it is called, ``text`` what else was found of it.
    """

    rank: int
    length: int
    kind: str
    key: str
    record_id: int
    name: str
    text: str


class NameSearch:
    """Searches the records that an actor may see."""

    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def find(self, actor: Actor, text: str, *, kinds: Iterable[str] = (), limit: int) -> list[Found]:
        """The best ``limit`` records that have the text in their names; the case of letters doesn't matter.

        Args:
            kinds: of these kinds alone; none: all.
        """
        wanted, found = frozenset(kinds), list[Found]()
        if not wanted or "terminal" in wanted:
            found += await self._terminals(actor, text, limit)
        async with self._database.reading() as connection:
            for each in SEARCHED:
                if (not wanted or each.kind in wanted) and _may(actor, each):
                    found += await _records(connection, actor, each, text, limit)
            if not wanted or "event" in wanted:
                found += await _events(connection, actor, text, limit)
        return nsmallest(limit, found)

    async def _terminals(self, actor: Actor, text: str, limit: int) -> list[Found]:
        lowered, found, pauses = text.lower(), list[Found](), LoopPauses()
        company_id, is_super = actor.company_id, actor.is_super
        every = list(self._registry.terminals())
        for start in range(0, len(every), _SLICE):
            found += [
                _terminal(each, lowered)
                for each in every[start : start + _SLICE]
                if (is_super or each.company_id == company_id)
                and (lowered in each.uid.lower() or lowered in each.name.lower())
            ]
            if len(found) > 4 * limit + _SLICE:
                found = nsmallest(limit, found)
            await pauses.pause()
        return found


def _may(actor: Actor, each: Searched) -> bool:
    return actor.may(each.least) and (actor.is_super or not each.is_for_super)


def rank_of(name: str, lowered: str) -> int:
    """How well a name fits a text in lower case."""
    name = name.lower()
    if name == lowered:
        return _EXACT
    if name.startswith(lowered):
        return _BEGINS
    at = name.find(lowered)
    while at > 0:
        if not name[at - 1].isalnum():
            return _WORD
        at = name.find(lowered, at + 1)
    return _WITHIN


def _terminal(terminal: Terminal, lowered: str) -> Found:
    rank = min(rank_of(terminal.uid, lowered), rank_of(terminal.name, lowered))
    return Found(rank, len(terminal.uid), "terminal", terminal.uid, terminal.id, terminal.name, terminal.uid)


async def _records(connection: AsyncConnection, actor: Actor, searched: Searched, text: str, limit: int) -> list[Found]:
    """The ids of each column's best come from its index alone."""
    entity, lowered = searched.entity, text.lower()
    table, columns = entity.table, [entity.table.c[name] for name in searched.columns]
    mine = [] if actor.is_super else [table.c[entity.company] == actor.company_id]
    ids: set[int] = set()
    for column in columns:
        order = (sa.case((begins(column, text), 0), else_=1), sa.func.length(column), table.c.id)
        query = sa.select(table.c.id).where(*mine, contains(column, text)).order_by(*order).limit(limit)
        ids.update((await connection.execute(query)).scalars())
    if not ids:
        return []
    wanted = (table.c.id, table.c[entity.uid_name], *columns)
    rows = (await connection.execute(sa.select(*wanted).where(one_of(table.c.id, ids)))).all()
    return [_found(searched.kind, row, lowered) for row in rows]


def _found(kind: str, row: Sequence[Any], lowered: str) -> Found:
    record_id, uid, *texts = row
    shown = [str(text or "") for text in texts]
    best = min(rank_of(text, lowered) for text in shown if lowered in text.lower() or text == shown[0])
    more = " ".join(text for text in shown[1:] if text)
    return Found(best, len(shown[0]), kind, str(uid), int(str(record_id)), shown[0], more)


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
        Found(_rank_of_event(code, label, text.lower()), len(code), "event", str(key), key, label or code, code)
        for key, _, code, label in (await connection.execute(query)).all()
    ]


def _rank_of_event(code: str, label: str, lowered: str) -> int:
    return min(rank_of(code, lowered), rank_of(label, lowered))
