"""Commands that rules give, in the database: written with what they answer to, and marked when they are handed over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import tzinfo
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import AuditEntry
from terrazzo.audit.log import write_entries
from terrazzo.database.company_records import CompanyRecords
from terrazzo.database.database import Database
from terrazzo.database.field import Field, moment, number, text
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.messages import RULE_COMMAND
from terrazzo.rules.rule import Rule

WAITING, SENT, REFUSED = "waiting", "sent", "refused"
MOST_AT_ONCE = 100  # commands that are handed over in a row
MOST_REFUSED = 1_000  # commands that a rule was refused to give and that are kept, the last ones

_columns = RULE_COMMAND.c
_FIELDS: tuple[Field, ...] = (
    number("rule_id"),
    number("cause_id"),
    number("object_id"),
    text("command", 64),
    text("value", 64),
    text("state", 16),
    moment("noted_us"),
    text("reason", 0),
)


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

    async def drop(self, command_ids: Collection[int]) -> None:
        """Forgets commands: nobody wants them any more."""
        async with self._database.writing() as connection:
            await connection.execute(RULE_COMMAND.delete().where(one_of(_columns.id, command_ids)))

    async def refuse(self, command: RuleCommand, why: str, entries: Iterable[AuditEntry], now: int) -> None:
        """A command is not given; ``entries`` say so in the audit log. Of a rule the last ``MOST_REFUSED`` are kept."""
        change = {"state": REFUSED, "reason": why, "refused_us": now}
        of_rule = sa.and_(_columns.rule_id == command.rule_id, _columns.state == REFUSED)
        oldest = sa.select(_columns.id).where(of_rule).order_by(_columns.id.desc()).limit(1).offset(MOST_REFUSED)
        async with self._database.writing() as connection:
            await connection.execute(RULE_COMMAND.update().where(_columns.id == command.id).values(**change))
            last = (await connection.execute(oldest)).scalar()
            if last is not None:
                await connection.execute(RULE_COMMAND.delete().where(of_rule, _columns.id <= last))
            await write_entries(connection, entries, now)

    async def forget_before(self, time_us: int) -> None:
        """Deletes what was handed over or refused before ``time_us``."""
        sent = sa.and_(_columns.state == SENT, _columns.sent_us < time_us)
        refused = sa.and_(_columns.state == REFUSED, _columns.refused_us < time_us)
        async with self._database.writing() as connection:
            await connection.execute(RULE_COMMAND.delete().where(sa.or_(sent, refused)))

    async def _read(self, query: sa.Select[Any]) -> list[RuleCommand]:
        async with self._database.reading() as connection:
            return [_command(row) for row in (await connection.execute(query)).mappings()]


class RuleCommandRecords(CompanyRecords):
    """What commands rules gave, were refused to give and have still to give, as pages."""

    def __init__(self, database: Database, *, zone: tzinfo) -> None:
        super().__init__(database, RULE_COMMAND, _FIELDS, moment="noted_us", zone=zone)


def _command(row: sa.RowMapping) -> RuleCommand:
    return RuleCommand(**{name: row[name] for name in RuleCommand.__struct_fields__})
