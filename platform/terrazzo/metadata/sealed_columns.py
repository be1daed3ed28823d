"""Seals stored secrets anew: with a key that replaces another, or columns that were in the clear before.

Each batch is a transaction that takes the rows' present values as its condition: what somebody else has written
meanwhile stays, and wherever this is interrupted, it goes on from what is there.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.crypto.secrets import Secrets, SecretUnreadable, is_sealed
from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind

AT_ONCE = 500  # rows of a transaction
_MOST_NAMED = 20


class Resealed(msgspec.Struct):
    """What one walk has done: secrets sealed anew, and those that no key opens (``entity uid: column``)."""

    count: int = 0
    unreadable_count: int = 0
    unreadable: list[str] = msgspec.field(default_factory=list)

    def fail(self, place: str) -> None:
        """Counts a secret that can't be opened; names the first few."""
        self.unreadable_count += 1
        if len(self.unreadable) < _MOST_NAMED:
            self.unreadable.append(place)


async def reseal(
    database: Database, secrets: Secrets, entities: Iterable[Entity], *, at_once: int = AT_ONCE
) -> Resealed:
    """Seals every secret of these entities that isn't sealed with the newest key."""
    told = Resealed()
    for entity in entities:
        columns = [each.name for each in entity.fields.values() if each.kind is FieldKind.SECRET]
        last = 0 if columns else None
        while last is not None:
            async with database.writing() as connection:
                last = await _batch(connection, secrets, entity, columns, after=last, at_once=at_once, told=told)
    return told


async def _batch(
    connection: AsyncConnection,
    secrets: Secrets,
    entity: Entity,
    columns: list[str],
    *,
    after: int,
    at_once: int,
    told: Resealed,
) -> int | None:
    """Seals the secrets of the rows with the next ids; the last id, None after the last row."""
    table = entity.table
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        await connection.execute(sa.text(f'LOCK TABLE "{table.name}" IN SHARE ROW EXCLUSIVE MODE'))
    wanted = [table.c.id, table.c[entity.uid_name], *(table.c[name] for name in columns)]
    query = sa.select(*wanted).where(table.c.id > after).order_by(table.c.id).limit(at_once)
    found = (await connection.execute(query)).mappings().all()
    for row in found:
        for name in columns:
            place = f"{entity.name}.{name}"
            stored = row[name] or ""
            if secrets.is_newest(stored, place):
                continue
            try:
                text = secrets.unseal(stored, place) if is_sealed(stored) else stored
            except SecretUnreadable:
                told.fail(f"{entity.name} {row[entity.uid_name]}: {name}")
                continue
            unchanged = (table.c.id == row["id"], table.c[name] == stored)
            result = await connection.execute(
                table.update().where(*unchanged).values({name: secrets.seal(text, place)})
            )
            told.count += result.rowcount
    return found[-1]["id"] if len(found) == at_once else None


async def seal_clear(database: Database, secrets: Secrets, entity: Entity) -> int:
    """Seals what an entity's columns of secrets still have in the clear; returns how many records had some."""
    table = entity.table
    columns = [table.c[each.name] for each in entity.fields.values() if each.kind is FieldKind.SECRET]
    clear = sa.or_(*(sa.and_(column != "", column.not_like("1:%")) for column in columns))
    async with database.reading() as connection:
        count = (await connection.execute(sa.select(sa.func.count()).where(clear))).scalar_one()
    if count:
        await reseal(database, secrets, (entity,))
    return int(count)
