"""``Database``: the connection to the metadata, SQLite in the data folder or PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from terrazzo.async_engine import AsyncConnection, AsyncEngine, create_async_engine
from terrazzo.company_turns import CompanyTurns
from terrazzo.database.damaged_file import DatabaseDamaged, is_damage, require_readable
from terrazzo.database.fence import Fence
from terrazzo.database.migration import WRITING, DatabaseOutdated, DatabaseUnusable, migrate, require_newest
from terrazzo.database.own_changes import ORIGIN, OwnChanges
from terrazzo.database.statement_limit import UNLIMITED, limit_statements, was_ended
from terrazzo.database.wal_damage import tell_damage
from terrazzo.database.whole_statements import WholeConnection, ask_once
from terrazzo.database.write_hold import WriteHold
from terrazzo.errors import Unavailable
from terrazzo.ports import at_work
from terrazzo.reasons import say

FILE = "terrazzo.db"
BUSY_TIMEOUT_S = 5.0  # how long SQLite waits for another process's write
KEPT_OPEN, MORE_IN_NEED = 5, 10  # connections to SQLite
POSTGRESQL_CONNECTIONS, POSTGRESQL_MORE = 10, 10
RESERVED = 4  # connections that companies leave to logins and to the platform itself
STATEMENT_S = 10.0  # how long a statement may take
_log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0  # for statements that are under way, twice at most

_MOST_WAITING = 1_000  # requests of a company that wait for the database

_PASSING = ("08", "40", "53", "57")
"""SQLSTATE classes of PostgreSQL: connection lost, serialization failure, out of resources, operator intervention."""

_TRANSLATED = (DBAPIError, PoolTimeout, ConnectionError)
NO_DRIVER = "database.url: PostgreSQL needs asyncpg: pip install 'terrazzo[postgresql]'"
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}


class Database:
    """An open database, migrated to the revision that this version needs."""

    def __init__(self, engine: AsyncEngine, *, statement_s: float = STATEMENT_S, fence: Fence | None = None) -> None:
        self.own = OwnChanges(secrets.token_hex(8))
        self.engine = engine.execution_options(**{ORIGIN: self.own.origin})
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._statement_s = statement_s
        connections = (KEPT_OPEN + MORE_IN_NEED) if self._is_sqlite else POSTGRESQL_CONNECTIONS + POSTGRESQL_MORE
        most = connections - RESERVED
        self.turns = CompanyTurns("database", at_once=most, of_company=most // 2, waiting=_MOST_WAITING)
        # SQLite has one writer at a time: they queue here, not in its busy loop, and company by company
        self._writers = CompanyTurns("database", at_once=1, waiting=_MOST_WAITING)
        self._hold = WriteHold()
        self._fence = fence
        self._inside: set[asyncio.Task[Any] | None] = set()  # that have a connection: they get another without waiting
        self._ending: set[asyncio.Future[Any]] = set()  # of SQLite's threads: what is waited for at the end
        self._empty: WeakSet[Any] = WeakSet()  # places of the pool without a connection
        if self._is_sqlite:
            event.listen(engine.sync_engine, "connect", self._note_end)
            event.listen(engine.sync_engine, "invalidate", self._note_empty)
        limit_statements(engine.sync_engine, statement_s)

    @property
    def refused(self) -> int:
        """How often a company was refused its turn, as too many of its requests waited."""
        return self.turns.refused + self._writers.refused

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        data_dir: Path,
        upgrade: bool = True,
        statement_s: float = STATEMENT_S,
        fence: Fence | None = None,
    ) -> Database:
        """Opens ``url``, by default a SQLite file in ``data_dir``, and applies missing migrations.

        Args:
            url: an SQLAlchemy URL for SQLite or PostgreSQL; empty for the file in ``data_dir``.
            upgrade: False leaves the database as it is, and refuses one that a server hasn't brought up to date.
            statement_s: how long a statement may take, migrations aside.
            fence: of a node among several, for PostgreSQL: it is claimed first, and no transaction writes without it.

        Raises:
            Fenced: another node has a newer epoch.
            DatabaseUnusable: a bad URL, an unreachable server, an unreadable file, another version's database, or one
                that is not as far as the fence knows that it was.
            DatabaseDamaged: SQLite's file is.
        """
        file = await _looked_at(url, data_dir)
        named = "" if fence is None else fence.application_name
        database = cls(_engine(url, data_dir, create=upgrade, named=named), statement_s=statement_s, fence=fence)
        try:
            if fence is not None:
                await fence.claim(database.engine)
            if upgrade:
                await migrate(database.engine.execution_options(**{UNLIMITED: True}))
            else:
                await require_newest(database.engine)
        except (DBAPIError, OSError) as error:
            await database.close()
            if file is not None and is_damage(getattr(error, "orig", None)):
                raise DatabaseDamaged(file, reason_of(error)) from error
            raise DatabaseUnusable(f"database.url: {reason_of(error)}") from error
        except BaseException:
            await database.close()
            raise
        return database

    async def close(self) -> None:
        """Closes all connections, those too whose task was cancelled while they were at a statement."""
        give_up_s = asyncio.get_running_loop().time() + CLOSE_TIMEOUT_S
        while self._in_use() and asyncio.get_running_loop().time() < give_up_s:  # noqa: ASYNC110 - the pool has no event
            await asyncio.sleep(0.005)  # SQLAlchemy gives them back in tasks of its own
        await self._settle()
        disposing = self._noted(self.engine.dispose(), "database: close all connections")
        if (await asyncio.wait({disposing}, timeout=CLOSE_TIMEOUT_S))[0]:
            disposing.result()
        else:
            _log.warning("database: connections were not closed within %g s", CLOSE_TIMEOUT_S)
            disposing.cancel()
        await self._settle()

    async def _settle(self) -> None:
        """Waits for connections that are being opened and threads that are being ended."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=CLOSE_TIMEOUT_S)

    def _in_use(self) -> int:
        pool = self.engine.pool
        return pool.checkedout() if isinstance(pool, sa.QueuePool) else 0

    def _start(self, connection: AsyncConnection) -> Awaitable[object]:
        """Takes it from the pool; where SQLite's has to be opened, out of reach of whoever cancels the caller.

        A connection that is cancelled while it is opened leaves a thread behind, whose end nobody can wait for.
        """
        return self._open(connection) if self._is_sqlite and self._may_open() else connection.start()

    def _may_open(self) -> bool:
        """Whether the next one may have to be opened: none is idle, or the pool keeps the place of one that was closed.

        Where all are in use, the caller waits for one that is given back.
        """
        pool: Any = self.engine.pool
        return len(self._empty) > 0 if pool.checkedin() > 0 else self._in_use() < KEPT_OPEN + MORE_IN_NEED

    async def _open(self, connection: AsyncConnection) -> None:
        opening = self._noted(connection.start(), "database: open a connection")
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._noted(_close_unused(opening, connection), "database: close a connection")
            raise

    def _noted(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A task that the end waits for."""
        task = asyncio.create_task(work, name=name)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def _note_empty(self, _connection: Any, record: Any, _error: Any) -> None:
        """Notes a place of the pool whose connection is closed, because its task was cancelled."""
        self._empty.add(record)

    def _note_end(self, connection: Any, record: Any) -> None:
        """Notes when the connection's thread has ended: a cancelled task's connection is stopped and not waited for."""
        self._empty.discard(record)
        driver = connection.driver_connection
        stop = driver.stop

        def noted_stop() -> asyncio.Future[Any] | None:
            ended: asyncio.Future[Any] | None = stop()
            if ended is not None:
                self._ending.add(ended)
                ended.add_done_callback(self._ending.discard)
            return ended

        driver.stop = noted_stop

    async def check(self) -> None:
        """Returns when the database answers, raises ``Unavailable`` otherwise."""
        async with self.reading() as connection:
            await connection.execute(sa.select(1))

    def reading(self) -> Reading:
        """A transaction that sees one state of the database throughout.

        Raises:
            Unavailable: the database doesn't answer, or a statement took too long.
            Throttled: too much of the company waits for the database already.
        """
        return Reading(self)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at the end of the block, and rolled back when the block fails.

        Raises as ``reading``.
        """
        writers = self._writers.turn(at_work.company_id()) if self._is_sqlite else nullcontext()
        async with self._turn(), writers, self._hold.writing():
            connection = self.engine.connect()
            try:
                await self._start(connection)
                try:
                    await connection.execution_options(**WRITING)
                    async with connection.begin():
                        if self._fence is not None:
                            await self._fence.check(connection)
                        yield connection
                    if self._fence is not None:
                        self._fence.on_committed()
                finally:
                    await connection.__aexit__(None, None, None)
            except _TRANSLATED as error:
                self._raise_translated(error)
                raise

    def held(self) -> AbstractAsyncContextManager[None]:
        """Meanwhile no transaction of this process writes: those under way end first, others wait; for a backup."""
        return self._hold.held()

    @property
    def sqlite_file(self) -> Path | None:
        """The file of an SQLite database; None for PostgreSQL."""
        return Path(self.engine.url.database or "") if self._is_sqlite else None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A company's share of the connections; the platform's own work and logins find those that are reserved."""
        company_id, task = at_work.company_id(), asyncio.current_task()
        if not company_id or task is None or task in self._inside:
            yield
            return
        async with self.turns.turn(company_id):
            self._inside.add(task)
            try:
                yield
            finally:
                self._inside.discard(task)

    def _raise_translated(self, error: BaseException) -> None:
        """Raises what is meant by an error of the database or its driver; returns where that is the error itself.

        Whoever is cancelled meanwhile has that told, and not what became of the connection: the error would take the
        cancellation's place, and a task that goes on after a failure would never end.
        """
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError from error
        if was_ended(error):
            limit = f"{self._statement_s:g} s (limits.statement_s)"
            raise Unavailable(say("statement_took_too_long", limit=limit)) from error
        if isinstance(error, PoolTimeout):
            raise Unavailable(say("database_busy")) from error
        if isinstance(error, _TRANSLATED) and is_passing(error):
            raise Unavailable(say("database_failed", why=reason_of(error))) from error


class Reading:
    """A reading transaction as a context: no generator, which takes several times as long where nobody has to wait."""

    _connection: AsyncConnection | None = None
    _task: asyncio.Task[Any] | None = None  # that has a turn, of the company
    _company_id = 0

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __aenter__(self) -> AsyncConnection:
        database, company_id = self._database, at_work.company_id()
        if company_id and (task := asyncio.current_task()) not in database._inside:
            if not database.turns.begin(company_id):
                await database.turns.wait(company_id)
            self._task, self._company_id = task, company_id
            database._inside.add(task)
        try:
            connection = database.engine.connect()
            await database._start(connection)
            self._connection = connection
            if not database._is_sqlite:
                await connection.execution_options(isolation_level="REPEATABLE READ")
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database, connection = self._database, self._connection
        try:
            if connection is not None:
                self._connection = None
                await connection.__aexit__(kind, error, trace)
        except _TRANSLATED as failed:
            database._raise_translated(failed)
            raise
        finally:
            if self._task is not None:
                database._inside.discard(self._task)
                database.turns.end(self._company_id)
        if isinstance(error, _TRANSLATED):
            database._raise_translated(error)


@asynccontextmanager
async def connected(url: str, *, data_dir: Path) -> AsyncIterator[AsyncConnection]:
    """A transaction on a database as it is, migrated or not; an SQLite file that isn't there is made.

    Raises:
        DatabaseUnusable: it can't be reached, or SQLite's file is damaged; says why.
    """
    await _looked_at(url, data_dir)
    engine = _engine(url, data_dir, create=True)
    try:
        async with engine.begin() as connection:
            yield connection
    except (DBAPIError, OSError) as error:
        raise DatabaseUnusable(f"database.url: {reason_of(error)}") from error
    finally:
        await engine.dispose()


async def _close_unused(opening: asyncio.Task[Any], connection: AsyncConnection) -> None:
    """Gives back a connection whose caller was cancelled while it was opened."""
    with suppress(SQLAlchemyError, OSError):
        await opening
        await connection.close()


def reason_of(error: BaseException) -> str:
    """The database driver's own message, without SQLAlchemy's wrapping."""
    origin = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(origin).split()) or type(origin).__name__


def is_passing(error: Exception) -> bool:
    """Whether the same statement may succeed later. asyncpg has no class for such errors, PostgreSQL's codes say it."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeout | ConnectionError | Unavailable)
    if isinstance(error, OperationalError | InterfaceError):
        return True
    code = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or code.startswith(_PASSING)


def _engine(url: str, data_dir: Path, *, create: bool, named: str = "") -> AsyncEngine:
    parsed = _parse_url(url or f"sqlite:///{data_dir / FILE}")
    if parsed.get_backend_name() == "postgresql":
        try:
            engine = create_async_engine(
                parsed,
                pool_size=POSTGRESQL_CONNECTIONS,
                max_overflow=POSTGRESQL_MORE,
                pool_pre_ping=True,
                connect_args={"server_settings": {"application_name": named}} if named else {},
            )
        except ImportError:
            raise DatabaseUnusable(NO_DRIVER) from None
        event.listen(engine.sync_engine, "connect", _set_planner)
        return engine
    path = Path(parsed.database or "")
    if create:
        _create_private(path)
    elif not path.is_file():
        raise DatabaseOutdated(f"there is no database {path}")
    engine = create_async_engine(
        parsed,
        pool_size=KEPT_OPEN,
        max_overflow=MORE_IN_NEED,
        connect_args={"isolation_level": None, "timeout": BUSY_TIMEOUT_S, "factory": WholeConnection},
    )
    event.listen(engine.sync_engine, "connect", _ask_once)
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin)
    event.listen(engine.sync_engine, "invalidate", _roll_back)
    return engine


def _parse_url(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):  # what it says has a part of the password, where that broke the address
        shape = "postgresql://user:password@host/database, in the password %40 for @, %2F for / and %3A for :"
        raise DatabaseUnusable(f"database.url: expected {shape}") from None
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if parsed.drivername not in _DRIVERS.values():
        expected = " or ".join(sorted(set(_DRIVERS.values())))
        raise DatabaseUnusable(f"database.url: expected {expected}, got {parsed.drivername}")
    if parsed.drivername.startswith("sqlite") and parsed.database in (None, "", ":memory:"):
        raise DatabaseUnusable("database.url: an SQLite database needs a file")
    return parsed


async def _looked_at(url: str, data_dir: Path) -> Path | None:
    """SQLite's file, looked at before SQLite writes to it, takes over what it can read of the log, and removes that.

    None: the database is PostgreSQL's.
    """
    parsed = _parse_url(url or f"sqlite:///{data_dir / FILE}")
    if parsed.get_backend_name() != "sqlite":
        return None
    file = Path(parsed.database or "")
    await asyncio.to_thread(tell_damage, file)
    await asyncio.to_thread(require_readable, file)
    return file


def _create_private(path: Path) -> None:
    """Creates an empty file of mode 0600, because it will hold password hashes. SQLite gives its WAL the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise DatabaseUnusable(f"database.url: {path}: {error.strerror}") from None


def _ask_once(connection: Any, _record: Any) -> None:
    ask_once(connection.driver_connection)


def _set_pragmas(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _set_planner(connection: Any, _record: Any) -> None:
    """Has PostgreSQL plan for the actual parameters and for tables in memory, unless an operator has set otherwise.

    A plan for any value searches names by index even for one letter, and one for disks reads the whole table instead of
    an index: each makes a list take twice as long.
    """
    cursor = connection.cursor()
    for name, usual, better in (("plan_cache_mode", "auto", "force_custom_plan"), ("random_page_cost", "4", "1.1")):
        cursor.execute(f"SELECT set_config('{name}', '{better}', false) WHERE current_setting('{name}') = '{usual}'")
    cursor.close()
    connection.commit()


def _roll_back(connection: Any, _record: Any, _error: Any) -> None:
    """Rolls back before a connection is closed because its task was cancelled.

    SQLite keeps a closed connection's lock as long as one of its cursors is alive, and the cancellation's traceback may
    keep one alive for long.
    """
    connection.rollback()


def _begin(connection: sa.Connection) -> None:
    """SQLite: begins writing transactions as IMMEDIATE; a reader that becomes a writer fails if another was faster."""
    statement = "BEGIN IMMEDIATE" if connection.get_execution_options().get("terrazzo_writing") else "BEGIN"
    raw: Any = connection.connection
    try:
        # not by a cursor of SQLAlchemy's, which asks the connection's thread three times: all transactions begin so
        raw.run_async(lambda driver: driver.execute(statement))
    except sqlite3.OperationalError as error:
        raise OperationalError(statement, None, error) from error
