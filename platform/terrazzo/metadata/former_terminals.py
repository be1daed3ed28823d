"""Terminals that were deleted: what they reported is kept, for the company that had them alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.registry import AUDIT, FORMER_TERMINAL
from terrazzo.domain.actor import Actor

_columns = FORMER_TERMINAL.c
_AT_ONCE = 500


class FormerTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted terminal; times in UTC microseconds.

    ``terminal_id`` and ``company_id`` are None where nobody knows whose what the store has under ``series`` is.
    """

    id: int
    terminal_id: int | None
    company_id: int | None
    uid: str
    series: str  # the name that its series bear
    name: str
    type: str
    created: int | None
    deleted: int
    purged: int | None  # when what it reported was deleted


class FormerTerminals:
    """The table ``former_terminal``, whose rows are written with the deletion of the terminal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, actor: Actor, terminal_id: int) -> FormerTerminal | None:
        """The former terminal with this id, if it was of the actor's company."""
        found = await self._read(
            sa.select(FORMER_TERMINAL).where(_columns.terminal_id == terminal_id, *_seen_by(actor))
        )
        return found[0] if found else None

    async def page(
        self, actor: Actor, *, uid: str | None, page_index: int, page_size: int
    ) -> tuple[list[FormerTerminal], int]:
        """Those of the actor's company, the last deleted first, and how many there are; ``uid``: only those of it."""
        where = [_columns.terminal_id.is_not(None), *_seen_by(actor)]
        if uid is not None:
            where.append(_columns.uid == uid)
        newest = sa.select(FORMER_TERMINAL).where(*where).order_by(_columns.id.desc())
        rows = await self._read(newest.limit(page_size).offset((page_index - 1) * page_size))
        async with self._database.reading() as connection:
            count = sa.select(sa.func.count()).select_from(FORMER_TERMINAL).where(*where)
            return rows, int((await connection.execute(count)).scalar_one())

    async def series_of(self, company_ids: Iterable[int] | None = None) -> dict[str, int]:
        """The names that the series of deleted terminals bear, whose reports are still there, and whose they are.

        ``company_ids``: of these companies; None: of all.
        """
        found: dict[str, int] = {}
        columns = _columns.id, _columns.series, _columns.company_id
        wanted = [_columns.company_id == each for each in company_ids or ()]
        if company_ids is None:
            wanted = [_columns.company_id.is_not(None)]
        for is_wanted in wanted:
            query = (
                sa.select(*columns).where(is_wanted, _columns.purged.is_(None)).order_by(_columns.id).limit(_AT_ONCE)
            )
            last, count = 0, _AT_ONCE
            while count == _AT_ONCE:  # some at a time: others have the loop between
                async with self._database.reading() as connection:
                    rows = (await connection.execute(query.where(_columns.id > last))).all()
                found.update((row.series, row.company_id) for row in rows)
                last, count = rows[-1].id if rows else last, len(rows)
        return found

    async def unpurged_before(self, time_us: int, limit: int) -> list[FormerTerminal]:
        """Some whose deletion is older than ``time_us`` and whose reports are still there, the oldest first."""
        due = sa.select(FORMER_TERMINAL).where(_columns.purged.is_(None), _columns.deleted < time_us)
        return await self._read(due.order_by(_columns.deleted).limit(limit))

    async def set_purged(self, former: FormerTerminal, time_us: int) -> None:
        """Notes that nothing that it reported is left."""
        async with self._database.writing() as connection:
            statement = FORMER_TERMINAL.update().where(_columns.id == former.id)
            await connection.execute(statement.values(purged=time_us))

    async def add_found(self, uids: Iterable[str], time_us: int) -> int:
        """Adds terminals that were deleted before this table was there, by the uids in the names of their series.

        The audit log says whose they were, where it goes back so far. Those that are there stay; how many are new.
        """
        wanted = list(uids)
        added = 0
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            async with self._database.writing() as connection:
                known = sa.select(_columns.uid).where(one_of(_columns.uid, some))
                missing = sorted(set(some) - set((await connection.execute(known)).scalars()))
                last = sa.select(sa.func.max(AUDIT.c.id)).where(
                    AUDIT.c.entity == "terminal", AUDIT.c.action == "delete", one_of(AUDIT.c.uid, missing)
                )
                entries = sa.select(AUDIT).where(AUDIT.c.id.in_(last.group_by(AUDIT.c.uid)))
                deleted = {row["uid"]: row for row in (await connection.execute(entries)).mappings()}
                rows = [_found(uid, deleted.get(uid), time_us) for uid in missing]
                if rows:
                    await connection.execute(FORMER_TERMINAL.insert(), rows)
                added += len(rows)
        return added

    async def _read(self, query: sa.Select[Any]) -> list[FormerTerminal]:
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [FormerTerminal(**row) for row in rows]


def _seen_by(actor: Actor) -> Sequence[sa.ColumnElement[bool]]:
    return [] if actor.is_super else [_columns.company_id == actor.company_id]


def _found(uid: str, entry: Any, time_us: int) -> dict[str, Any]:
    return {
        "terminal_id": None if entry is None else entry["record_id"],
        "company_id": None if entry is None else entry["company_id"],
        "uid": uid,
        "series": uid,
        "name": uid,
        "type": "",
        "created": None,
        "deleted": time_us if entry is None else entry["time"],
    }
