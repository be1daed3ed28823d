"""Events as users handle them: their three states, and comments.

==============  ==================================  =========================
to              from                                otherwise
==============  ==================================  =========================
acknowledged    raised                              stays as it is; see below
cleared         raised, acknowledged                stays as it is
==============  ==================================  =========================

Raised and acknowledged events are open. Users acknowledge; users clear, and so does what is said of the event's code
beside its mapping (``cleared_cause`` tells which). One that has cleared itself before anybody acknowledged it can still
be acknowledged: it stays cleared, and says who has seen it and when.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import Field, flag, moment, number, text
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT
from terrazzo.domain.actor import Actor
from terrazzo.domain.events.definition import SEVERITIES
from terrazzo.domain.happened import Happened
from terrazzo.listeners import Listeners
from terrazzo.metadata.event_quotas import EventQuotas
from terrazzo.times import format_iso, now_us

RAISED, ACKNOWLEDGED, CLEARED = "raised", "acknowledged", "cleared"
COMMENTED, SHELVED = "commented", "shelved"
BY_USER, BY_TIME = "user", "time"
"""Why an event is cleared, besides what its mapping says (``terrazzo.mapping.effects``)."""

STEPS: Mapping[str, frozenset[str]] = {
    ACKNOWLEDGED: frozenset({RAISED}),
    CLEARED: frozenset({RAISED, ACKNOWLEDGED}),
}
"""For each state, the states from which it can be reached."""

_FIELDS: tuple[Field, ...] = (
    number("object_id"),
    text("terminal_id", 64),
    text("code", 0),
    text("label_en", 0),
    text("label_cn", 0),
    text("value", 0),
    text("extension_key", 0),
    text("extension_value", 0),
    text("reference", 64),
    moment("created"),
    flag("is_available"),
    text("state", 16),
    number("acknowledged_by", default=None),
    moment("acknowledged_at"),
    number("cleared_by", default=None),
    moment("cleared_at"),
    number("severity", ranks=SEVERITIES),
    text("cleared_cause", 16),
    moment("clear_at"),
    moment("shelved_until"),
    number("shelved_by", default=None),
)


EventStep = Callable[[AsyncConnection, Row], Awaitable[dict[str, tuple[Any, Any]]]]
"""Changes an event, given its row; returns what it changed: before and after by column, nothing where it stays."""


class EventRecords(CompanyRecords):
    """The events of all companies, and what people do about them. Rows have their ``comments``, oldest first.

    ``changes`` tells of each commit, with ``acknowledged``, ``cleared``, ``shelved`` or ``commented`` as the kind.
    """

    def __init__(
        self, database: Database, *, zone: tzinfo, clock: Callable[[], int] = now_us, quotas: EventQuotas | None = None
    ) -> None:
        super().__init__(database, EVENT, _FIELDS, moment="created", zone=zone)
        self._quotas = quotas or EventQuotas()
        self._clock = clock
        self.changes: Listeners[Sequence[Happened]] = Listeners("changes of events")

    async def move(self, actor: Actor, event_id: int, state: str, *, comment: str = "") -> Row:
        """Acknowledges or clears an event, with an optional comment; returns the event's row after it.

        An event that can't get into ``state`` any more stays as it is: somebody else was first.

        Raises:
            NotFound: no such event.
        """
        return (await self.move_all(actor, [event_id], state, comment=comment))[0]

    async def move_all(self, actor: Actor, event_ids: Sequence[int], state: str, *, comment: str = "") -> list[Row]:
        """As ``move``, several events: all of them, or none where one can't be found."""

        async def step(connection: AsyncConnection, before: Row) -> dict[str, tuple[Any, Any]]:
            if state == ACKNOWLEDGED and _cleared_itself_unseen(before):
                now = self._clock()
                seen = {"acknowledged_by": actor.user_id, "acknowledged_at": now}
                await connection.execute(EVENT.update().where(EVENT.c.id == before["id"]).values(**seen))
                return {"acknowledged_at": (None, _told(now))}
            if before["state"] not in STEPS[state]:
                return {}
            await self._set_state(connection, actor, before["id"], state)
            return {"state": (before["state"], state)}

        return await self._handle(actor, event_ids, state, step, comment)

    async def shelve_all(
        self, actor: Actor, event_ids: Sequence[int], until_us: int | None, *, comment: str = ""
    ) -> list[Row]:
        """Shelves open events until a time (UTC microseconds), or (None) takes them off the shelf; returns their rows.

        Nobody is reminded of them before. An event that is cleared stays as it is.

        Raises:
            NotFound: there is one of these no more; nothing is changed.
        """

        async def step(connection: AsyncConnection, before: Row) -> dict[str, tuple[Any, Any]]:
            if before["state"] == CLEARED or before["shelved_until"] == until_us:
                return {}
            values = {"shelved_until": until_us, "shelved_by": None if until_us is None else actor.user_id}
            await connection.execute(EVENT.update().where(EVENT.c.id == before["id"]).values(**values))
            return {"shelved_until": (_told(before["shelved_until"]), _told(until_us))}

        return await self._handle(actor, event_ids, SHELVED, step, comment)

    async def comment(self, actor: Actor, event_id: int, comment: str) -> Row:
        """Adds a comment; returns the event's row with it.

        Raises:
            NotFound: no such event.
        """
        return (await self.comment_all(actor, [event_id], comment))[0]

    async def comment_all(self, actor: Actor, event_ids: Sequence[int], comment: str) -> list[Row]:
        """As ``comment``, several events: all of them, or none where one can't be found."""

        async def step(connection: AsyncConnection, before: Row) -> dict[str, tuple[Any, Any]]:
            return {}

        return await self._handle(actor, event_ids, COMMENTED, step, comment)

    async def _handle(
        self, actor: Actor, event_ids: Sequence[int], kind: str, step: EventStep, comment: str
    ) -> list[Row]:
        """Does a step with each event, in one transaction; ``kind`` is told of where the step changed something."""
        rows, told = [], list[Happened]()
        async with self._database.writing() as connection:
            for event_id in sorted(set(event_ids)):  # always in this order, so that two don't wait for each other
                before = await self._item(connection, actor, event_id, lock=True)
                moved = await step(connection, before)
                row = await self._settle(connection, actor, before, moved, comment)
                rows.append(row)
                if moved or comment:
                    told.append(Happened(kind if moved else COMMENTED, dict(row)))
        if told:
            self.changes.tell(told)
        return rows

    async def _set_state(self, connection: AsyncConnection, actor: Actor, event_id: int, state: str) -> None:
        change = {"state": state, f"{state}_by": actor.user_id, f"{state}_at": self._clock()}
        if state == CLEARED:
            change |= {"cleared_cause": BY_USER, "clear_at": None}
        await connection.execute(EVENT.update().where(EVENT.c.id == event_id).values(**change))

    async def _settle(
        self, connection: AsyncConnection, actor: Actor, before: Row, moved: Mapping[str, tuple[Any, Any]], comment: str
    ) -> Row:
        """Stores the comment and the audit entry; returns the event's row after them."""
        now, event_id = self._clock(), before["id"]
        after = {name: becomes for name, (_, becomes) in moved.items()}
        if comment:
            after["comment"] = comment
            said = {"event_id": event_id, "user_id": actor.user_id, "username": actor.username, "created": now}
            await connection.execute(EVENT_COMMENT.insert().values(**said, text=comment))
            await self._quotas.add_comment(connection, before["company_id"], before["object_id"], comment)
        if after:
            entry = AuditEntry(
                actor=actor,
                company_id=before["company_id"],
                action="update",
                entity="event",
                record_id=event_id,
                uid=str(event_id),
                before={name: was for name, (was, _) in moved.items()} or None,
                after=after,
            )
            await write_entries(connection, [entry], now)
        return await self._item(connection, actor, event_id)

    async def _complete(self, connection: AsyncConnection, rows: list[dict[str, Any]]) -> list[Row]:
        by_id: dict[int, dict[str, Any]] = {row["id"]: row | {"comments": []} for row in rows}
        query = sa.select(EVENT_COMMENT).where(one_of(EVENT_COMMENT.c.event_id, by_id)).order_by(EVENT_COMMENT.c.id)
        for comment in (await connection.execute(query)).mappings() if by_id else ():
            by_id[comment["event_id"]]["comments"].append(dict(comment))
        return list(by_id.values())


def _cleared_itself_unseen(row: Row) -> bool:
    return row["state"] == CLEARED and row["cleared_cause"] not in ("", BY_USER) and row["acknowledged_at"] is None


def _told(time_us: int | None) -> str | None:
    return None if time_us is None else format_iso(time_us)
