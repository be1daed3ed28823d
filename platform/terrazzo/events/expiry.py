"""Clears events whose time is over (``clear_after_s`` of their code), a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.happened import Happened
from terrazzo.events.events import BY_TIME, CLEARED
from terrazzo.listeners import Listeners

LOOK_S = 2.0  # between two looks
_AT_ONCE = 200  # events of one transaction
_IS_ANY_DUE = sa.select(EVENT.c.id).where(EVENT.c.clear_at <= sa.bindparam("now_us")).limit(1)  # made once


class EventExpiryStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    expired: int = 0


class EventExpiry:
    """Clears what is due; ``changes`` tells of each commit, with ``cleared`` as the kind."""

    def __init__(self, database: Database, *, clock: Callable[[], int]) -> None:
        self.stats = EventExpiryStats()
        self.changes: Listeners[Sequence[Happened]] = Listeners("events whose time is over")
        self._database = database
        self._clock = clock

    async def run(self) -> None:
        """Clears all that is due now.

        Raises:
            Unavailable: the database doesn't answer; what was cleared stays cleared.
        """
        while rows := await self._clear_some(self._clock()):
            self.stats.expired += len(rows)
            self.changes.tell([Happened(CLEARED, row) for row in rows])
            if len(rows) < _AT_ONCE:
                return

    async def _clear_some(self, now_us: int) -> list[dict[str, Any]]:
        columns = EVENT.c
        async with self._database.reading() as connection:
            if (await connection.execute(_IS_ANY_DUE, {"now_us": now_us})).first() is None:
                return []
        due = sa.select(columns.id).where(columns.clear_at <= now_us).order_by(columns.clear_at).limit(_AT_ONCE)
        change = {"state": CLEARED, "cleared_at": columns.clear_at, "cleared_cause": BY_TIME, "clear_at": None}
        statement = EVENT.update().where(columns.id.in_(due)).values(**change).returning(*columns)
        async with self._database.writing() as connection:
            return [dict(row) for row in (await connection.execute(statement)).mappings()]
