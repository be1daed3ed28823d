"""How long one statement may take: after that the database itself ends it, whether or not somebody still waits for it.

PostgreSQL has ``statement_timeout``; SQLite asks after each so many of its steps. Migrations are not limited.
"""

from __future__ import annotations

import math
import sqlite3
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

UNLIMITED = "terrazzo_unlimited"
"""The execution option of connections whose statements may take as long as they need."""

_STEPS = 100_000  # of SQLite's virtual machine between two questions, some ms: each waits for the interpreter's lock
_QUERY_CANCELED = "57014"
_INTERRUPTED = "interrupted"
_DEADLINE = "terrazzo_deadline"


class _Deadline:
    """When the statement of an SQLite connection is ended; its thread asks."""

    __slots__ = ("at_s",)

    def __init__(self) -> None:
        self.at_s = math.inf

    def is_over(self) -> bool:
        return time.monotonic() > self.at_s


def limit_statements(engine: Engine, limit_s: float) -> None:
    """Has each statement of the engine's connections ended after so many seconds; before any connection is made."""
    if engine.dialect.name == "sqlite":
        _limit_sqlite(engine, limit_s)
    else:
        _limit_postgresql(engine, limit_s)


def was_ended(error: BaseException) -> bool:
    """Whether the limit ended a statement."""
    origin = error.orig if isinstance(error, DBAPIError) else None
    if isinstance(origin, sqlite3.OperationalError):
        return str(origin) == _INTERRUPTED
    return getattr(origin, "sqlstate", None) == _QUERY_CANCELED


def _limit_sqlite(engine: Engine, limit_s: float) -> None:
    def watch(connection: Any, record: Any) -> None:
        deadline = record.info[_DEADLINE] = _Deadline()
        connection.run_async(lambda driver: driver.set_progress_handler(deadline.is_over, _STEPS))

    def begin(connection: sa.Connection, *_: Any) -> None:
        unlimited = connection.get_execution_options().get(UNLIMITED)
        connection.info[_DEADLINE].at_s = math.inf if unlimited else time.monotonic() + limit_s

    def end(connection: sa.Connection, *_: Any) -> None:
        connection.info[_DEADLINE].at_s = math.inf

    def fail(context: Any) -> None:
        if context.connection is not None:
            end(context.connection)  # what follows, such as the rollback, has time

    event.listen(engine, "connect", watch)
    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "after_cursor_execute", end)
    event.listen(engine, "handle_error", fail)


def _limit_postgresql(engine: Engine, limit_s: float) -> None:
    def limit(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SELECT set_config('statement_timeout', '{limit_s * 1_000:.0f}', false)")
        cursor.close()
        connection.commit()

    def lift(connection: sa.Connection) -> None:
        if connection.get_execution_options().get(UNLIMITED):
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")

    event.listen(engine, "connect", limit)
    event.listen(engine, "begin", lift)
