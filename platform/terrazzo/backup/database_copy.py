"""A copy of the database as it is at one moment, made while it goes on: SQLite's backup interface, or ``pg_dump``."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from terrazzo.database.database import FILE, Database
from terrazzo.errors import Unavailable

DUMP = "database.dump"
"""The file of a backup that ``pg_restore`` reads."""

_PAGES = 2_000  # copied in one go: about 8 MB
_TOOL_S = 6 * 3_600.0


class DatabaseCopy(Protocol):
    """One moment of the database, kept until ``close``."""

    kind: str

    async def write(self, folder: Path) -> dict[str, int]:
        """Writes the copy into a folder; the number of rows by table.

        Raises:
            Unavailable: it can't be made; says why.
        """

    async def close(self) -> None:
        """Lets the moment go."""


async def begin_copy(database: Database) -> DatabaseCopy:
    """Holds the present moment; what changes later is not in the copy.

    Raises:
        Unavailable: the database can't be read.
    """
    file = database.sqlite_file
    if file is None:
        return await PostgreSQLCopy.begin(database)
    return await asyncio.to_thread(SQLiteCopy, file)


class SQLiteCopy:
    """A reader whose transaction holds the moment; the log of changes grows meanwhile."""

    kind = "sqlite"

    def __init__(self, file: Path) -> None:
        with _worded():
            self._source = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                self._source.execute("BEGIN")
                self._source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except BaseException:
                self._source.close()
                raise

    async def write(self, folder: Path) -> dict[str, int]:
        """The file ``terrazzo.db``, checked by SQLite's own ``integrity_check``."""
        return await asyncio.to_thread(self._write, folder / FILE)

    def _write(self, path: Path) -> dict[str, int]:
        with _worded(), closing(sqlite3.connect(path)) as copy:
            self._source.backup(copy, pages=_PAGES)
            copy.execute("PRAGMA journal_mode=DELETE")
        os.chmod(path, 0o600)
        return check_sqlite(path)

    async def close(self) -> None:
        """Ends the transaction."""
        await asyncio.to_thread(self._source.close)


def check_sqlite(path: Path) -> dict[str, int]:
    """The number of rows of each table of a file.

    Raises:
        Unavailable: SQLite finds it damaged, and says where.
    """
    with _worded(), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
        found = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(5)")]
        if found != ["ok"]:
            raise Unavailable(f"{path}: {'; '.join(found)}")
        names = [
            str(row[0])
            for row in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        ]
        names = [name for name in names if not name.startswith("sqlite_")]
        # the names are those of the file's own catalogue
        return {name: int(copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for name in names}  # nosec B608


@contextmanager
def _worded() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"database: {error}") from error


class PostgreSQLCopy:
    """A transaction whose snapshot ``pg_dump`` takes over."""

    kind = "postgresql"

    def __init__(self, url: sa.URL, connection: Any, stack: AsyncExitStack, snapshot: str) -> None:
        self._url = url
        self._connection = connection
        self._stack = stack
        self._snapshot = snapshot

    @classmethod
    async def begin(cls, database: Database) -> PostgreSQLCopy:
        """Holds the present moment."""
        find_tool("pg_dump")
        stack = AsyncExitStack()
        try:
            connection = await stack.enter_async_context(database.reading())
            snapshot = str(await connection.scalar(sa.text("SELECT pg_export_snapshot()")))
        except BaseException:
            await stack.aclose()
            raise
        return cls(database.engine.url, connection, stack, snapshot)

    async def write(self, folder: Path) -> dict[str, int]:
        """The file ``database.dump`` in ``pg_dump``'s custom format."""
        rows = await self._rows()
        await run_tool("pg_dump", self._url, "-Fc", f"--snapshot={self._snapshot}", "-f", str(folder / DUMP))
        return rows

    async def _rows(self) -> dict[str, int]:
        tables = (await self._connection.execute(sa.text(_TABLES))).scalars().all()
        counts = {}
        for name in tables:  # those of the server's own catalogue
            statement = sa.select(sa.func.count()).select_from(sa.table(name))
            counts[str(name)] = int(await self._connection.scalar(statement))
        return counts

    async def close(self) -> None:
        """Ends the transaction."""
        await self._stack.aclose()


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"


def find_tool(name: str) -> str:
    """The path of one of PostgreSQL's programs.

    Raises:
        Unavailable: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed: it belongs to the package postgresql-client")
    return found


async def run_tool(name: str, url: sa.URL, *arguments: str) -> None:
    """Runs one of PostgreSQL's programs on a database; the password goes by the environment.

    Raises:
        Unavailable: it fails; with its last words.
    """
    environment = dict(os.environ)
    for variable, value in (("PGPASSWORD", url.password), ("PGHOST", url.host), ("PGPORT", url.port)):
        if value:
            environment[variable] = str(value)
    named = ["-U", url.username] if url.username else []
    program = await asyncio.create_subprocess_exec(
        find_tool(name),
        *named,
        "-d",
        url.database or "",
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TOOL_S):
            _, said = await program.communicate()
    except BaseException:
        if program.returncode is None:
            program.kill()
            await program.wait()
        raise
    if program.returncode:
        words = said.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"{name}: {words[-1] if words else f'exit status {program.returncode}'}")
