"""Queries that find records by id or uid, and the records that refer to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.entity import Entity
from terrazzo.database.field import MAX_INTEGER, Field, check_storable, shorten
from terrazzo.database.one_of import one_of_given
from terrazzo.database.tables.imports import UNFINISHED_IMPORT
from terrazzo.errors import BadParameter, Conflict
from terrazzo.reasons import say

_SHOWN = 3  # users of a record that an error names


def key_parameters(key: int | str) -> dict[str, int | str]:
    """What ``key_clause`` is to be executed with.

    Text that reads as a number is taken for a uid first, then for an id.
    """
    if isinstance(key, int):
        return {"key_id": as_id(key) or -1}
    number = as_id(key)
    return {"key_uid": storable(key)} if number is None else {"key_uid": key, "key_id": number}


@cache
def key_clause(entity: Entity, given: frozenset[str]) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[Any]]:
    """The SQL condition that a record has a key, and the order in which the record meant comes first.

    ``given``: the names of ``key_parameters``.
    """
    record_id, uid = entity.table.c.id, entity.table.c[entity.uid_name]
    is_id, is_uid = record_id == sa.bindparam("key_id"), uid == sa.bindparam("key_uid")
    if len(given) == 2:
        return sa.or_(is_uid, is_id), uid != sa.bindparam("key_uid")
    return (is_id if "key_id" in given else is_uid), record_id


def as_id(key: int | str) -> int | None:
    """The record id that a key can mean; None for text that doesn't read as an integer and for numbers out of range."""
    if isinstance(key, int):
        return key if 0 < key <= MAX_INTEGER else None
    return int(key) if key.isascii() and key.isdigit() and len(key) <= 18 else None


async def find_id(connection: AsyncConnection, entity: Entity, key: Any, *, company: int, field: str) -> int:
    """The id of the company's record with this key (id or uid).

    Raises:
        BadParameter: there is none, or it is being imported; its message starts with ``field``, the column that the
            key was given for.
    """
    asked, is_sqlite = key_parameters(key), connection.dialect.name == "sqlite"
    query = _id_query(entity, frozenset(asked), is_sqlite=is_sqlite)
    found = (await connection.execute(query, {**asked, "key_company": company})).first()
    if found is None:
        raise BadParameter(field, say("no_such_record", entity=entity.name, key=shorten(key)))
    if found.unfinished:
        raise BadParameter(field, say("record_being_imported", entity=entity.name, key=shorten(key)))
    return int(found.id)


@cache
def any_id_query(entity: Entity, given: frozenset[str]) -> sa.Select[Any]:
    """The id of the record with a key, whose ever it is; ``given``: the names of ``key_parameters``."""
    clause, order = key_clause(entity, given)
    return sa.select(entity.table.c.id).where(clause).order_by(order).limit(1)


@cache
def _id_query(entity: Entity, given: frozenset[str], *, is_sqlite: bool) -> sa.Select[Any]:
    clause, order = key_clause(entity, given)
    of_company = entity.table.c[entity.company] == sa.bindparam("key_company")
    columns = (entity.table.c.id, is_unfinished(entity, is_sqlite=is_sqlite))
    return sa.select(*columns).where(clause, of_company).order_by(order).limit(1)


@cache
def is_unfinished(entity: Entity, *, is_sqlite: bool) -> sa.ColumnElement[bool]:
    """The column ``unfinished`` of a query for records: whether each is ``being_imported``."""
    if not is_sqlite:
        return sa.false().label("unfinished")
    each = sa.func.json_each(UNFINISHED_IMPORT.c.record_ids).table_valued("value")
    imported = sa.select(each.c.value).select_from(UNFINISHED_IMPORT.join(each, sa.true()))
    return entity.table.c.id.in_(imported.where(UNFINISHED_IMPORT.c.entity == entity.name)).label("unfinished")


async def being_imported(connection: AsyncConnection, entity: Entity, ids: Collection[int]) -> set[int]:
    """Which of these records are of an import that has not come to its end: they may be taken back, and nothing may
    refer to them until then. There are such with SQLite alone, elsewhere an import is one transaction."""
    if not ids or connection.dialect.name != "sqlite":
        return set()
    asked = {"imported_entity": entity.name, "imported_ids": list(ids)}
    return set((await connection.execute(_imported_query(), asked)).scalars())


@cache
def _imported_query() -> sa.Select[Any]:
    each = sa.func.json_each(UNFINISHED_IMPORT.c.record_ids).table_valued("value")
    query = sa.select(each.c.value).select_from(UNFINISHED_IMPORT.join(each, sa.true()))
    is_asked = UNFINISHED_IMPORT.c.entity == sa.bindparam("imported_entity")
    return query.where(is_asked, one_of_given(each.c.value, "imported_ids"))


def users_of(entity: Entity, others: Iterable[Entity]) -> list[tuple[Entity, Field]]:
    """The columns of other entities that refer to this entity, each with its entity."""
    return [(other, field) for other in others for field in other.fields.values() if field.references == entity.name]


async def refuse_if_used(connection: AsyncConnection, uses: sa.Select[Any], record: str, user: str) -> None:
    """Checks that no record refers to ``record``. ``uses``: a query for such records' uids; ``user``: their entity.

    Raises:
        Conflict: there are some; names the first of them.
    """
    uids = (await connection.execute(uses.limit(_SHOWN))).scalars().all()
    if not uids:
        return
    total = (await connection.execute(sa.select(sa.func.count()).select_from(uses.subquery()))).scalar_one()
    more = f" and {total - len(uids)} more" if total > len(uids) else ""
    raise Conflict(say("record_in_use", record=record, user=user, uids=", ".join(map(str, uids)), more=more))


def storable(key: str) -> str:
    """The key; an empty text, which matches nothing, where the key has characters that no database takes (NUL)."""
    try:
        check_storable(key)
    except ValueError:
        return ""
    return key
