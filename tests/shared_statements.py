"""Compiled SQL that all databases of a process share: each test opens one, and asks the same of it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite

_MOST_STATEMENTS = 3_000

_compiled = sa.util.LRUCache(_MOST_STATEMENTS)


class _Shared:
    """Makes dialects of a class equal, with one memory of statements for all engines; by default each has its own."""

    def __hash__(self) -> int:
        return hash(type(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    @classmethod
    def engine_created(cls, engine: sa.Engine) -> None:
        engine.update_execution_options(compiled_cache=_compiled)


class SharedSQLite(_Shared, SQLiteDialect_aiosqlite):
    """SQLAlchemy's own."""

    supports_statement_cache = True


class SharedPostgreSQL(_Shared, PGDialect_asyncpg):
    """SQLAlchemy's own; all servers of a process are of one version."""

    supports_statement_cache = True


def share_statements() -> None:
    """From now on, in this process."""
    registry.register("sqlite.aiosqlite", __name__, SharedSQLite.__name__)
    registry.register("postgresql.asyncpg", __name__, SharedPostgreSQL.__name__)
