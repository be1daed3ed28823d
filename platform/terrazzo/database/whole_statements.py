"""Statements of SQLite that ask the connection's thread once, where aiosqlite's own cursor asks it four times.

Each question wakes a thread and then the event loop, which takes longer than the short statements that a platform
lives on.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from functools import partial
from typing import Any, Self

import aiosqlite

AT_ONCE = 200
"""Rows that come with a statement; what there is beyond them is read by whoever asks for it."""


def ask_once(connection: Any) -> None:
    """Has the cursors of an aiosqlite connection ask once; it was opened with ``WholeConnection`` as its factory."""
    connection.cursor = partial(WholeCursor, connection)


class WholeConnection(sqlite3.Connection):
    """A connection whose statements are read where they are executed; for the ``factory`` of ``sqlite3.connect``."""

    def execute(self, statement: str, parameters: Any = (), /) -> Any:
        """Executes it and reads its first rows: a ``Begun``."""
        return Begun(super().execute(statement, parameters))


class Begun:
    """A statement's first rows, and its cursor where there may be more of them."""

    __slots__ = ("cursor", "rest", "rows")

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self.cursor = cursor
        try:
            self.rows: deque[Any] = deque(cursor.fetchmany(AT_ONCE) if cursor.description else ())
        except BaseException:
            cursor.close()  # as long as it is open it keeps the connection's lock
            raise
        self.rest = cursor if len(self.rows) == AT_ONCE else None
        if self.rest is None:
            cursor.close()

    def fetchall(self) -> Self:
        """Itself. It is what aiosqlite brings from the thread, together with the execution."""
        return self


class WholeCursor:
    """One statement, as SQLAlchemy asks it of an aiosqlite cursor.

    Attributes:
        description: the columns as in ``sqlite3``; None where there are none.
        rowcount: how many rows were changed; -1 where that is not known.
        lastrowid: the row that was inserted last.
    """

    arraysize = 1

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._rows: deque[Any] = deque()
        self._rest: aiosqlite.Cursor | None = None
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def execute(self, statement: str, parameters: Any = ()) -> Self:
        """Executes it; its first rows come with the answer.

        Raises:
            sqlite3.Error: it is refused, or was interrupted.
        """
        await self.close()
        begun: Any = await self._connection.execute_fetchall(statement, parameters)
        self._rows = begun.rows
        self._rest = None if begun.rest is None else aiosqlite.Cursor(self._connection, begun.rest)
        self._note(begun.cursor)
        return self

    async def executemany(self, statement: str, parameters: Any) -> Self:
        """Executes it once for each of the parameters; raises as ``execute``."""
        await self.close()
        self._note(await self._connection.executemany(statement, parameters))
        return self

    async def fetchone(self) -> Any:
        """The next row; None after the last."""
        return next(iter(await self.fetchmany(1)), None)

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows, so many at most."""
        wanted = self.arraysize if size is None else size
        found = [self._rows.popleft() for _ in range(min(wanted, len(self._rows)))]
        if self._rest is not None and len(found) < wanted:
            found += await self._rest.fetchmany(wanted - len(found))
        return found

    async def fetchall(self) -> list[Any]:
        """All rows that are left."""
        found, self._rows = list(self._rows), deque()
        if self._rest is not None:
            found += await self._rest.fetchall()
            self._note(self._rest)  # a statement that writes and returns has changed the last of its rows now
            await self.close()
        return found

    async def close(self) -> None:
        """Ends a statement whose rows have not all come with it."""
        rest, self._rest = self._rest, None
        if rest is not None:
            await rest.close()

    def _note(self, cursor: sqlite3.Cursor | aiosqlite.Cursor) -> None:
        self.description, self.rowcount, self.lastrowid = cursor.description, cursor.rowcount, cursor.lastrowid
