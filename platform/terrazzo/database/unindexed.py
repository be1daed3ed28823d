"""A column that SQLite finds nothing by, so that it takes the index of a narrower condition beside it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal

from terrazzo.database.port import Conditions

_NAMING = ("=", "in")


class _Unindexed(sa.ColumnElement[Any]):
    """``+column`` on SQLite, which plans without figures of how many rows a value has; PostgreSQL has them."""

    inherit_cache = True
    _traverse_internals: Any = [("column", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 - as SQLAlchemy declares it

    def __init__(self, column: sa.ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(_Unindexed)
def _compile_unindexed(element: _Unindexed, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.column, **options)
    return f"+{column}" if compiler.dialect.name == "sqlite" else str(column)


def beside(column: sa.ColumnElement[Any], conditions: Conditions, narrow: Collection[str]) -> sa.ColumnElement[Any]:
    """The column to compare with one's company: where conditions name records (a field of ``narrow`` equals one of
    some values), all of the company is not to be read for them."""
    named = {name for name, operator, _ in conditions.all_of if operator.strip().lower() in _NAMING}
    named |= {name for name, _ in conditions.within}
    return column if named.isdisjoint(narrow) else _Unindexed(column)
