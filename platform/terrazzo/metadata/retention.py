"""How long events, labels, commands, messages and audit entries are kept: deleted by age, in small batches with pauses.

What the instance keeps is the most that a company may; a company may keep less (its record's ``retention_...``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.config.sections import RetentionSection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.database.tables.messages import MESSAGE, MESSAGE_FILE
from terrazzo.database.tables.registry import AUDIT, COMMAND, RECORD_LOG
from terrazzo.metadata.definitions.registry import COMPANY
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas, KeptKind
from terrazzo.times import DAY_US

LOOK_S = 600.0  # between two looks
_AT_ONCE = 200  # rows that one transaction deletes
_PAUSE = 4.0  # times as long as a transaction took, others have the database for themselves
_LEAST_PAUSE_S = 0.02

_log = logging.getLogger(__name__)

Column = sa.ColumnElement[Any]


class AgingKind(msgspec.Struct, frozen=True):
    """A table whose rows are deleted by age.

    Attributes:
        name: of the keys, ``retention.<name>`` and a company's ``retention_<name>``.
        time: UTC microseconds; a row without one stays.
        ended: null where a row stays whatever its age.
        is_by_time: an index has its rows in the order of ``time``; else they are looked at in the order of their ids,
            which is that of ``time`` too.
        counted: how its rows are counted, where there are quotas for them.
        parts: columns of other tables with the ids of its rows, which go with them.
    """

    name: str
    table: sa.Table
    time: sa.Column[int]
    ended: sa.Column[int]
    is_by_time: bool
    counted: KeptKind | None = None
    parts: Sequence[sa.Column[int]] = ()


AGING_KINDS = (
    AgingKind("events", EVENT, EVENT.c.created, EVENT.c.created, True, EVENTS, (EVENT_COMMENT.c.event_id,)),
    AgingKind("labels", LABEL, LABEL.c.close_at, LABEL.c.close_at, True, LABELS),
    AgingKind("commands", COMMAND, COMMAND.c.queued_us, COMMAND.c.ended_us, False),
    AgingKind("messages", MESSAGE, MESSAGE.c.created, MESSAGE.c.ended_us, False, None, (MESSAGE_FILE.c.message_id,)),
    AgingKind("audit", AUDIT, AUDIT.c.time, AUDIT.c.time, True),
    AgingKind("audit", RECORD_LOG, RECORD_LOG.c.time, RECORD_LOG.c.time, True),
)


class RetentionStats(msgspec.Struct):
    """Counters for ``/metrics``: rows that were deleted, by kind, and the time that it took."""

    deleted: dict[str, int] = msgspec.field(default_factory=lambda: {kind.name: 0 for kind in AGING_KINDS})
    seconds: float = 0.0


class Cutoff(msgspec.Struct, frozen=True):
    """Rows of a kind before ``before_us`` are deleted: of one company, or (None) of all and of none."""

    kind: AgingKind
    before_us: int
    company_id: int | None = None

    def where(self) -> list[Column]:
        """The rows whose age it is."""
        return [] if self.company_id is None else [self.kind.table.c.company_id == self.company_id]


class Retention:
    """Deletes what is older than it may be. ``run`` goes on where the last one was cut off.

    Args:
        most: what the instance keeps, in days; 0: for ever.
        clock: UTC microseconds.
    """

    def __init__(
        self, database: Database, most: RetentionSection, *, quotas: EventQuotas, clock: Callable[[], int]
    ) -> None:
        self.stats = RetentionStats()
        self._database = database
        self._most = most
        self._quotas = quotas
        self._clock = clock

    async def run(self) -> None:
        """Deletes all that is due.

        Raises:
            Unavailable: the database doesn't answer; what was deleted stays deleted.
        """
        for cutoff in await self._cutoffs():
            count = await self._delete(cutoff)
            if count:
                whose = "all companies" if cutoff.company_id is None else f"company {cutoff.company_id}"
                _log.info("retention: %d %s of %s deleted", count, cutoff.kind.name, whose)

    async def _cutoffs(self) -> list[Cutoff]:
        now_us, table = self._clock(), COMPANY.table
        columns = [table.c.id, *(table.c[f"retention_{kind.name}"] for kind in AGING_KINDS)]
        query = sa.select(*columns).where(sa.or_(*(column > 0 for column in columns[1:]))).order_by(table.c.id)
        async with self._database.reading() as connection:
            companies = (await connection.execute(query)).mappings().all()
        found = []
        for kind in AGING_KINDS:
            most = getattr(self._most, kind.name)
            if most:
                found.append(Cutoff(kind, now_us - most * DAY_US))
            for company in companies:
                days = company[f"retention_{kind.name}"]
                if days and (not most or days < most):
                    found.append(Cutoff(kind, now_us - days * DAY_US, company["id"]))
        return found

    async def _delete(self, cutoff: Cutoff) -> int:
        """Deletes all of a kind that is due, a batch at a time; returns how many rows that was."""
        count, after = 0, 0
        while True:
            began_s = perf_counter()
            rows = await self._look(cutoff, after)
            ids = [row.id for row in rows if row.time < cutoff.before_us and row.ended is not None]
            if ids:
                await self._remove(cutoff.kind, ids)
            took_s = perf_counter() - began_s
            count += len(ids)
            self.stats.deleted[cutoff.kind.name] += len(ids)
            self.stats.seconds += took_s
            if len(rows) < _AT_ONCE or rows[-1].time >= cutoff.before_us:
                return count
            after = rows[-1].id
            await asyncio.sleep(max(_LEAST_PAUSE_S, _PAUSE * took_s))

    async def _look(self, cutoff: Cutoff, after: int) -> list[Any]:
        async with self._database.reading() as connection:
            return list((await connection.execute(next_batch(cutoff, after))).all())

    async def _remove(self, kind: AgingKind, ids: Sequence[int]) -> None:
        async with self._database.writing() as connection:
            if kind.counted is not None:
                await self._quotas.take(connection, kind.counted, ids)
            for part in kind.parts:
                await connection.execute(part.table.delete().where(one_of(part, ids)))
            await connection.execute(kind.table.delete().where(one_of(kind.table.c.id, ids)))


def next_batch(cutoff: Cutoff, after: int) -> sa.Select[Any]:
    """The rows to look at next: ``id``, ``time`` and ``ended``; ``after``: the id of the last that was looked at."""
    kind = cutoff.kind
    query = sa.select(kind.table.c.id, kind.time.label("time"), kind.ended.label("ended")).limit(_AT_ONCE)
    if kind.is_by_time:  # those that were looked at are gone
        return query.where(*cutoff.where(), kind.time < cutoff.before_us).order_by(kind.time)
    return query.where(*cutoff.where(), kind.table.c.id > after).order_by(kind.table.c.id)
