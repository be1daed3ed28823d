"""Which companies have more than their quotas: what was there before a quota, or before it was lowered, stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.config.limits import LimitsSection
from terrazzo.database.database import Database
from terrazzo.database.entity import COMPANY as OWNER
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import Counted
from terrazzo.metadata.company_limits import NAMES, PREFIX
from terrazzo.metadata.definitions.access import API_KEY
from terrazzo.metadata.definitions.components import UPLOAD
from terrazzo.metadata.definitions.registry import COMPANY, TERMINAL_AUTHORITY
from terrazzo.metadata.definitions.rules import RULE, is_plain
from terrazzo.metadata.event_quotas import EVENTS, LABELS
from terrazzo.metadata.quotas import COUNTED_RECORDS, RECORD_KINDS

MOST_NAMED = 20
"""Of each limit: the others are counted."""
_USED = COMPANY_USAGE.c
_WITH_COMPANIES = COMPANY_USAGE.outerjoin(COMPANY.table, COMPANY.table.c.id == _USED.company_id)
_KEPT = (EVENTS.counted.kind, LABELS.counted.kind)

ALL_COUNTED: Sequence[Counted] = (*COUNTED_RECORDS.values(), EVENTS.counted, LABELS.counted)
"""All that is counted by company."""


class _Counter(NamedTuple):
    """A limit of one of the counters that are kept by company, or by object."""

    key: str  # in ``limits``
    kinds: Sequence[str]
    column: str
    unit: str  # ``{}``: of which kind
    of_object: bool = False


_COUNTERS = (
    _Counter("company_records", RECORD_KINDS, "records", "records of {}"),
    _Counter("company_files", [UPLOAD.name], "records", "files"),
    _Counter("company_file_bytes", [UPLOAD.name], "bytes", "bytes of files"),
    _Counter("company_events", _KEPT, "records", "rows of {}"),
    _Counter("company_event_bytes", _KEPT, "bytes", "bytes of {}"),
    _Counter("object_events", _KEPT, "records", "rows of {}", of_object=True),
    _Counter("company_api_keys", [API_KEY.table.name], "records", "API keys"),
    _Counter("company_authorities", [TERMINAL_AUTHORITY.table.name], "records", "authorities"),
)


class _Over(NamedTuple):
    """Who has too much of what; ``others``: how many more there are who have."""

    who: str
    has: int
    unit: str
    may: int
    others: int


async def find_excesses(database: Database, limits: LimitsSection) -> list[str]:
    """Sentences that name companies and objects, what they have, and the limit."""
    found: list[str] = []
    async with database.reading() as connection:
        for counter in _COUNTERS if await _is_any_over(connection, limits) else ():
            configured = getattr(limits, counter.key)
            found += _say(await _over_counter(connection, counter, configured), counter.key, configured)
        over = await _over_record_bytes(connection, limits.company_record_bytes)
        found += _say(over, "company_record_bytes", limits.company_record_bytes)
        found += _say(await _over_rules(connection, limits.company_rules), "company_rules", limits.company_rules)
    return found


async def _is_any_over(connection: AsyncConnection, limits: LimitsSection) -> bool:
    """One question instead of one for each counter: mostly nobody has too much of anything."""
    over = [_is_over(counter, _limit_of(counter.key, getattr(limits, counter.key))) for counter in _COUNTERS]
    query = sa.select(sa.literal(1)).select_from(_WITH_COMPANIES).where(sa.or_(*over)).limit(1)
    return (await connection.execute(query)).first() is not None


def _is_over(counter: _Counter, may: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    of_what = _USED.part > 0 if counter.of_object else _USED.part == 0
    return sa.and_(of_what, _USED.kind.in_(counter.kinds), _USED[counter.column] > may)


async def _over_counter(connection: AsyncConnection, counter: _Counter, configured: int) -> list[_Over]:
    may, has = _limit_of(counter.key, configured), _USED[counter.column]
    query = sa.select(_USED.company_id, _USED.kind, _USED.part, has, may, sa.func.count().over())
    query = query.select_from(_WITH_COMPANIES).where(_is_over(counter, may))
    return [
        _Over(_who(row[0], row[2]), row[3], counter.unit.format(row[1]), row[4], row[5] - MOST_NAMED)
        for row in await _first(connection, query, has)
    ]


async def _over_record_bytes(connection: AsyncConnection, configured: int) -> list[_Over]:
    total = sa.func.sum(_USED.bytes)
    may = sa.func.max(_limit_of("company_record_bytes", configured))
    query = sa.select(_USED.company_id, total, may, sa.func.count().over()).select_from(_WITH_COMPANIES)
    query = query.where(_USED.part == 0, _USED.kind.in_(RECORD_KINDS)).group_by(_USED.company_id)
    return [
        _Over(_who(row[0]), int(row[1]), "bytes of records", row[2], row[3] - MOST_NAMED)
        for row in await _first(connection, query.having(total > may), total)
    ]


async def _over_rules(connection: AsyncConnection, configured: int) -> list[_Over]:
    """Of started rules only those count that are not about events and labels alone, which a column of JSON says."""
    columns = RULE.table.c
    may = _limit_of("company_rules", configured)
    started = columns.is_active == 1
    many = sa.select(columns[OWNER], may).join(COMPANY.table, COMPANY.table.c.id == columns[OWNER]).where(started)
    many = many.group_by(columns[OWNER], COMPANY.table.c[f"{PREFIX}rules"]).having(sa.func.count() > may)
    most: dict[int, int] = {row[0]: row[1] for row in await connection.execute(many)}
    if not most:
        return []
    query = sa.select(columns[OWNER], columns.kinds).where(started, columns[OWNER].in_(most))
    counts: dict[int, int] = {}
    for company_id, kinds in await connection.execute(query):
        if not is_plain(msgspec.json.decode(kinds)):
            counts[company_id] = counts.get(company_id, 0) + 1
    over = sorted((each for each in counts.items() if each[1] > most[each[0]]), key=lambda each: -each[1])
    unit, others = "started rules about terminals, objects and times", len(over) - MOST_NAMED
    return [_Over(_who(company_id), has, unit, most[company_id], others) for company_id, has in over[:MOST_NAMED]]


async def _first(connection: AsyncConnection, query: sa.Select[Any], most: sa.ColumnElement[Any]) -> Sequence[Any]:
    """The rows of those who have most."""
    rows: Sequence[Any] = (
        await connection.execute(query.order_by(most.desc(), _USED.company_id).limit(MOST_NAMED))
    ).all()
    return rows


def _limit_of(key: str, configured: int) -> sa.ColumnElement[int]:
    """A company's limit: the configuration's, or less by its own record."""
    name, most = key.removeprefix("company_"), sa.literal(configured, sa.BigInteger())
    if name not in NAMES:
        return most
    own = COMPANY.table.c[PREFIX + name]
    return sa.case((sa.and_(own > 0, own < configured), own), else_=most)


def _who(company_id: int, part: int = 0) -> str:
    return f"object {part} of company {company_id}" if part else f"company {company_id}"


def _say(over: Sequence[_Over], key: str, configured: int) -> list[str]:
    own = f"its own {PREFIX}{key.removeprefix('company_')}"
    said = [
        f"{each.who} has {each.has:,} {each.unit}, more than {f'limits.{key}' if each.may == configured else own}"
        f" = {each.may:,}: what is there stays"
        for each in over
    ]
    if over and over[0].others > 0:
        said.append(
            f"{over[0].others:,} more have more than limits.{key}, or than their own limit: what is there stays"
        )
    return said
