"""Labels as users see them, and closing one by hand."""

from __future__ import annotations

import asyncio
from datetime import tzinfo
from typing import Protocol

import sqlalchemy as sa

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import Field, flag, moment, number, text
from terrazzo.database.port import Row
from terrazzo.database.tables.events import LABEL
from terrazzo.domain.actor import Actor
from terrazzo.errors import NotFound, Unavailable
from terrazzo.reasons import say
from terrazzo.times import now_us

SETTLED_WITHIN_S = 10.0  # how long store and database may take to store the closing

_FIELDS: tuple[Field, ...] = (
    number("object_id"),
    text("terminal_id", 64),
    number("project_id"),
    text("class_id", 64),
    text("template_id", 64),
    text("code", 0),
    text("label_en", 0),
    text("label_cn", 0),
    text("value", 0),
    text("retained", 1),
    moment("opened_at"),
    moment("close_at"),
    flag("by_hand"),
    text("reference", 64),
    moment("created"),
    flag("is_available"),
)
_DERIVED = {
    "retained": sa.case((LABEL.c.close_at.is_(None), sa.literal("1")), else_=sa.literal("0")),
    "template_id": LABEL.c.class_id,  # what the gateway calls it
}


class LabelCloser(Protocol):
    """What keeps labels open and can close them: the mapping engine."""

    def is_label_open(self, object_id: int, project_id: int, code: str) -> bool:
        """Whether the label ``code`` of a retainer script (``project_id``) is open on an object."""

    async def close_label(self, object_id: int, project_id: int, code: str) -> None:
        """Closes a label; returns once the database has it.

        Raises:
            NotFound: no such label is open.
        """


class LabelRecords(CompanyRecords):
    """The labels of all companies, and closing one by hand."""

    def __init__(self, database: Database, closer: LabelCloser, *, zone: tzinfo) -> None:
        super().__init__(database, LABEL, _FIELDS, moment="opened_at", zone=zone, derived=_DERIVED)
        self._closer = closer

    async def close(self, actor: Actor, object_id: int, script: Row, code: str) -> Row:
        """Closes an open label and returns its row after it. The audit entry is written first.

        Args:
            script: the row of its retainer script; the caller has checked that the actor sees it and the object.

        Raises:
            NotFound: no such label is open.
            Unavailable: the label will close, but the database doesn't have it yet.
        """
        named = object_id, script["id"], code
        if not self._closer.is_label_open(*named):
            raise NotFound("code", code)
        await self._note(actor, object_id, script, code)
        try:
            async with asyncio.timeout(SETTLED_WITHIN_S):
                await self._closer.close_label(*named)
        except TimeoutError:
            raise Unavailable(say("label_closes_later")) from None
        columns = self.table.c
        wanted = (columns.object_id == object_id, columns.project_id == script["id"], columns.code == code)
        query = sa.select(self.table).where(*wanted).order_by(columns.id.desc()).limit(1)
        async with self._database.reading() as connection:
            return dict((await connection.execute(query)).mappings().one())

    async def _note(self, actor: Actor, object_id: int, script: Row, code: str) -> None:
        entry = AuditEntry(
            actor=actor,
            company_id=script["permission_company_id"],
            action="update",
            entity="label",
            uid=f"{object_id}/{script['uid']}/{code}"[:96],
            before={"retained": "1"},
            after={"retained": "0", "by_hand": 1},
        )
        async with self._database.writing() as connection:
            await write_entries(connection, [entry], now_us())
