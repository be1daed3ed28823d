"""Finding records by id or uid, and finding out who needs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.entity import Entity
from terrazzo.database.field import MAX_INTEGER, Field, check_storable, shorten
from terrazzo.errors import BadParameter, Conflict

_SHOWN = 3  # users of a record that an error names


def match_key(entity: Entity, key: int | str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[Any]]:
    """The clause that finds a key, and the order that puts the record meant first.

    Text that reads as a number is a uid first, then an id.
    """
    record_id, uid = entity.table.c.id, entity.table.c[entity.uid_name]
    if isinstance(key, int):
        return record_id == (as_id(key) or -1), record_id
    number = as_id(key)
    if number is None:
        return uid == storable(key), record_id
    return sa.or_(uid == key, record_id == number), uid != key


def as_id(key: int | str) -> int | None:
    """The id that a key may be, None for text that doesn't read as one."""
    if isinstance(key, int):
        return key if 0 < key <= MAX_INTEGER else None
    return int(key) if key.isascii() and key.isdigit() and len(key) <= 18 else None


async def find_id(connection: AsyncConnection, entity: Entity, key: Any, *, company: int, field: str) -> int:
    """The id of a record of this company.

    Raises:
        BadParameter: there is none; ``field`` is the column that names it.
    """
    clause, order = match_key(entity, key)
    query = sa.select(entity.table.c.id).where(clause, entity.table.c[entity.company] == company)
    found = (await connection.execute(query.order_by(order).limit(1))).scalar()
    if found is None:
        raise BadParameter(field, f"no {entity.name} {shorten(key)}")
    return int(found)


def users_of(entity: Entity, others: Iterable[Entity]) -> list[tuple[Entity, Field]]:
    """The columns of other entities that name this entity's records."""
    return [(other, field) for other in others for field in other.fields.values() if field.references == entity.name]


async def refuse_if_used(connection: AsyncConnection, uses: sa.Select[Any], record: str, user: str) -> None:
    """Raises ``Conflict`` when the query finds records; its first column is their uid."""
    uids = (await connection.execute(uses.limit(_SHOWN))).scalars().all()
    if not uids:
        return
    total = (await connection.execute(sa.select(sa.func.count()).select_from(uses.subquery()))).scalar_one()
    more = f" and {total - len(uids)} more" if total > len(uids) else ""
    raise Conflict(f"{record} is in use by {user} {', '.join(map(str, uids))}{more}")


def storable(key: str) -> str:
    """A key that no database can hold names nothing, and must not reach one."""
    try:
        check_storable(key)
    except ValueError:
        return ""
    return key
