"""Statements about the rows of an entity, made once: what they are made of is many objects."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

RECORD = "own_record_id"
"""The parameter of statements about one record: its id."""


@cache
def rows_query(table: sa.Table, referenced: tuple[tuple[str, sa.Table, str], ...]) -> sa.Select[Any]:
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
def row_query(table: sa.Table, referenced: tuple[tuple[str, sa.Table, str], ...]) -> sa.Select[Any]:
    """The one of these with the id that is given at its execution."""
    return rows_query(table, referenced).where(table.c.id == sa.bindparam(RECORD))


@cache
def update_query(table: sa.Table) -> sa.Update:
    """Changes the columns that are given at its execution, of the record with the id that is given too."""
    return table.update().where(table.c.id == sa.bindparam(RECORD))
