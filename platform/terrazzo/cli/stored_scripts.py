"""Stored scripts that would be refused if they were saved now; they work on as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.metadata.definitions.registry import CALCULATE, CONTROL, MAPPING, RETAINER, STATISTICS

CHECKED: tuple[Entity, ...] = (MAPPING, CONTROL, RETAINER, STATISTICS, CALCULATE)
_AT_ONCE = 100  # rows that one statement reads


class RefusedScript(NamedTuple):
    """A record whose script today's checks refuse, and why: row and column."""

    entity: str
    record_id: int
    name: str
    reason: str


async def find_refused_scripts(database: Database) -> AsyncIterator[RefusedScript]:
    """Checks all stored scripts, a few at a time."""
    for entity in CHECKED:
        table, last = entity.table, 0
        while True:
            query = sa.select(table.c.id, table.c.name, table.c.script).where(table.c.id > last)
            async with database.reading() as connection:
                found = (await connection.execute(query.order_by(table.c.id).limit(_AT_ONCE))).all()
            for row in found:
                reason = refusal(entity, row.script)
                if reason is not None:
                    yield RefusedScript(entity.name, row.id, row.name, reason)
            if len(found) < _AT_ONCE:
                break
            last = found[-1].id


def refusal(entity: Entity, script: str | None) -> str | None:
    """Why a script would be refused if it were saved now; None: it would not."""
    field = entity.fields["script"]
    try:
        rows = msgspec.json.decode(script or "[]")
        if field.check is not None:
            field.check(rows)
        for _ in () if field.check_steps is None else field.check_steps(rows):
            pass
    except RecursionError:
        return "nested too deeply"
    except (msgspec.MsgspecError, ValueError) as error:
        return str(error)
    return None
