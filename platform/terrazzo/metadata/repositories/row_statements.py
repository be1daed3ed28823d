"""Statements about the rows of an entity, made once: what they are made of is many objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from terrazzo.database.entity import Entity
from terrazzo.domain.actor import Actor
from terrazzo.metadata.lookup import key_clause
from terrazzo.metadata.quotas import COUNTED_RECORDS

RECORD = "own_record_id"
"""The parameter of statements about one record: its id."""

References = tuple[tuple[str, sa.Table, str], ...]
"""What an entity refers to: by name of the reference, table, column of its uid."""

OWNER = "own_company"
"""The parameter of statements about what one company has: its id."""

SIZE = "own_size"
"""The column of ``measured_query`` with the bytes that a record counts for."""


@cache
def rows_query(table: sa.Table, referenced: References) -> sa.Select[Any]:
    """All records of an entity with the uids of what they refer to: by name of the reference, table, column of its uid.

    Kept for each declared entity: what they are made of is many objects, and every repository of it asks the same.
    """
    source: sa.FromClause = table
    columns: list[sa.ColumnElement[Any]] = list(table.c)
    for name, other, uid_name in referenced:
        named = other.alias(name)
        source = source.outerjoin(named, named.c.id == table.c[name])
        columns.append(named.c[uid_name].label(f"{name.removesuffix('_id')}_uid"))
    return sa.select(*columns).select_from(source)


@cache
def measured_query(entity: Entity, referenced: References) -> sa.Select[Any]:
    """The same with the bytes that each counts for: a change asks for them with the record, before it and after."""
    rows, counted = rows_query(entity.table, referenced), COUNTED_RECORDS.get(entity.name)
    size = sa.literal(0) if counted is None else counted.size()
    return rows.add_columns(size.label(SIZE))


@cache
def row_query(entity: Entity, referenced: References) -> sa.Select[Any]:
    """The one of these with the id that is given at its execution."""
    return measured_query(entity, referenced).where(entity.table.c.id == sa.bindparam(RECORD))


@cache
def insert_query(table: sa.Table) -> sa.Insert:
    """Adds a record with the columns that are given at its execution, and returns its id."""
    return table.insert().returning(table.c.id)


@cache
def update_query(table: sa.Table) -> sa.Update:
    """Changes the columns that are given at its execution, of the record with the id that is given too."""
    return table.update().where(table.c.id == sa.bindparam(RECORD))


class KeyedQueries:
    """The statements for one record by its key; those that depend on nothing but its form are kept.

    Args:
        is_narrow: whether users see something else than what their company has.
    """

    def __init__(self, entity: Entity, referenced: References, *, is_narrow: bool) -> None:
        self._entity = entity
        self._rows = {False: rows_query(entity.table, referenced), True: measured_query(entity, referenced)}
        self._company = None if is_narrow else entity.table.c[entity.company]
        self._kept: dict[tuple[frozenset[str], bool, bool], sa.Select[Any]] = {}

    def one(
        self,
        given: frozenset[str],
        actor: Actor,
        visible: Callable[[Actor], Sequence[sa.ColumnElement[bool]]],
        *,
        measured: bool,
    ) -> sa.Select[Any]:
        """The record that is meant among those that an actor sees; to be executed with ``OWNER``, too.

        Args:
            given: names of ``key_parameters``.
            visible: what an actor sees, asked where users see something else than their company's.
            measured: with its ``SIZE``.
        """
        if self._company is None:
            return self._make(given, visible(actor), measured=measured)
        place = (given, actor.is_super, measured)
        if place not in self._kept:
            own = () if actor.is_super else (self._company == sa.bindparam(OWNER),)
            self._kept[place] = self._make(given, own, measured=measured)
        return self._kept[place]

    def _make(
        self, given: frozenset[str], visible: Sequence[sa.ColumnElement[bool]], *, measured: bool
    ) -> sa.Select[Any]:
        clause, order = key_clause(self._entity, given)
        return self._rows[measured].where(clause, *visible).order_by(order).limit(1)
