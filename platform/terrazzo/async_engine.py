"""SQLAlchemy's engine and connections for a program that awaits them: no more of them than the platform uses.

SQLAlchemy has a package for that, ``sqlalchemy.ext.asyncio``. It loads the whole ORM, which nothing here uses: 6 MB,
and a twentieth of what a start computes. What is here has its names, and means the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.pool import Pool
from sqlalchemy.util import greenlet_spawn

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""Of one execution, or of as many as there are items."""

Result = sa.CursorResult[*tuple[Any, ...]]

T = TypeVar("T")

_ROWS_AT_ONCE = 200  # of a stream


def create_async_engine(url: sa.URL, **options: Any) -> AsyncEngine:
    """An engine for a URL whose driver is one to await, aiosqlite or asyncpg; options as of ``sa.create_engine``."""
    return AsyncEngine(sa.create_engine(url, **options))


class AsyncEngine:
    """A database and the pool of its connections.

    Attributes:
        sync_engine: the engine of SQLAlchemy; what listens to events listens to this one.
    """

    __slots__ = ("sync_engine",)

    def __init__(self, sync_engine: sa.Engine) -> None:
        assert sync_engine.dialect.is_async, sync_engine.dialect.driver
        self.sync_engine = sync_engine

    @property
    def url(self) -> sa.URL:
        """Where the database is."""
        return self.sync_engine.url

    @property
    def dialect(self) -> Dialect:
        """What the database speaks."""
        return self.sync_engine.dialect

    @property
    def pool(self) -> Pool:
        """The connections that are kept open."""
        return self.sync_engine.pool

    def execution_options(self, **options: Any) -> AsyncEngine:
        """The same with options for the connections that it gives."""
        return AsyncEngine(self.sync_engine.execution_options(**options))

    def connect(self) -> AsyncConnection:
        """A connection, which is taken from the pool by ``start`` or as a context."""
        return AsyncConnection(self)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A connection with a transaction that is committed at the end, and rolled back where the block fails."""
        async with self.connect() as connection, connection.begin():
            yield connection

    async def dispose(self) -> None:
        """Closes the connections that nobody has."""
        await greenlet_spawn(self.sync_engine.dispose)


class AsyncConnection:
    """A connection: ``start`` takes it from the pool, ``close`` gives it back; as a context it does both.

    Methods raise what SQLAlchemy's do: ``DBAPIError`` and what is derived from it, and ``TimeoutError`` of
    ``sqlalchemy.exc`` where the pool has none left.

    Attributes:
        sync_connection: the connection of SQLAlchemy; None before the start.
    """

    __slots__ = ("engine", "sync_connection")

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.sync_connection: sa.Connection | None = None

    @property
    def dialect(self) -> Dialect:
        """What the database speaks."""
        return self.engine.dialect

    @property
    def _started(self) -> sa.Connection:
        assert self.sync_connection is not None, "the connection is not started"
        return self.sync_connection

    async def start(self) -> AsyncConnection:
        """Takes it from the pool."""
        assert self.sync_connection is None, "the connection is started already"
        self.sync_connection = await greenlet_spawn(self.engine.sync_engine.connect)
        return self

    async def close(self) -> None:
        """Rolls back what is open, and gives it back to the pool."""
        await greenlet_spawn(self._started.close)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await _to_the_end(self.close(), "database: give back a connection")

    async def execution_options(self, **options: Any) -> AsyncConnection:
        """Sets options of the connection, the isolation level for instance; returns itself."""
        await greenlet_spawn(self._started.execution_options, **options)
        return self

    async def execute(self, statement: sa.Executable, parameters: Parameters = None) -> Result:
        """Executes a statement; its rows have come with the answer."""
        return await greenlet_spawn(self._started.execute, statement, parameters)

    async def scalar(self, statement: sa.Executable, parameters: Parameters = None) -> Any:
        """The first column of the first row; None where there is none."""
        return (await self.execute(statement, parameters)).scalar()

    async def stream(self, statement: sa.Executable, parameters: Parameters = None) -> StreamedRows:
        """Executes a statement whose rows are read as they are asked for."""
        options = {"stream_results": True}
        return StreamedRows(
            await greenlet_spawn(self._started.execute, statement, parameters, execution_options=options)
        )

    async def run_sync(self, work: Callable[..., T], *given: Any) -> T:
        """What ``work`` returns, which is called with the connection of SQLAlchemy and may use it without awaiting."""
        return await greenlet_spawn(work, self._started, *given)

    def begin(self) -> AsyncTransaction:
        """A transaction as a context: committed at the end, rolled back where the block fails."""
        return AsyncTransaction(self._started.begin)

    def begin_nested(self) -> AsyncTransaction:
        """The same inside of a transaction (a savepoint)."""
        return AsyncTransaction(self._started.begin_nested)

    async def commit(self) -> None:
        """Commits what was begun by executing."""
        await greenlet_spawn(self._started.commit)


class AsyncTransaction:
    """A transaction as a context."""

    __slots__ = ("_begin", "_transaction")

    def __init__(self, begin: Callable[[], sa.Transaction]) -> None:
        self._begin = begin
        self._transaction: sa.Transaction | None = None

    async def __aenter__(self) -> Self:
        self._transaction = await greenlet_spawn(self._begin)
        self._transaction.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._transaction is not None
        await greenlet_spawn(self._transaction.__exit__, kind, error, trace)


class StreamedRows:
    """The rows of a statement that are still with the database; to be read before the connection executes another."""

    __slots__ = ("_result",)

    def __init__(self, result: Result) -> None:
        self._result = result

    async def __aiter__(self) -> AsyncIterator[sa.Row[*tuple[Any, ...]]]:
        async for some in self.partitions(_ROWS_AT_ONCE):
            for row in some:
                yield row

    async def partitions(self, size: int) -> AsyncIterator[Sequence[sa.Row[*tuple[Any, ...]]]]:
        """All rows, so many at a time at most."""
        while some := await self.fetchmany(size):
            yield some

    async def fetchmany(self, size: int) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """The next rows, so many at most; none after the last."""
        return await greenlet_spawn(self._result.fetchmany, size)

    async def first(self) -> sa.Row[*tuple[Any, ...]] | None:
        """The first row, None where there is none; the others are left."""
        return await greenlet_spawn(self._result.first)


async def _to_the_end(work: Coroutine[Any, Any, None], name: str) -> None:
    """Awaits ``work`` also where the caller is cancelled meanwhile, who is told afterwards.

    A connection that is given back while nobody waits for it could come into a pool that has been disposed of.
    """
    task, cancelled = asyncio.create_task(work, name=name), None
    while True:
        try:
            await asyncio.shield(task)
            break
        except asyncio.CancelledError as error:
            if task.done():
                raise
            cancelled = error
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled
