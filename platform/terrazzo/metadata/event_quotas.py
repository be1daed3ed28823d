"""How many events and labels a company and each object keep: where there are more, the oldest that are over go.

What terminals report is never refused for it. What was there before is not cut to a quota: as much goes as has come.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.config.limits import LimitsSection
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.database.usage import Counted, Holder, Use, add_use, measure, octets
from terrazzo.errors import QuotaExceeded
from terrazzo.metadata.company_limits import CompanyLimits, Limit
from terrazzo.sparse_log import SparseLog

_sparse = SparseLog(logging.getLogger(__name__))
_NO_LIMIT = 2**63 - 1
_AT_ONCE = 500  # rows that one statement looks at and removes


class KeptKind(msgspec.Struct, frozen=True):
    """A table of what objects have had: how it is counted, in which order rows go, which may go, and its texts."""

    counted: Counted
    oldest: tuple[sa.Column[Any], ...]
    is_over: sa.ColumnElement[bool]

    texts: tuple[str, ...]

    @property
    def table(self) -> sa.Table:
        """The table."""
        return self.counted.table

    def measure(self, rows: Iterable[Mapping[str, Any]]) -> dict[Holder, Use]:
        """What new rows come to, by company and by object."""
        found: dict[Holder, Use] = {}
        for row in rows:
            use = Use(1, sum(len(row[name].encode()) for name in self.texts))
            for holder in (Holder(row["company_id"]), Holder(row["company_id"], row["object_id"])):
                found[holder] = found[holder].plus(use) if holder in found else use
        return found


def _texts(table: sa.Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.c if isinstance(column.type, sa.Text))


def _counted(table: sa.Table, size: sa.ColumnElement[int]) -> Counted:
    return Counted(table=table, company=table.c.company_id, part=table.c.object_id, size=lambda: size)


def _size(table: sa.Table) -> sa.ColumnElement[int]:
    return octets(table.c[name] for name in _texts(table))


_COMMENTS = sa.select(sa.func.coalesce(sa.func.sum(octets([EVENT_COMMENT.c.text])), 0))
_COMMENT_BYTES = _COMMENTS.where(EVENT_COMMENT.c.event_id == EVENT.c.id).correlate(EVENT).scalar_subquery()

EVENTS = KeptKind(
    _counted(EVENT, _size(EVENT) + _COMMENT_BYTES), (EVENT.c.created, EVENT.c.id), sa.true(), _texts(EVENT)
)
"""Events, with their comments: the oldest go, in whatever state."""

LABELS = KeptKind(
    _counted(LABEL, _size(LABEL)), (LABEL.c.close_at, LABEL.c.id), LABEL.c.close_at.is_not(None), _texts(LABEL)
)
"""Labels: those that were closed first go; an open one only when it is new, and no closed one is left."""


class EventQuotaStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    events_removed: int = 0
    labels_removed: int = 0
    labels_refused: int = 0  # open ones, which found as many open as there may be
    comments_refused: int = 0


class EventQuotas(msgspec.Struct, kw_only=True):
    """How many events, and how many labels, an object and a company keep, and their bytes by company."""

    of_object: int = _NO_LIMIT
    of_company: int = _NO_LIMIT
    company_bytes: int = _NO_LIMIT
    own: CompanyLimits = msgspec.field(default_factory=CompanyLimits)
    stats: EventQuotaStats = msgspec.field(default_factory=EventQuotaStats)

    @classmethod
    def of(cls, limits: LimitsSection, own: CompanyLimits | None = None) -> EventQuotas:
        """Those of a configuration; ``own``: of companies' records."""
        return cls(
            own=own or CompanyLimits(),
            of_object=limits.object_events,
            of_company=limits.company_events,
            company_bytes=limits.company_event_bytes,
        )

    async def take(self, connection: AsyncConnection, kind: KeptKind, ids: Sequence[int]) -> None:
        """Counts rows off that are about to be deleted."""
        use = await measure(connection, kind.counted, ids)
        await add_use(connection, kind.counted.kind, {holder: Use().plus(each, -1) for holder, each in use.items()})

    async def add(self, connection: AsyncConnection, kind: KeptKind, rows: Sequence[Mapping[str, Any]]) -> set[int]:
        """Counts new rows, and removes as many of the oldest as are over; returns which new ones are gone."""
        grown, ids = kind.measure(rows), [row["id"] for row in rows]
        use = await add_use(connection, kind.counted.kind, grown)
        gone: set[int] = set()
        for holder in sorted(use, key=lambda each: each.part == 0):  # a company after its objects
            over = _over(use[holder], self._limit(holder), grown[holder])
            if over == Use():
                continue
            removed = await self._make_room(connection, kind, holder, over, ids)
            gone |= removed.keys()
            for row_holder, size in removed.values():
                for each in {row_holder, Holder(row_holder.company_id)} & use.keys():
                    use[each] = use[each].plus(Use(1, size), -1)
                    grown[each] = grown[each].plus(Use(1, size), -1)
        return gone.intersection(ids)

    async def add_comment(self, connection: AsyncConnection, company_id: int, object_id: int, text: str) -> None:
        """Counts a comment on an event.

        Raises:
            QuotaExceeded: the company's events and comments are larger than they may be.
        """
        company, size = Holder(company_id), Use(0, len(text.encode()))
        use = await add_use(connection, EVENT.name, {company: size, Holder(company_id, object_id): size})
        limit = self.limit("event_bytes", company_id)
        if use[company].bytes > limit.most:
            self.stats.comments_refused += 1
            raise QuotaExceeded("comment", use[company].bytes, limit.most, "bytes of events", limit.key)

    def limit(self, name: str, company_id: int) -> Limit:
        """What a company may have: by the configuration, or less by its own record."""
        configured = self.of_company if name == "events" else self.company_bytes
        return self.own.limit(company_id, name, configured)

    def _limit(self, holder: Holder) -> Use:
        if holder.part:
            return Use(self.of_object, _NO_LIMIT)
        return Use(*(self.limit(name, holder.company_id).most for name in ("events", "event_bytes")))

    async def _make_room(
        self, connection: AsyncConnection, kind: KeptKind, holder: Holder, over: Use, ids: Sequence[int]
    ) -> dict[int, tuple[Holder, int]]:
        """Removes the oldest of an object or a company, then the newest of those that have just come."""
        table, mine = kind.table, _of(kind, holder)
        removed = await _remove(connection, kind, over, [*mine, kind.is_over], kind.oldest)
        if kind is EVENTS:
            self.stats.events_removed += len(removed)
        else:
            self.stats.labels_removed += len(removed)
            left = _less(over, removed)
            newest = [*mine, one_of(table.c.id, ids)]
            refused = await _remove(connection, kind, left, newest, (table.c.id.desc(),))
            self.stats.labels_refused += len(refused)
            removed |= refused
        who = f"object {holder.part} of company {holder.company_id}" if holder.part else f"company {holder.company_id}"
        names = "limits.company_events, limits.company_event_bytes, limit_events, limit_event_bytes of its record"
        key = "limits.object_events" if holder.part else names
        _sparse.warning("%s: %d of %s removed, more would be over its quota (%s)", who, len(removed), table.name, key)
        return removed


def _of(kind: KeptKind, holder: Holder) -> list[sa.ColumnElement[bool]]:
    counted = kind.counted
    if holder.part and counted.part is not None:
        return [counted.part == holder.part, counted.company == holder.company_id]
    return [counted.company == holder.company_id]


def _over(use: Use, limit: Use, grown: Use) -> Use:
    """How much has to go: what is over, and no more than has come."""
    return Use(*(max(0, min(has - may, new)) for has, may, new in zip(use, limit, grown, strict=True)))


def _less(over: Use, removed: dict[int, tuple[Holder, int]]) -> Use:
    size = sum(each for _, each in removed.values())
    return Use(max(0, over.records - len(removed)), max(0, over.bytes - size))


async def _remove(
    connection: AsyncConnection,
    kind: KeptKind,
    need: Use,
    where: Sequence[sa.ColumnElement[bool]],
    order: Iterable[sa.ColumnElement[Any]],
) -> dict[int, tuple[Holder, int]]:
    """Deletes rows in this order until enough are gone; returns whose they were and their sizes, by id."""
    counted, removed = kind.counted, dict[int, tuple[Holder, int]]()
    assert counted.part is not None
    size = counted.size().label("size")
    query = sa.select(counted.table.c.id, counted.company, counted.part, size).where(*where).order_by(*order)
    while (left := _less(need, removed)) != Use():
        rows = (await connection.execute(query.limit(_AT_ONCE if left.bytes else min(left.records, _AT_ONCE)))).all()
        some: dict[int, tuple[Holder, int]] = {}
        for row_id, company_id, part, size in rows:
            if _less(left, some) == Use():
                break
            some[row_id] = (Holder(company_id, part), size)
        if not some:
            break
        await _delete(connection, kind, some)
        removed |= some
    return removed


async def _delete(connection: AsyncConnection, kind: KeptKind, rows: dict[int, tuple[Holder, int]]) -> None:
    table = kind.table
    await connection.execute(table.delete().where(one_of(table.c.id, rows)))
    if kind is EVENTS:
        await connection.execute(EVENT_COMMENT.delete().where(one_of(EVENT_COMMENT.c.event_id, rows)))
    grown: dict[Holder, Use] = {}
    for holder, size in rows.values():
        for each in {holder, Holder(holder.company_id)}:
            grown[each] = grown.get(each, Use()).plus(Use(1, size), -1)
    await add_use(connection, kind.counted.kind, grown)
