"""What is open of terminals and objects in the database, with the notices of it; and the platform's heartbeat."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.messages import HEARTBEAT, RULE_CONDITION, RULE_NOTICE
from terrazzo.rules.command_store import add_commands
from terrazzo.rules.open_conditions import ConditionKey, OpenCondition

_columns = RULE_CONDITION.c
_AT_ONCE = 1_000  # rows that are deleted by one statement


class ConditionChanges(NamedTuple):
    """What a look has found: conditions that open and end, and rows of ``rule_notice``."""

    opened: list[tuple[ConditionKey, OpenCondition]]
    ended: list[ConditionKey]
    notices: list[dict[str, Any]]
    commands: list[dict[str, Any]]  # rows of ``rule_command``


class ConditionStore:
    """Reads and writes the tables ``rule_condition`` and ``heartbeat``. Times in UTC microseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def every(self) -> list[tuple[ConditionKey, OpenCondition]]:
        """All that is open."""
        async with self._database.reading() as connection:
            rows = (await connection.execute(sa.select(RULE_CONDITION))).mappings().all()
        return [(_key(row), _condition(row)) for row in rows]

    async def apply(self, changes: ConditionChanges) -> None:
        """Writes what has changed and the notices of it, in one transaction."""
        async with self._database.writing() as connection:
            if changes.opened:
                await connection.execute(RULE_CONDITION.insert(), [_row(*each) for each in changes.opened])
            await _end(connection, changes.ended)
            if changes.notices:
                await connection.execute(RULE_NOTICE.insert(), changes.notices)
            await add_commands(connection, changes.commands)

    async def end_of_rules(self, rule_ids: Collection[int]) -> None:
        """Forgets all that is open of these rules."""
        async with self._database.writing() as connection:
            await connection.execute(RULE_CONDITION.delete().where(one_of(_columns.rule_id, rule_ids)))

    async def last_beat_us(self) -> int | None:
        """When the platform was last known to run; None at its first start."""
        async with self._database.reading() as connection:
            found: int | None = (await connection.execute(sa.select(HEARTBEAT.c.time_us))).scalar()
        return found

    async def beat(self, now: int, notices: Sequence[dict[str, Any]] = ()) -> None:
        """The platform runs; with the notices of how long it did not."""
        async with self._database.writing() as connection:
            found = await connection.execute(HEARTBEAT.update().values(time_us=now))
            if not found.rowcount:
                await connection.execute(HEARTBEAT.insert().values(id=1, time_us=now))
            if notices:
                await connection.execute(RULE_NOTICE.insert(), list(notices))


async def _end(connection: AsyncConnection, keys: Sequence[ConditionKey]) -> None:
    kinds = {(key.rule_id, key.kind) for key in keys}
    for rule_id, kind in kinds:
        ids = [_row_subject(key) for key in keys if (key.rule_id, key.kind) == (rule_id, kind)]
        for start in range(0, len(ids), _AT_ONCE):
            some = one_of(_columns.subject_id, ids[start : start + _AT_ONCE])
            where = (_columns.rule_id == rule_id, _columns.kind == kind, some)
            await connection.execute(RULE_CONDITION.delete().where(*where))


def _row_subject(key: ConditionKey) -> int:
    return abs(key.subject)


def _row(key: ConditionKey, condition: OpenCondition) -> dict[str, Any]:
    return {
        "company_id": condition.company_id,
        "rule_id": key.rule_id,
        "kind": key.kind,
        "subject_id": _row_subject(key),
        "since_us": condition.since_us,
        "opened_us": condition.opened_us,
    }


def _key(row: sa.RowMapping) -> ConditionKey:
    sign = -1 if row["kind"].startswith("object_") else 1
    return ConditionKey(row["rule_id"], row["kind"], sign * row["subject_id"])


def _condition(row: sa.RowMapping) -> OpenCondition:
    times = (row["since_us"], row["opened_us"], row["opened_us"])
    return OpenCondition(row["company_id"], *times)
