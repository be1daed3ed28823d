"""Events as users handle them: their three states, and comments.

==============  ==================================  =========================
to              from                                otherwise
==============  ==================================  =========================
acknowledged    raised                              stays as it is
cleared         raised, acknowledged                stays as it is
==============  ==================================  =========================

Raised and acknowledged events are open. Users acknowledge; users clear, and so does what is said of the event's code
beside its mapping (``cleared_cause`` tells which).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

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
from terrazzo.times import now_us

RAISED, ACKNOWLEDGED, CLEARED = "raised", "acknowledged", "cleared"
COMMENTED = "commented"
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
)


class EventRecords(CompanyRecords):
    """The events of all companies, and what people do about them. Rows have their ``comments``, oldest first.

    ``changes`` tells of each commit, with ``acknowledged``, ``cleared`` or ``commented`` as the kind.
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
        async with self._database.writing() as connection:
            before = await self._item(connection, actor, event_id, lock=True)
            moves = before["state"] in STEPS[state]
            if moves:
                await self._set_state(connection, actor, event_id, state)
            moved = {"state": (before["state"], state)} if moves else {}
            row = await self._settle(connection, actor, before, moved, comment)
        self._tell([state] if moves else [COMMENTED] if comment else [], row)
        return row

    async def comment(self, actor: Actor, event_id: int, comment: str) -> Row:
        """Adds a comment; returns the event's row with it.

        Raises:
            NotFound: no such event.
        """
        async with self._database.writing() as connection:
            before = await self._item(connection, actor, event_id, lock=True)
            row = await self._settle(connection, actor, before, {}, comment)
        self._tell([COMMENTED], row)
        return row

    async def _set_state(self, connection: AsyncConnection, actor: Actor, event_id: int, state: str) -> None:
        change = {"state": state, f"{state}_by": actor.user_id, f"{state}_at": self._clock()}
        if state == CLEARED:
            change |= {"cleared_cause": BY_USER, "clear_at": None}
        await connection.execute(EVENT.update().where(EVENT.c.id == event_id).values(**change))

    async def _settle(
        self, connection: AsyncConnection, actor: Actor, before: Row, moved: Mapping[str, tuple[str, str]], comment: str
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

    def _tell(self, kinds: Sequence[str], row: Row) -> None:
        if kinds:
            self.changes.tell([Happened(kind, dict(row)) for kind in kinds])
