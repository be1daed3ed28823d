"""``UnfinishedImports``: a long import in pieces, so that others may write in between, and still all or nothing.

An SQLite database has one writer. An import of 100,000 records in one transaction would have everybody's events,
commands and logins wait for half a minute. In pieces it is on the record which ones it has made; the last transaction
strikes them off that record, and whatever is on it and not being written is taken back: after an error at once, after
a kill at the next start. Until its end nothing may refer to a record of it (``metadata.lookup.being_imported``).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.entity import new_uid
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.imports import UNFINISHED_IMPORT
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import Conflict, OperationError
from terrazzo.metadata.repositories.repository import EntityRepository, Unit

LOOK_S = 60.0  # between two looks at what could not be undone

_log = logging.getLogger(__name__)
_SHOWN = 3  # uids that a log line names
_TABLE = UNFINISHED_IMPORT


class UnfinishedImports:
    """The record of imports that are under way, and of those that ended before their end.

    Args:
        repository_of: an entity's repository, by the entity's name.
    """

    def __init__(self, database: Database, repository_of: Callable[[str], EntityRepository]) -> None:
        self._database = database
        self._repository_of = repository_of
        self._under_way: set[str] = set()

    @asynccontextmanager
    async def whole(self, actor: Actor) -> AsyncIterator[Actor]:
        """Around an import; gives the actor with its batch. Whatever ends the block early, its pieces are undone."""
        batch = new_uid()
        self._under_way.add(batch)
        importing = msgspec.structs.replace(actor, batch=batch)
        try:
            yield importing
            async with self._database.writing() as connection:  # from here on it is whole
                await connection.execute(_TABLE.delete().where(_TABLE.c.batch == batch))
        except BaseException as error:  # of any kind, a cancellation too
            _log.info("an import of %s is undone: %s", actor.username, str(error) or type(error).__name__)
            await self._try_to_undo(batch, importing)
            raise
        finally:
            self._under_way.discard(batch)

    async def note(self, unit: Unit, entity: str, record_ids: Sequence[int]) -> None:
        """Notes in the transaction of a piece which records it has made."""
        row = {"batch": unit.actor.batch, "entity": entity, "record_ids": msgspec.json.encode(record_ids).decode()}
        await unit.connection.execute(_TABLE.insert().values(row))

    async def undo_abandoned(self) -> None:
        """Undoes what is on record and not under way, with the platform itself as the one who does it."""
        async with self._database.reading() as connection:
            found = set((await connection.execute(sa.select(_TABLE.c.batch).distinct())).scalars())
        for batch in found - self._under_way:
            _log.warning("an import did not come to its end: what it had written is undone (batch %s)", batch)
            await self._try_to_undo(batch, msgspec.structs.replace(SYSTEM, batch=batch))

    async def _try_to_undo(self, batch: str, actor: Actor) -> None:
        try:
            while await self._undo_piece(batch, actor):
                pass
        except OperationError as error:
            _log.warning("the import %s can't be undone yet, next try in %d s: %s", batch, LOOK_S, error)

    async def _undo_piece(self, batch: str, actor: Actor) -> bool:
        """Deletes the records of the newest piece and strikes it off; False where there is none."""
        query = sa.select(_TABLE).where(_TABLE.c.batch == batch).order_by(_TABLE.c.id.desc()).limit(1)
        async with self._database.reading() as connection:
            piece = (await connection.execute(query)).first()
        if piece is None:
            return False
        repository = self._repository_of(piece.entity)
        async with repository._changing(actor) as unit:
            rows = await _rows(unit.connection, repository, msgspec.json.decode(piece.record_ids, type=list[int]))
            unused, used = await _by_use(unit.connection, repository, rows)
            ids = [row["id"] for row in unused]
            await unit.use.take(unit.connection, ids)
            await unit.connection.execute(repository.table.delete().where(one_of(repository.table.c.id, ids)))
            for row in unused:
                await repository._removed(unit.connection, row)
                await repository._record(unit, row, None)
            await unit.connection.execute(_TABLE.delete().where(_TABLE.c.id == piece.id))
        if used:
            names = ", ".join(str(row[repository.entity.uid_name]) for row in used[:_SHOWN])
            _log.warning("%d records of an undone import stay, as others refer to them: %s", len(used), names)
        return True


async def _rows(connection: AsyncConnection, repository: EntityRepository, ids: Sequence[int]) -> list[Row]:
    """Those of the records that are still there."""
    found = await connection.execute(repository._rows.where(one_of(repository.table.c.id, ids)))
    return [repository._codec.decode(row) for row in found.mappings()]


async def _by_use(
    connection: AsyncConnection, repository: EntityRepository, rows: Sequence[Row]
) -> tuple[list[Row], list[Row]]:
    """The records that nothing refers to, and those that somebody has used meanwhile."""
    unused, used = [], []
    for row in rows:
        try:
            await repository._check_unused(connection, row)
        except Conflict:
            used.append(row)
        else:
            unused.append(row)
    return unused, used
