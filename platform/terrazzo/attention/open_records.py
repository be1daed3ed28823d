"""``OpenRecords``: what of events, labels and commands waits for somebody, and what a company has of its quotas.

Each count ends at ``MOST_COUNTED``, so that an answer costs the same however much nobody has looked at. Every query
is answered by an index of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.port import Row
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.registry import COMMAND
from terrazzo.database.usage import Holder, Use, use_of
from terrazzo.domain.command import CommandState
from terrazzo.domain.events.definition import SEVERITIES, severity_rank
from terrazzo.domain.terminal import OutOfService
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas
from terrazzo.metadata.out_of_service import is_out_of_service
from terrazzo.metadata.quotas import RecordQuotas, file_use, record_use
from terrazzo.times import DAY_US

MOST_COUNTED = 10_000
HOUR_US = DAY_US // 24
AGES = (("hour", 0, HOUR_US), ("day", HOUR_US, DAY_US), ("week", DAY_US, 7 * DAY_US), ("older", 7 * DAY_US, 2**62))
"""Names of ages: from and up to how old, microseconds."""

EXPIRED_US = DAY_US  # how long an expired command is told
NEAR = 0.8
"""Of a quota: from here on it is told."""

_RAISED = EVENT.c.state == sa.literal_column("'raised'")  # as the partial index has it
_WAITING = (CommandState.QUEUED.value, CommandState.SENT.value)
_COMMAND = (
    "uid", "terminal_id", "object_id", "command", "value", "state", "reason", "queued_us", "expires_us"
)  # fmt: skip


class Waiting(NamedTuple):
    """Rows that wait: counts by name (each ends at ``MOST_COUNTED``), and the first rows."""

    counts: Mapping[str, int]
    rows: Sequence[Row]


class QuotaUse(NamedTuple):
    """What a company has of a limit, by the limit's name."""

    limit_name: str
    has: int
    limit: int


class OpenRecords:
    """Reads what waits, of one company or (None) of all."""

    def __init__(
        self,
        database: Database,
        records: RecordQuotas,
        events: EventQuotas,
        *,
        out_of_service: Mapping[str, OutOfService],
    ) -> None:
        self._database = database
        self._out_of_service = out_of_service
        self._records = records
        self._events = events

    async def labels(self, company_id: int | None, now_us: int, entries: int) -> Waiting:
        """Open labels by age; the oldest first. Not those of terminals that are out of service."""
        mine = [LABEL.c.close_at.is_(None), *_of(LABEL, company_id)]
        if self._out_of_service:
            mine.append(sa.not_(is_out_of_service(LABEL.c.terminal_id, now_us)))
        opened = LABEL.c.opened_at
        oldest_first = LABEL.c.id if company_id is None else opened  # of all companies' another index has them in order
        async with self._database.reading() as connection:
            counts = {
                name: await _count(connection, LABEL, [*mine, opened <= now_us - youngest, opened > now_us - oldest])
                for name, youngest, oldest in AGES[1:]
            }
            counts["hour"] = await _count(connection, LABEL, [*mine, opened > now_us - HOUR_US])
            rows = await _rows(connection, sa.select(LABEL).where(*mine).order_by(oldest_first).limit(entries))
        return Waiting(counts, rows)

    async def events(self, company_id: int | None, now_us: int, entries: int) -> Waiting:
        """Events that nobody has acknowledged or shelved, by severity; the most severe first, of these the latest."""
        shelved = EVENT.c.shelved_until
        mine = [_RAISED, sa.or_(shelved.is_(None), shelved <= now_us), *_of(EVENT, company_id)]
        order = (EVENT.c.severity.desc(), EVENT.c.id.desc())
        async with self._database.reading() as connection:
            counts = {
                name: await _count(connection, EVENT, [*mine, EVENT.c.severity == severity_rank(name)])
                for name in reversed(SEVERITIES)
            }
            rows = await _rows(connection, sa.select(EVENT).where(*mine).order_by(*order).limit(entries))
        return Waiting(counts, rows)

    async def commands(self, company_id: int | None, now_us: int, entries: int) -> Waiting:
        """Commands that wait, and those that expired lately; first those that expired, the latest first."""
        state, expires = COMMAND.c.state, COMMAND.c.expires_us
        columns = [COMMAND.c[name] for name in _COMMAND]
        expired = [state == CommandState.EXPIRED.value, expires >= now_us - EXPIRED_US, *_of(COMMAND, company_id)]
        async with self._database.reading() as connection:
            counts = {"expired": await _count(connection, COMMAND, expired)}
            waiting = [[state == each, *_of(COMMAND, company_id)] for each in _WAITING]
            counts["waiting"] = sum([await _count(connection, COMMAND, where) for where in waiting])
            rows = await _rows(connection, sa.select(*columns).where(*expired).order_by(expires.desc()).limit(entries))
            for where in waiting:
                query = sa.select(*columns).where(*where).order_by(expires).limit(entries - len(rows))
                rows += await _rows(connection, query)
        return Waiting(counts, rows)

    async def near_quotas(self, company_id: int) -> list[QuotaUse]:
        """Of which limits a company has used up most, or more than all."""
        kept = Holder(company_id)
        async with self._database.reading() as connection:
            records = await record_use(connection, company_id)
            files = await file_use(connection, company_id)
            events = [(await use_of(connection, each.counted.kind, [kept]))[kept] for each in (EVENTS, LABELS)]
        return [each for each in self._uses(company_id, records, files, events) if each.has >= NEAR * each.limit]

    def _uses(self, company_id: int, records: Use, files: Use, kept: Sequence[Use]) -> list[QuotaUse]:
        quotas, events = self._records, self._events
        has = (
            ("record_bytes", records.bytes, quotas),
            ("files", files.records, quotas),
            ("file_bytes", files.bytes, quotas),
            ("events", max(each.records for each in kept), events),
            ("event_bytes", max(each.bytes for each in kept), events),
        )
        return [QuotaUse(f"limits.company_{name}", use, whose.limit(name, company_id).most) for name, use, whose in has]


def _of(table: sa.Table, company_id: int | None) -> list[sa.ColumnElement[bool]]:
    return [] if company_id is None else [table.c.company_id == company_id]


async def _count(connection: AsyncConnection, table: sa.Table, where: Sequence[sa.ColumnElement[bool]]) -> int:
    some = sa.select(sa.literal_column("1")).select_from(table).where(*where).limit(MOST_COUNTED).subquery()
    return int((await connection.execute(sa.select(sa.func.count()).select_from(some))).scalar_one())


async def _rows(connection: AsyncConnection, query: sa.Select[Any]) -> list[Row]:
    return [dict(row) for row in (await connection.execute(query)).mappings()]
