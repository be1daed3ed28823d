"""A database is closed when nothing of it is at work any more, whatever was cancelled before; who is cancelled ends."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from migrated import seed
from terrazzo.database.database import KEPT_OPEN, MORE_IN_NEED, Database
from terrazzo.errors import Unavailable

SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT count(*) FROM n"


def ends_quietly(work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Whether nothing of it is left: it would end with "Event loop is closed", in whatever runs by then."""
    before = set(threading.enumerate())

    def left_over() -> set[threading.Thread]:
        return set(threading.enumerate()) - before

    faults: list[threading.ExceptHookArgs] = []
    hook, threading.excepthook = threading.excepthook, faults.append
    try:
        asyncio.run(work())
        for each in left_over():
            each.join(2)
    finally:
        threading.excepthook = hook
    assert [str(fault.exc_value) for fault in faults] == []
    assert not left_over(), "a connection's thread is never ended"


async def cancel(asking: asyncio.Task[None]) -> None:
    for _ in range(3):  # who is impatient does it again, while the connection is being given back
        asking.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([asking])


def test_no_thread_outlives_a_connection_that_was_being_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, opening = sqlite3.connect, threading.Event()

    def connect_late(*given: Any, **more: Any) -> sqlite3.Connection:
        opening.set()
        time.sleep(0.2)  # a slow disk; the loop's own thread doesn't wait for it
        return connect(*given, **more)

    async def cancel_and_close() -> None:
        database = await Database.open("", data_dir=seed(tmp_path))
        async with database.reading():  # the one that is open already
            monkeypatch.setattr(sqlite3, "connect", connect_late)
            asking = asyncio.create_task(database.check(), name="one more")
            await asyncio.to_thread(opening.wait)
            await cancel(asking)
        await database.close()

    ends_quietly(cancel_and_close)


def test_no_thread_outlives_a_connection_that_was_being_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool keeps the place of a connection that was closed because its task was cancelled."""
    connect, opening = sqlite3.connect, threading.Event()

    def connect_late(*given: Any, **more: Any) -> sqlite3.Connection:
        opening.set()
        time.sleep(0.2)
        return connect(*given, **more)

    async def cancel_and_close() -> None:
        database = await Database.open("", data_dir=seed(tmp_path))
        async with database.reading() as connection:
            await connection.run_sync(sa.Connection.invalidate)
        monkeypatch.setattr(sqlite3, "connect", connect_late)
        asking = asyncio.create_task(database.check(), name="the next one")
        await asyncio.to_thread(opening.wait)
        await cancel(asking)
        await database.close()

    ends_quietly(cancel_and_close)


@pytest.mark.parametrize("block", ["reading", "writing"])
def test_no_thread_outlives_a_statement_that_was_under_way(tmp_path: Path, block: str) -> None:
    async def cancel_and_close() -> None:
        database = await Database.open("", data_dir=seed(tmp_path))
        begun = asyncio.Event()

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if statement == SLOW:
                begun.set()  # and the statement is on its way before anything else runs

        sa.event.listen(database.engine.sync_engine, "before_cursor_execute", note)

        async def ask() -> None:
            async with getattr(database, block)() as connection:
                await connection.execute(sa.text(SLOW))

        asking = asyncio.create_task(ask(), name="a slow statement")
        await begun.wait()
        await cancel(asking)
        await database.close()

    ends_quietly(cancel_and_close)


async def test_nobody_opens_a_connection_who_may_be_cancelled_meanwhile(tmp_path: Path) -> None:
    """However many ask at once, and take each other's."""
    database = await Database.open("", data_dir=seed(tmp_path))
    openers: list[str] = []

    def note(*_: object) -> None:
        task = asyncio.current_task()
        openers.append(task.get_name() if task else "")

    async def ask() -> None:
        async with database.reading() as connection:
            await connection.execute(sa.select(1))

    sa.event.listen(database.engine.sync_engine, "do_connect", note)
    await asyncio.gather(*(ask() for _ in range(KEPT_OPEN + MORE_IN_NEED)))
    await database.close()
    assert set(openers) == {"database: open a connection"}


async def test_who_waits_for_a_connection_waits_once(tmp_path: Path) -> None:
    database = await Database.open("", data_dir=seed(tmp_path))
    async with AsyncExitStack() as stack:
        for _ in range(KEPT_OPEN + MORE_IN_NEED):
            await stack.enter_async_context(database.reading())
        asking = asyncio.create_task(database.check(), name="one too many")
        await asyncio.sleep(0)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("database: ")]
    await asking
    await database.close()


async def at_work(database: Database, block: str, working: asyncio.Event | None = None) -> None:
    """Does what a driver does at times: cancelled, it says what became of its connection, and not that."""
    broken = sa.exc.OperationalError("SELECT 1", {}, ConnectionError("connection was closed"))
    async with getattr(database, block)():
        if working is None:
            raise broken
        working.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise broken from None


@pytest.mark.parametrize("block", ["reading", "writing"])
async def test_a_task_that_goes_on_after_failures_ends_when_it_is_cancelled(tmp_path: Path, block: str) -> None:
    database = await Database.open("", data_dir=seed(tmp_path))
    told: list[Unavailable] = []

    async def follow() -> None:
        while len(told) < 3:  # for ever, where no test is
            try:
                await at_work(database, block, working)
            except Unavailable as error:
                told.append(error)

    working = asyncio.Event()
    following = asyncio.create_task(follow(), name="whatever follows changes")
    await working.wait()
    following.cancel()
    await asyncio.wait({following}, timeout=20)
    assert following.cancelled()
    assert told == []
    await database.close()


@pytest.mark.parametrize("block", ["reading", "writing"])
async def test_a_failure_is_told_to_whoever_was_cancelled_before_and_goes_on(tmp_path: Path, block: str) -> None:
    database = await Database.open("", data_dir=seed(tmp_path))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await at_work(database, block, asyncio.Event())
    with pytest.raises(Unavailable, match="connection was closed"):
        await at_work(database, block)
    await database.close()
