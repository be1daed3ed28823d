"""What changed in the metadata, so that every process on one database hears of it.

Each row says which process made it. A process tells its own parts of its own changes at once, after the commit, and
passes over these rows; only where it was interrupted between the commit and the telling does it hear of them here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.database import Database
from terrazzo.database.own_changes import ORIGIN, MetadataChange
from terrazzo.database.tables.registry import CHANGE
from terrazzo.times import now_us

KEPT_US = 7 * 86_400 * 1_000_000
PAGE = 1_000
_LOCK = 0x7E44A220  # PostgreSQL's advisory lock of whoever records a change


Handler = Callable[[Sequence[MetadataChange]], Awaitable[None]]
"""Takes changes of one entity, at most ``PAGE`` at once, each record only once."""


class ChangesLost(Exception):
    """This process hasn't looked for so long that changes are gone; it has to start again."""


async def record_change(connection: AsyncConnection, change: MetadataChange) -> None:
    """Notes a change inside the transaction that makes it."""
    await record_changes(connection, [change])


async def record_changes(connection: AsyncConnection, changes: Sequence[MetadataChange]) -> None:
    """Notes changes inside the transaction that makes them."""
    if not changes:
        return
    if connection.dialect.name == "postgresql":
        # ids have to become visible in order, or a watcher that has seen 6 would never look for 5
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    options = await connection.run_sync(lambda each: each.get_execution_options())
    common = {"changed_us": now_us(), "origin": options[ORIGIN]}
    await connection.execute(CHANGE.insert(), [{**change._asdict(), **common} for change in changes])
    await connection.execute(CHANGE.delete().where(CHANGE.c.changed_us < common["changed_us"] - KEPT_US))


class ChangeWatcher:
    """Reads the changes of other processes, and tells those who care about an entity.

    ``start`` before the state is loaded, then ``poll`` at least once a second.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._handlers: dict[str, list[Handler]] = {}
        self._seen = 0

    def on(self, entity: str, handler: Handler) -> None:
        """Calls ``handler`` on later changes of this entity (a table's name)."""
        self._handlers.setdefault(entity, []).append(handler)

    async def start(self) -> None:
        """Counts everything until now as seen."""
        async with self._database.reading() as connection:
            self._seen = (await connection.execute(sa.select(sa.func.max(CHANGE.c.id)))).scalar() or 0

    async def poll(self) -> int:
        """Tells of others' changes since the last call, each record once; returns how many changes there were.

        Raises:
            Unavailable: the database doesn't answer; nothing is lost by calling again.
            ChangesLost: see there.
        """
        count = 0
        while changes := await self._next_page():
            by_entity: dict[str, list[MetadataChange]] = {}
            for change in dict.fromkeys(each for each in changes.values() if each is not None):
                by_entity.setdefault(change.entity, []).append(change)
            for entity, its_changes in by_entity.items():
                for handler in self._handlers.get(entity, ()):
                    await handler(its_changes)
            self._seen = max(changes)
            count += len(changes)
        return count

    async def _next_page(self) -> dict[int, MetadataChange | None]:
        """By their numbers; None: this process's own, of which its parts have heard."""
        query = sa.select(CHANGE).where(CHANGE.c.id > self._seen).order_by(CHANGE.c.id).limit(PAGE)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
            if rows and rows[0].id > self._seen + 1:
                await self._check_gap(connection)
        return {row.id: self._to_tell(row) for row in rows}

    def _to_tell(self, row: sa.Row[Any]) -> MetadataChange | None:
        change, own = MetadataChange(row.entity, row.record_id, row.uid), self._database.own
        return None if row.origin == own.origin and own.was_told(change) else change

    async def _check_gap(self, connection: AsyncConnection) -> None:
        """A gap in the ids is a rolled-back transaction, unless the oldest changes are gone too."""
        oldest = (await connection.execute(sa.select(sa.func.min(CHANGE.c.id)))).scalar() or 0
        if self._seen and oldest > self._seen + 1:
            raise ChangesLost(f"changes {self._seen + 1} to {oldest - 1} of the metadata are gone; start again")
