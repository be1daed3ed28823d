"""Handovers of shifts: what was open and done when somebody left, and what they had to say. None is changed later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import sqlalchemy as sa

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import moment, number, text
from terrazzo.database.port import Row
from terrazzo.database.tables.events import HANDOVER
from terrazzo.domain.actor import Actor
from terrazzo.times import now_us

MOST = 2_000  # of a company; the oldest go when there are more

_FIELDS = (number("user_id"), text("username", 64), moment("since"), moment("created"))


class Handovers(CompanyRecords):
    """Those of all companies.

    Args:
        clock: UTC microseconds.
    """

    def __init__(self, database: Database, *, zone: tzinfo, clock: Callable[[], int] = now_us) -> None:
        super().__init__(database, HANDOVER, _FIELDS, moment="created", zone=zone)
        self._clock = clock

    async def write(self, actor: Actor, *, since_us: int, notes: str, found: str) -> Row:
        """Keeps one.

        Args:
            since_us: when the shift began, UTC microseconds.
            found: what was open and done, JSON.
        """
        now = self._clock()
        row = {
            "company_id": actor.company_id,
            "user_id": actor.user_id,
            "username": actor.username,
            "since": since_us,
            "created": now,
            "notes": notes,
            "found": found,
        }
        async with self._database.writing() as connection:
            inserted = (await connection.execute(HANDOVER.insert().values(row))).inserted_primary_key
            assert inserted is not None
            await write_entries(connection, [_entry(actor, inserted[0])], time_us=now)
            own = HANDOVER.c.company_id == actor.company_id
            kept = sa.select(HANDOVER.c.id).where(own).order_by(HANDOVER.c.id.desc()).limit(1).offset(MOST - 1)
            await connection.execute(HANDOVER.delete().where(own, HANDOVER.c.id < kept.scalar_subquery()))
        return {"id": inserted[0], **row}


def _entry(actor: Actor, record_id: int) -> AuditEntry:
    return AuditEntry(actor=actor, company_id=actor.company_id, action="create", entity="handover", record_id=record_id)
