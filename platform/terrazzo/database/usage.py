"""How much each company has of what there are quotas for: counters that are kept with every change, in its transaction.

A change costs one statement, however much there is. Each kind is counted once, at the first start that knows it; all
processes on one database share the counters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of, one_of_given
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.upsert import insert_into

_MARK = 0  # the company of the rows that say what has been counted
_AT_ONCE = 50_000  # ids that one statement counts
_KEYS_AT_ONCE = 300  # that one statement looks for
_ROWS_AT_ONCE = 500


class Use(NamedTuple):
    """A number of records, and the bytes of their texts."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: Use, sign: int = 1) -> Use:
        """Both together; ``sign`` -1: without the other."""
        return Use(self.records + sign * other.records, self.bytes + sign * other.bytes)


class Holder(NamedTuple):
    """Who has something: a company, or an object in it (``part``; 0: all of the company's)."""

    company_id: int
    part: int = 0


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of rows that is counted: whose a row is, of which object, and its size in bytes.

    The expression of the size is asked for when rows are counted: most kinds never are between two starts.
    """

    table: sa.Table
    company: sa.Column[Any]
    size: Callable[[], sa.ColumnElement[int]]
    part: sa.Column[Any] | None = None

    @property
    def kind(self) -> str:
        """Its name in the counters."""
        return self.table.name


class _Octets(GenericFunction[int]):
    """The length of a text in UTF-8; SQLite has ``octet_length`` since 3.43 only."""

    type = sa.BigInteger()
    inherit_cache = True
    name = "terrazzo_octets"


@compiles(_Octets)
def _compile_octets(element: Any, compiler: Any, **options: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **options)})"


@compiles(_Octets, "sqlite")
def _compile_octets_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **options)} AS BLOB))"


def octets(columns: Iterable[sa.Column[Any]]) -> sa.ColumnElement[int]:
    """The size of a row's texts in bytes."""
    total: sa.ColumnElement[int] = sa.literal(0, sa.BigInteger)
    for column in columns:
        total = total + sa.func.coalesce(_Octets(column), 0)
    return total


async def measure(connection: AsyncConnection, counted: Counted, ids: Sequence[int]) -> dict[Holder, Use]:
    """What these rows come to, by company and, where objects are counted too, by object."""
    found: dict[Holder, Use] = {}
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        some = {"record_ids": list(ids[start : start + _ROWS_AT_ONCE])}
        for row in await connection.execute(_sums_of_ids(counted), some):
            for holder in _holders(row):
                found[holder] = found.get(holder, Use()).plus(Use(row.records, row.bytes))
    return found


async def add_use(connection: AsyncConnection, kind: str, grown: Mapping[Holder, Use]) -> dict[Holder, Use]:
    """Adds to the counters (or takes from them), in the transaction of the change; returns what is counted now."""
    if not grown:
        return {}
    holders = sorted(grown)  # always in this order, so that two processes don't wait for each other
    rows = [{**holder._asdict(), "kind": kind, **grown[holder]._asdict()} for holder in holders]
    found = await connection.execute(_adding(connection.dialect.name), rows if rows[1:] else rows[0])
    return {Holder(row.company_id, row.part): Use(row.records, row.bytes) for row in found}


@cache
def _adding(dialect: str) -> sa.Executable:
    new = insert_into(dialect, COMPANY_USAGE)
    sums = {name: COMPANY_USAGE.c[name] + new.excluded[name] for name in ("records", "bytes")}
    statement = new.on_conflict_do_update(index_elements=["company_id", "kind", "part"], set_=sums)
    return cast("sa.Executable", statement.returning(COMPANY_USAGE))


async def use_of(connection: AsyncConnection, kind: str, holders: Sequence[Holder]) -> dict[Holder, Use]:
    """What these have of a kind."""
    columns, found = COMPANY_USAGE.c, dict.fromkeys(holders, Use())
    for start in range(0, len(holders), _KEYS_AT_ONCE):
        some = holders[start : start + _KEYS_AT_ONCE]
        key = sa.tuple_(columns.company_id, columns.part)
        query = sa.select(COMPANY_USAGE).where(columns.kind == kind, key.in_([tuple(each) for each in some]))
        for row in await connection.execute(query):
            found[Holder(row.company_id, row.part)] = Use(row.records, row.bytes)
    return found


async def total_use(connection: AsyncConnection, company_id: int, kinds: Sequence[str]) -> Use:
    """What a company has of several kinds together."""
    asked = {"company_id": company_id}
    return Use(*map(int, (await connection.execute(_total(tuple(kinds)), asked)).one()))


@cache
def _total(kinds: tuple[str, ...]) -> sa.Select[Any]:
    columns = COMPANY_USAGE.c
    of_kinds = one_of(columns.kind, list(map(str, kinds)))  # names of tables are texts of SQLAlchemy's
    mine = (columns.company_id == sa.bindparam("company_id"), of_kinds, columns.part == 0)
    sums = (sa.func.coalesce(sa.func.sum(columns[name]), 0) for name in ("records", "bytes"))
    return sa.select(*sums).where(*mine)


async def count_missing(database: Database, all_counted: Iterable[Counted]) -> list[str]:
    """Counts the kinds that no start has counted yet, each in a transaction of its own; returns their names.

    Those without rows are one transaction together: all of them in a new database.
    """
    async with database.reading() as connection:
        missing = await _without_mark(connection, list(all_counted))
    if not missing:
        return []
    async with _counting(database) as connection:
        missing = await _without_mark(connection, missing)
        full = await _with_rows(connection, missing)
        await _keep(connection, {each.kind: {} for each in missing if each not in full})
    for counted in full:
        async with _counting(database) as connection:
            if await _without_mark(connection, [counted]):
                await _keep(connection, {counted.kind: await _count(connection, counted)})
    return [each.kind for each in missing]


@asynccontextmanager
async def _counting(database: Database) -> AsyncIterator[AsyncConnection]:
    """A transaction; whoever adds to the counters waits for its end."""
    async with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execute(sa.text("LOCK TABLE company_usage IN EXCLUSIVE MODE"))
        yield connection


async def _without_mark(connection: AsyncConnection, all_counted: Sequence[Counted]) -> list[Counted]:
    """The kinds that have not been counted."""
    marks = sa.select(COMPANY_USAGE.c.kind).where(COMPANY_USAGE.c.company_id == _MARK)
    marked = set((await connection.execute(marks)).scalars())
    return [each for each in all_counted if each.kind not in marked]


async def _with_rows(connection: AsyncConnection, all_counted: Sequence[Counted]) -> list[Counted]:
    """The kinds of which there is a row."""
    if not all_counted:
        return []
    rows = sa.select(*(sa.exists().select_from(each.table) for each in all_counted))
    found = (await connection.execute(rows)).one()
    return [each for each, has_rows in zip(all_counted, found, strict=True) if has_rows]


async def _keep(connection: AsyncConnection, found: Mapping[str, Mapping[Holder, Use]]) -> None:
    """Replaces the counters of these kinds, and marks them as counted."""
    await connection.execute(COMPANY_USAGE.delete().where(COMPANY_USAGE.c.kind.in_(list(found))))
    rows = [
        {**holder._asdict(), "kind": kind, **use._asdict()}
        for kind, uses in found.items()
        for holder, use in {Holder(_MARK): Use(), **uses}.items()
    ]
    if rows:
        await connection.execute(COMPANY_USAGE.insert(), rows)


async def _count(connection: AsyncConnection, counted: Counted) -> dict[Holder, Use]:
    """All rows of a kind, a stretch of ids at a time."""
    key, found = counted.table.c.id, dict[Holder, Use]()
    last: int | None = 0
    while last is not None:
        ids = sa.select(key).where(key > last).order_by(key)
        end = (await connection.execute(ids.offset(_AT_ONCE - 1).limit(1))).scalar()
        within = key > last if end is None else sa.and_(key > last, key <= end)
        for row in await connection.execute(_sums(counted).where(within)):
            for holder in _holders(row):
                found[holder] = found.get(holder, Use()).plus(Use(row.records, row.bytes))
        last = end
    return found


def _sums_of_ids(counted: Counted) -> sa.Select[Any]:
    """Of those rows whose ids are given as ``record_ids``; made once for each kind, as each change asks it twice."""
    known = _sums_by_kind.get(counted.kind)
    if known is None:
        known = _sums(counted).where(one_of_given(counted.table.c.id, "record_ids"))
        _sums_by_kind[counted.kind] = known
    return known


_sums_by_kind: dict[str, sa.Select[Any]] = {}


def _sums(counted: Counted) -> sa.Select[Any]:
    part = sa.literal(0).label("part") if counted.part is None else counted.part.label("part")
    columns = (counted.company.label("company_id"), part)
    sums = (sa.func.count().label("records"), sa.func.sum(counted.size()).label("bytes"))
    return sa.select(*columns, *sums).select_from(counted.table).group_by(*columns[: 1 if counted.part is None else 2])


def _holders(row: Any) -> list[Holder]:
    company = Holder(row.company_id)
    return [company] if row.part == 0 else [company, Holder(row.company_id, row.part)]
