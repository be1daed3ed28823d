"""The change log: through it every process on one database hears of the others' changes of the metadata.

Each row of the table ``change`` says which process made the change (``origin``). A process informs its own parts at
once after its commit and skips these rows, unless it was interrupted between the commit and informing them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.own_changes import ORIGIN, MetadataChange
from terrazzo.database.tables.registry import CHANGE
from terrazzo.times import now_us

KEPT_US = 7 * 86_400 * 1_000_000
PAGE = 1_000
_LOCK = 0x7E44A220  # PostgreSQL's advisory lock of whoever records a change
_NEXT_PAGE = (  # made once: it is asked for twice a second
    sa.select(CHANGE).where(CHANGE.c.id > sa.bindparam("seen")).order_by(CHANGE.c.id).limit(PAGE)
)
_INSERT = CHANGE.insert()
_DELETE_OLD = CHANGE.delete().where(CHANGE.c.changed_us < sa.bindparam("until_us"))


Handler = Callable[[Sequence[MetadataChange]], Awaitable[None]]
"""Takes changes of one entity, at most ``PAGE`` at once, each record only once."""


class ChangesLost(Exception):
    """This process hasn't polled for so long that changes it needed were removed; it has to be restarted."""


async def record_change(connection: AsyncConnection, change: MetadataChange) -> None:
    """Inserts a change into the table ``change``, in the transaction that makes it."""
    await record_changes(connection, [change])


async def record_changes(connection: AsyncConnection, changes: Sequence[MetadataChange]) -> None:
    """Inserts changes into the table ``change``, in the transaction that makes them."""
    if not changes:
        return
    if connection.dialect.name == "postgresql":
        # ids have to become visible in order, or a watcher that has seen 6 would never look for 5
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    options = await connection.run_sync(lambda each: each.get_execution_options())
    common = {"changed_us": now_us(), "origin": options[ORIGIN]}
    await connection.execute(_INSERT, [{**change._asdict(), **common} for change in changes])
    await connection.execute(_DELETE_OLD, {"until_us": common["changed_us"] - KEPT_US})


async def newest_change(database: Database) -> int:
    """The number of the newest change; 0: there is none."""
    async with database.reading() as connection:
        return (await connection.execute(sa.select(sa.func.max(CHANGE.c.id)))).scalar() or 0


class ChangeWatcher:
    """Reads the changes of other processes, and calls the handlers of the entities they are about.

    Call ``start`` before the state is loaded, then ``poll`` at least once a second. ``seen``: the number of the last
    change that the handlers were told of.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._handlers: dict[str, list[Handler]] = {}
        self.seen = 0

    def on(self, entity: str, handler: Handler) -> None:
        """Calls ``handler`` on later changes of this entity (a table's name)."""
        self._handlers.setdefault(entity, []).append(handler)

    async def start(self) -> None:
        """Marks all changes up to now as seen."""
        self.seen = await newest_change(self._database)

    async def poll(self) -> int:
        """Calls the handlers with others' changes since the last call, each record once; returns the number of changes.

        Raises:
            Unavailable: the database doesn't answer; nothing is lost by calling again.
            ChangesLost: changes were removed before this process read them.
        """
        count = 0
        while changes := await self._next_page():
            by_entity: dict[str, list[MetadataChange]] = {}
            for change in dict.fromkeys(each for each in changes.values() if each is not None):
                by_entity.setdefault(change.entity, []).append(change)
            for entity, its_changes in by_entity.items():
                for handler in self._handlers.get(entity, ()):
                    await handler(its_changes)
            self.seen = max(changes)
            count += len(changes)
        return count

    async def _next_page(self) -> dict[int, MetadataChange | None]:
        """The next changes by their ids; None for this process's own whose parts have been informed already."""
        async with self._database.reading() as connection:
            rows = (await connection.execute(_NEXT_PAGE, {"seen": self.seen})).all()
            if rows and rows[0].id > self.seen + 1:
                await self._check_gap(connection)
        return {row.id: self._to_tell(row) for row in rows}

    def _to_tell(self, row: sa.Row[Any]) -> MetadataChange | None:
        change, own = MetadataChange(row.entity, row.record_id, row.uid), self._database.own
        return None if row.origin == own.origin and own.was_told(change) else change

    async def _check_gap(self, connection: AsyncConnection) -> None:
        """Raises ``ChangesLost`` where changes that were not read yet have been removed.

        A gap in the ids alone does not say so: a rolled-back transaction leaves one too.
        """
        oldest = (await connection.execute(sa.select(sa.func.min(CHANGE.c.id)))).scalar() or 0
        if self.seen and oldest > self.seen + 1:
            raise ChangesLost(f"changes {self.seen + 1} to {oldest - 1} of the metadata are gone; start again")
