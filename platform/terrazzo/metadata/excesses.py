"""Which companies have more than their quotas: what was there before a quota, or before it was lowered, stays."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.database import Database
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import Counted
from terrazzo.metadata.company_limits import PREFIX
from terrazzo.metadata.definitions.components import UPLOAD
from terrazzo.metadata.definitions.registry import COMPANY
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas
from terrazzo.metadata.quotas import COUNTED_RECORDS, RECORD_KINDS, RecordQuotas

MOST_NAMED = 20
_WITH_COMPANIES = COMPANY_USAGE.outerjoin(COMPANY.table, COMPANY.table.c.id == COMPANY_USAGE.c.company_id)

ALL_COUNTED: Sequence[Counted] = (*COUNTED_RECORDS.values(), EVENTS.counted, LABELS.counted)
"""All that is counted by company."""


async def find_excesses(database: Database, quotas: RecordQuotas, events: EventQuotas) -> list[str]:
    """Sentences that name companies, what they have, and the limit; the first ``MOST_NAMED``."""
    kept = [EVENTS.counted.kind, LABELS.counted.kind]
    records, size = COMPANY_USAGE.c.records, COMPANY_USAGE.c.bytes
    queries = (
        (RECORD_KINDS, records, "records", "company_records", quotas.records),
        ([UPLOAD.name], records, "files", "company_files", quotas.files),
        ([UPLOAD.name], size, "bytes of files", "company_file_bytes", quotas.file_bytes),
        (kept, records, "rows", "company_events", events.of_company),
        (kept, size, "bytes", "company_event_bytes", events.company_bytes),
    )
    found: list[str] = []
    async with database.reading() as connection:
        for kinds, column, unit, key, limit in queries:
            may = _limit_of(key, limit)
            where = (COMPANY_USAGE.c.part == 0, COMPANY_USAGE.c.kind.in_(kinds), column > may)
            query = sa.select(COMPANY_USAGE, may.label("may")).select_from(_WITH_COMPANIES).where(*where)
            for row in await connection.execute(query.limit(MOST_NAMED)):
                what = unit if kinds == [UPLOAD.name] else f"{unit} of {row.kind}"
                found.append(_say(row.company_id, getattr(row, column.name), what, key, row.may, limit))
        found += await _of_all_records(connection, quotas.record_bytes)
    return found[:MOST_NAMED]


async def _of_all_records(connection: AsyncConnection, limit: int) -> list[str]:
    columns, total = COMPANY_USAGE.c, sa.func.sum(COMPANY_USAGE.c.bytes)
    key = "company_record_bytes"
    may = sa.func.max(_limit_of(key, limit))
    query = sa.select(columns.company_id, total, may).select_from(_WITH_COMPANIES)
    query = query.where(columns.part == 0, columns.kind.in_(RECORD_KINDS))
    query = query.group_by(columns.company_id).having(total > may).limit(MOST_NAMED)
    over = (await connection.execute(query)).all()
    return [_say(company_id, size, "bytes of records", key, may, limit) for company_id, size, may in over]


def _limit_of(key: str, configured: int) -> sa.ColumnElement[int]:
    """A company's limit: the configuration's, or less by its own record."""
    own = COMPANY.table.c[PREFIX + key.removeprefix("company_")]
    return sa.case((sa.and_(own > 0, own < configured), own), else_=sa.literal(configured, sa.BigInteger()))


def _say(company_id: int, has: int, unit: str, key: str, limit: int, configured: int) -> str:
    name = f"limits.{key}" if limit == configured else f"its own {PREFIX}{key.removeprefix('company_')}"
    return f"company {company_id} has {has:,} {unit}, more than {name} = {limit:,}: what is there stays"
