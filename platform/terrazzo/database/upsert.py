"""An INSERT that says what becomes of rows that are there, in the words of the database at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    import sqlalchemy as sa


def insert_into(dialect: str, table: sa.Table) -> sqlite.Insert:
    """An INSERT with ``on_conflict_do_update``, which SQLite and PostgreSQL have alike; ``dialect``: its name."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # its engine has loaded it; 2 MB that SQLite has no use for

    return cast(sqlite.Insert, postgresql.insert(table))
