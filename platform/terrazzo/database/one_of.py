"""``one_of``: a column is one of many values. They are one bound parameter, whatever their number.

``IN`` with a parameter for each value is an internal error beyond 32,767 of them on PostgreSQL, and putting it together
takes milliseconds of the event loop for each thousand.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal


def one_of(column: sa.ColumnElement[Any], values: Collection[int] | Collection[str]) -> sa.ColumnElement[bool]:
    """The clause that a column's value is among these, all integers or all texts; none is among no values."""
    given = list(values)
    if not given:
        return sa.false()
    is_text = isinstance(given[0], str)
    return _OneOf(column, sa.bindparam(None, given, type_=_Values(is_text=is_text), unique=True))


def one_of_given(column: sa.ColumnElement[Any], name: str, *, is_text: bool = False) -> sa.ColumnElement[bool]:
    """The same of integers (texts) that are given with each execution, a list by this name; it may be empty."""
    return _OneOf(column, sa.bindparam(name, type_=_Values(is_text=is_text)))


class _Values(sa.types.TypeDecorator[Any]):
    """A list as a parameter: an array on PostgreSQL, JSON on SQLite."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, *, is_text: bool) -> None:
        super().__init__()
        self.is_text = is_text

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(sa.Text())
        from sqlalchemy.dialects import postgresql  # its engine has loaded it; 2 MB that SQLite has no use for

        return dialect.type_descriptor(postgresql.ARRAY(sa.Text() if self.is_text else sa.BigInteger()))

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return msgspec.json.encode(value).decode() if dialect.name == "sqlite" else value


class _OneOf(sa.ColumnElement[bool]):
    """``column IN (SELECT value FROM json_each(...))`` or ``column = ANY (...)``: an index serves both."""

    inherit_cache = True
    type = sa.Boolean()
    _traverse_internals: Any = [  # noqa: RUF012 - as SQLAlchemy declares it
        ("column", InternalTraversal.dp_clauseelement),
        ("values", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, column: sa.ColumnElement[Any], values: sa.BindParameter[Any]) -> None:
        self.column = column
        self.values = values

    def self_group(self, against: Any = None) -> sa.ColumnElement[Any]:
        """Itself: it has its parentheses, and no index serves ``(...) = 1``, which SQLite's booleans become."""
        return self


@compiles(_OneOf)
def _compile_one_of(element: _OneOf, compiler: Any, **options: Any) -> str:
    column, values = compiler.process(element.column, **options), compiler.process(element.values, **options)
    if compiler.dialect.name == "sqlite":
        return f"({column} IN (SELECT value FROM json_each({values})))"  # nosec B608 - no text of others
    return f"({column} = ANY ({values}))"
