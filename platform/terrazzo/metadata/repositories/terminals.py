"""The repository of terminals: keeps the time of their first login, and refuses to delete one that an object lists."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.changes import record_changes
from terrazzo.database.entity import COMPANY
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.pages import Among, OrderBy
from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.database.tables.registry import FORMER_TERMINAL, OBJECT_TERMINAL, TERMINAL_TAG
from terrazzo.domain.actor import Actor
from terrazzo.domain.report_topic import MARK
from terrazzo.domain.topic_permission import CHANNELS
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.definitions.registry import OBJECT, TERMINAL
from terrazzo.metadata.lookup import refuse_if_used
from terrazzo.metadata.repositories.claim_keys import count_use
from terrazzo.metadata.repositories.repository import Draft, EntityRepository, RowChange
from terrazzo.reasons import say

_CHANNELS = frozenset(CHANNELS)
_AT_ONCE = 1_000  # first logins in one statement
CONFIRMED, UNCONFIRMED = "confirmed", ("pending", "sent", "differs", "refused")  # states of a configuration


Configured = Literal["agrees", "differs", "unreported"]
"""Whether terminals report the configuration that they ought to have, something else, or nothing yet."""


class TerminalRepository(EntityRepository):
    """The terminals, with their secrets sealed at rest.

    ``pin_chars``: how many characters a new pin has to have. ``is_past_known``: whether all terminals that were deleted
    are in ``former_terminal``; until then each new one has series of its own.
    """

    in_other_tables = ("tags",)

    def __init__(self, **parts: Any) -> None:
        super().__init__(TERMINAL, **parts)
        self.keep_names("name", "uid")
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

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: OrderBy = None,
        tags: Sequence[str] = (),
        configured: Configured | None = None,
    ) -> Rows:
        """One page of the terminals that have all of these tags, by default in order of creation, and the total.

        ``configured``: those alone whose configuration is delivered, and is so far.
        """
        where = self._where(actor, conditions, tags, configured) if tags or configured or any(conditions) else ()
        among = self._tagged(actor, conditions, tags, configured) if tags else None
        return await self._read_page(actor, where, page_index, page_size, order_by, conditions, among)

    async def ids(
        self,
        actor: Actor,
        *,
        conditions: Conditions = EVERYTHING,
        order_by: OrderBy = None,
        tags: Sequence[str] = (),
        configured: Configured | None = None,
    ) -> array[int]:
        """The record ids of all terminals that ``page`` would have, in its order."""
        table, pauses = self.table, LoopPauses()
        where = [*self._visible(actor, conditions), *self._where(actor, conditions, tags, configured)]
        query = sa.select(table.c.id).where(*where)
        async with self._database.reading() as connection:
            found = await connection.execute(query.order_by(*self._selection.order(order_by)))
        ids = array("q")
        for part in found.partitions(_AT_ONCE):
            ids.extend([row[0] for row in part])
            await pauses.pause()
        return ids

    async def rows_of(self, ids: Sequence[int]) -> list[Row]:
        """The rows of these terminals, in this order; those that are gone are left out."""
        async with self._database.reading() as connection:
            found = (await connection.execute(self._rows.where(one_of(self.table.c.id, ids)))).all()
        rows = {row["id"]: row for row in self._codec.decode_page(found)}
        return [rows[each] for each in ids if each in rows]

    def _where(
        self, actor: Actor, conditions: Conditions, tags: Sequence[str], configured: Configured | None
    ) -> list[sa.ColumnElement[bool]]:
        tagged = [
            self.table.c.id.in_(sa.select(TERMINAL_TAG.c.terminal_id).where(TERMINAL_TAG.c.tag == tag)) for tag in tags
        ]
        far = [] if configured is None else [self.table.c.id.in_(_configured(actor, configured))]
        return [*self._selection.where(conditions), *tagged, *far]

    def _tagged(
        self, actor: Actor, conditions: Conditions, tags: Sequence[str], configured: Configured | None
    ) -> Among:
        """The terminals by the first tag: they are read in the order of their ids, as far as the page is, where looking
        up which terminals have it puts all of them in order first."""
        first, *more = tags
        where = [TERMINAL_TAG.c.tag == first, *self._visible(actor, conditions)]
        where += self._where(actor, conditions, more, configured)
        if len(where) == 1:
            return Among(TERMINAL_TAG.c.terminal_id, TERMINAL_TAG, where)
        return Among(TERMINAL_TAG.c.terminal_id, TERMINAL_TAG.join(self.table), where)

    def check_draft(self, draft: Draft, before: Row | None) -> None:
        """Refuses a new pin that is too short, and a channel's letter as a new uid; what a terminal has stays good."""
        if before is None and draft.get("uid") in _CHANNELS:
            raise BadParameter("uid", say("uid_is_channel", uid=draft["uid"]))
        pin = draft.get("pin")
        if pin is None or len(pin) >= self.pin_chars or (before is not None and before["pin"] == pin):
            return
        raise BadParameter("pin", say("pin_too_short", least=self.pin_chars, got=len(pin)))

    async def create_claimed(self, actor: Actor, values: Mapping[str, Any], key_id: int) -> Row:
        """Stores a terminal that came in by a claim key, and counts the use of the key.

        Raises:
            Conflict: the uid is taken, or the key has no use left.
        """
        return await self._create(actor, values, {"claim_key_id": key_id})

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        await super()._guard(connection, actor, draft, before)
        if before is None and draft.get("claim_key_id"):
            await count_use(connection, draft["claim_key_id"], self._clock())

    async def _added(self, connection: AsyncConnection, ids: Sequence[int]) -> None:
        """Names the series of new terminals whose uid a deleted one had: they begin anew."""
        table = self.table
        own = table.c.uid + MARK + sa.cast(table.c.id, sa.String)
        statement = table.update().where(one_of(table.c.id, ids)).values(series=own)
        if self.is_past_known:
            statement = statement.where(sa.exists().where(FORMER_TERMINAL.c.uid == table.c.uid))
        await connection.execute(statement)
        tagged = sa.select(table.c.id, table.c.tags).where(one_of(table.c.id, ids), table.c.tags != "[]")
        found = await connection.execute(tagged)
        await self.write_tags(connection, {row.id: msgspec.json.decode(row.tags) for row in found})

    async def _written(self, connection: AsyncConnection, record_id: int, draft: Draft) -> None:
        if "tags" in draft and "uid" not in draft:  # new ones have theirs from ``_added``
            await connection.execute(TERMINAL_TAG.delete().where(TERMINAL_TAG.c.terminal_id == record_id))
            await self.write_tags(connection, {record_id: draft["tags"]})

    async def write_tags(self, connection: AsyncConnection, tags: Mapping[int, Sequence[str]]) -> None:
        """Adds tags of terminals that have none, by the terminal's id, to what lists are searched by."""
        rows = [{"terminal_id": record_id, "tag": tag} for record_id, each in tags.items() for tag in each]
        if rows:
            await connection.execute(TERMINAL_TAG.insert(), rows)

    async def _removed(self, connection: AsyncConnection, row: Row) -> None:
        await self.keep_former(connection, [row])

    async def keep_former(self, connection: AsyncConnection, rows: Sequence[Row]) -> None:
        """Keeps whose the reports of deleted terminals are."""
        former = [
            {name: row[name] for name in ("uid", "name", "type", "created")}
            | {"terminal_id": row["id"], "company_id": row[COMPANY], "series": row["series"] or row["uid"]}
            | {"deleted": self._clock()}
            for row in rows
        ]
        await connection.execute(FORMER_TERMINAL.insert(), former)

    def _forget_deleted(self, changed: RowChange) -> None:
        if changed.row is None:
            self._activated.discard(changed.uid)

    async def _check_unused(self, connection: AsyncConnection, row: Row) -> None:
        await super()._check_unused(connection, row)
        listing = sa.select(OBJECT.table.c.uid).join(OBJECT_TERMINAL, OBJECT_TERMINAL.c.object_id == OBJECT.table.c.id)
        uses = listing.where(OBJECT_TERMINAL.c.terminal_id == row["id"])
        await refuse_if_used(connection, uses, f"terminal {row['uid']}", "object")


def _configured(actor: Actor, configured: Configured) -> sa.Select[tuple[int]]:
    """The record ids of terminals that are so far with their configurations, of the actor's company at least."""
    columns = TERMINAL_CONFIGURATION.c
    query = sa.select(columns.terminal_id)
    if not actor.is_super:
        query = query.where(columns.company_id == actor.company_id)
    if configured == "agrees":
        return query.where(columns.state == CONFIRMED)
    unconfirmed = query.where(columns.state.in_(UNCONFIRMED))
    has_reported = columns.reported_us.is_not(None)
    return unconfirmed.where(has_reported if configured == "differs" else ~has_reported)
