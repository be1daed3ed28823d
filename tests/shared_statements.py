"""Compiled SQL that all of a process's SQLite databases share: each test opens one, and asks the same of it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite

_MOST_STATEMENTS = 3_000

_compiled = sa.util.LRUCache(_MOST_STATEMENTS)


class SharedDialect(SQLiteDialect_aiosqlite):
    """SQLAlchemy's own, with one memory of statements for all engines; by default each engine has its own."""

    supports_statement_cache = True

    def __hash__(self) -> int:
        return hash(SharedDialect)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect)

    @classmethod
    def engine_created(cls, engine: sa.Engine) -> None:
        engine.update_execution_options(compiled_cache=_compiled)


def share_statements() -> None:
    """From now on, in this process."""
    registry.register("sqlite.aiosqlite", __name__, SharedDialect.__name__)
