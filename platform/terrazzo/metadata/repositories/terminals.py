"""The repository of terminals: keeps the time of their first login, and refuses to delete one that an object lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.changes import record_changes
from terrazzo.database.entity import COMPANY
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import FORMER_TERMINAL, OBJECT_TERMINAL
from terrazzo.domain.report_topic import MARK
from terrazzo.domain.topic_permission import CHANNELS
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import OBJECT, TERMINAL
from terrazzo.metadata.lookup import refuse_if_used
from terrazzo.metadata.repositories.repository import Draft, EntityRepository, RowChange

_CHANNELS = frozenset(CHANNELS)
_AT_ONCE = 1_000  # first logins in one statement


class TerminalRepository(EntityRepository):
    """The terminals, with their secrets sealed at rest.

    ``pin_chars``: how many characters a new pin has to have. ``is_past_known``: whether all terminals that were deleted
    are in ``former_terminal``; until then each new one has series of its own.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(TERMINAL, **parts)
        self.pin_chars = 1
        self.is_past_known = True
        self._activated: set[str] = set()  # whose first login is known to be noted
        self.changes.listen(self._forget_deleted)

    async def set_all_activated(self, times_us: Mapping[str, int]) -> None:
        """Notes the first logins among these, uid to time, in one transaction; later ones cost nothing."""
        logins: list[dict[str, Any]] = [
            {"login": uid, "at": at} for uid, at in times_us.items() if uid not in self._activated
        ]
        if not logins:
            return
        async with self._turn:
            with self._database.own.told_at_once() as own:
                async with self._database.writing() as connection:
                    for some in (logins[start : start + _AT_ONCE] for start in range(0, len(logins), _AT_ONCE)):
                        own += await self._note_logins(connection, some)
                for login in logins:
                    self._cache.forget(login["login"])
                    self._activated.add(login["login"])

    async def _note_logins(self, connection: AsyncConnection, logins: list[dict[str, Any]]) -> list[MetadataChange]:
        table, uids = self.table, [login["login"] for login in logins]
        first = table.c.activated.is_(None)
        query = sa.select(table.c.id, table.c.uid).where(one_of(table.c.uid, uids), first)
        noted = (await connection.execute(query)).all()
        statement = table.update().where(table.c.uid == sa.bindparam("login"), first)
        await connection.execute(statement.values(activated=sa.bindparam("at")), logins)
        changes = [MetadataChange(self.entity.name, row.id, row.uid) for row in noted]
        await record_changes(connection, changes)
        return changes

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Refuses a new pin that is too short, and a channel's letter as a new uid; what a terminal has stays good."""
        if before is None and draft.get("uid") in _CHANNELS:
            raise BadParameter("uid", f"{draft['uid']!r} is a channel's letter: g/{draft['uid']}/... is a short form")
        pin = draft.get("pin")
        if pin is None or len(pin) >= self.pin_chars or (before is not None and before["pin"] == pin):
            return
        raise BadParameter("pin", f"expected at least {self.pin_chars} characters (limits.pin_chars), got {len(pin)}")

    async def _added(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """Names the series of new terminals whose uid a deleted one had: they begin anew."""
        table = self.table
        own = table.c.uid + MARK + sa.cast(table.c.id, sa.String)
        statement = table.update().where(one_of(table.c.id, ids)).values(series=own)
        if self.is_past_known:
            statement = statement.where(sa.exists().where(FORMER_TERMINAL.c.uid == table.c.uid))
        await connection.execute(statement)

    async def _removed(self, connection: AsyncConnection, row: Row) -> None:
        """Keeps whose the deleted terminal's reports are."""
        former = {name: row[name] for name in ("uid", "name", "type", "created")}
        former |= {"terminal_id": row["id"], "company_id": row[COMPANY], "series": row["series"] or row["uid"]}
        await connection.execute(FORMER_TERMINAL.insert().values(**former, deleted=self._clock()))

    def _forget_deleted(self, changed: RowChange) -> None:
        if changed.row is None:
            self._activated.discard(changed.uid)

    async def _check_unused(self, connection: AsyncConnection, row: Row) -> None:
        await super()._check_unused(connection, row)
        listing = sa.select(OBJECT.table.c.uid).join(OBJECT_TERMINAL, OBJECT_TERMINAL.c.object_id == OBJECT.table.c.id)
        uses = listing.where(OBJECT_TERMINAL.c.terminal_id == row["id"])
        await refuse_if_used(connection, uses, f"terminal {row['uid']}", "object")
