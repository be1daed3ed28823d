"""Migrates a database to the revision that this version of the platform needs (Alembic)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from terrazzo.async_engine import AsyncEngine
from terrazzo.database.migrations import REVISIONS
from terrazzo.database.trigram_index import ensure_name_search

_LOCK = 0x7E44A221  # PostgreSQL's advisory lock of whoever migrates

_LOCK_NOT_AVAILABLE = "55P03"
_HELD = (
    "database.url: the migration gave up after 5 s, because another program holds a table that it changes"
    " (pg_stat_activity and pg_locks say who); end that one's transaction, and start again: nothing was changed"
)

WRITING = {"terrazzo_writing": True}
"""The execution options that make a connection's transactions writing ones."""


class DatabaseUnusable(Exception):
    """The database can't be opened as it is; ``str()`` says why and what to do."""


class DatabaseOutdated(DatabaseUnusable):
    """The database doesn't exist yet or is older than this version needs; starting the server migrates it."""

    def __init__(self, found: str) -> None:
        super().__init__(f"database.url: {found}; start `terrazzo serve` once, or name the right folder with --data")
        self.found = found


async def require_newest(engine: AsyncEngine) -> None:
    """Raises ``DatabaseUnusable`` unless the database is at the newest revision."""
    revision = await current_revision(engine)
    if revision is None:
        raise DatabaseOutdated("the database is empty")
    if revision not in REVISIONS:
        raise _too_new(revision)
    if revision != REVISIONS[-1]:
        raise DatabaseOutdated(f"the database is at revision {revision} and this version needs {REVISIONS[-1]}")


@asynccontextmanager
async def _turn(engine: AsyncEngine) -> AsyncIterator[None]:
    """Holds PostgreSQL's advisory lock, so that one process at a time migrates; SQLite's own write lock suffices."""
    if engine.dialect.name != "postgresql":
        yield
        return
    async with engine.connect() as connection:
        await connection.execute(sa.select(sa.func.pg_advisory_lock(_LOCK)))
        await connection.commit()  # the lock is the session's; an open transaction would only be in the way
        try:
            yield
        finally:
            await connection.execute(sa.select(sa.func.pg_advisory_unlock(_LOCK)))


async def migrate(engine: AsyncEngine) -> None:
    """Applies the missing migrations; of several processes that start at once, one does it.

    SQLite: a migration that fails because another process was faster counts as done.

    Raises:
        DatabaseUnusable: the database was written by a newer version, or another program holds its tables.
    """
    async with _turn(engine):
        await _migrate(engine)
        await ensure_name_search(engine)


async def _migrate(engine: AsyncEngine) -> None:
    revision = await current_revision(engine)
    while revision != REVISIONS[-1]:
        if revision is not None and revision not in REVISIONS:
            raise _too_new(revision)
        before = revision
        try:
            async with engine.execution_options(**WRITING).connect() as connection:
                await connection.run_sync(_upgrade)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise DatabaseUnusable(_HELD) from error
            revision = await current_revision(engine)
            if revision == before:
                raise
        else:
            revision = await current_revision(engine)


async def current_revision(engine: AsyncEngine) -> str | None:
    """The database's revision, None for an empty one."""
    async with engine.connect() as connection:
        if not await connection.run_sync(lambda sync: sa.inspect(sync).has_table("alembic_version")):
            return None
        return (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar()


def _too_new(revision: str) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"database.url: the database is at revision {revision}, newer than this version of Terrazzo knows "
        f"({REVISIONS[-1]}); install the version that wrote it, or restore a backup"
    )


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command  # costs 0.2 s, and only a new version needs it
    from alembic.config import Config

    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
