"""Commands that rules give, in the database: written with what they answer to, and marked when they are handed over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.messages import RULE_COMMAND
from terrazzo.rules.rule import Rule

WAITING, SENT = "waiting", "sent"
MOST_AT_ONCE = 100  # commands that are handed over in a row

_columns = RULE_COMMAND.c


class RuleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``rule_command``. Times in UTC microseconds; ``cause_id``: the object that it happened on, or 0."""

    id: int
    company_id: int
    rule_id: int
    cause_id: int
    object_id: int
    command: str
    value: str
    noted_us: int
    expires_us: int
    run_us: int | None


def command_rows(rule: Rule, cause_id: int, now: int, run_us: int | None = None) -> list[dict[str, Any]]:
    """New rows of ``rule_command``, one for each object that the rule commands. ``cause_id``: where it happened."""
    objects = sorted(rule.command_objects) or [cause_id]
    return [
        {
            "company_id": rule.company_id,
            "rule_id": rule.id,
            "cause_id": cause_id,
            "object_id": object_id,
            "command": rule.command,
            "value": rule.command_value,
            "state": WAITING,
            "noted_us": now,
            "expires_us": now + rule.command_expiry_s * 1_000_000,
            "run_us": run_us,
        }
        for object_id in objects
    ]


async def add_commands(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """Adds rows inside the transaction of what they answer to."""
    if rows:
        await connection.execute(RULE_COMMAND.insert(), list(rows))


class CommandStore:
    """Reads and writes the table ``rule_command``. Times in UTC microseconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Adds rows in a transaction of their own."""
        async with self._database.writing() as connection:
            await add_commands(connection, rows)

    async def waiting(self) -> list[RuleCommand]:
        """The first ones that wait."""
        query = sa.select(RULE_COMMAND).where(_columns.state == WAITING).order_by(_columns.id).limit(MOST_AT_ONCE)
        return await self._read(query)

    async def sent_since(self, time_us: int) -> list[tuple[RuleCommand, int]]:
        """What was handed over since then, with the time of it, in order."""
        query = sa.select(RULE_COMMAND).where(_columns.sent_us > time_us).order_by(_columns.sent_us)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [(_command(row), row["sent_us"]) for row in rows]

    async def runs_since(self, time_us: int) -> set[tuple[int, int]]:
        """Rules and times of their schedules, after this one, of which the commands were written."""
        query = sa.select(_columns.rule_id, _columns.run_us).where(_columns.run_us > time_us).distinct()
        async with self._database.reading() as connection:
            return {(rule_id, run_us) for rule_id, run_us in await connection.execute(query)}

    async def mark_sent(self, command_id: int, now: int) -> None:
        """A command is in the journal of commands."""
        async with self._database.writing() as connection:
            where = _columns.id == command_id
            await connection.execute(RULE_COMMAND.update().where(where).values(state=SENT, sent_us=now))

    async def drop(self, command_ids: Collection[int], entries: Iterable[AuditEntry], now: int) -> None:
        """Commands are not given; ``entries`` say so in the audit log."""
        async with self._database.writing() as connection:
            await connection.execute(RULE_COMMAND.delete().where(one_of(_columns.id, command_ids)))
            await write_entries(connection, entries, now)

    async def forget_before(self, time_us: int) -> None:
        """Deletes what was handed over before ``time_us``."""
        async with self._database.writing() as connection:
            await connection.execute(RULE_COMMAND.delete().where(_columns.state == SENT, _columns.sent_us < time_us))

    async def _read(self, query: sa.Select[Any]) -> list[RuleCommand]:
        async with self._database.reading() as connection:
            return [_command(row) for row in (await connection.execute(query)).mappings()]


def _command(row: sa.RowMapping) -> RuleCommand:
    return RuleCommand(**{name: row[name] for name in RuleCommand.__struct_fields__})
