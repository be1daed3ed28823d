"""What PostgreSQL does to those who use it: connections that break, servers that restart, deadlocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from postgresql_server import PostgreSQL
from terrazzo.database.database import Database
from terrazzo.errors import Unavailable


@pytest.fixture
def address(postgresql: PostgreSQL) -> str:
    return postgresql.database()


@pytest.fixture
async def opened(address: str, tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(address, data_dir=tmp_path)
    yield database
    await database.close()


async def cut(postgresql: PostgreSQL, address: str) -> None:
    """Ends all connections to a database."""
    name = address.rpartition("/")[2]
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    await asyncio.to_thread(postgresql.psql, ended)


async def test_a_connection_that_breaks_in_a_query_is_no_answer(opened, postgresql, address) -> None:
    async def work() -> None:
        async with opened.writing() as connection:
            await connection.execute(sa.text("SELECT pg_sleep(60)"))

    async def sleeps() -> bool:
        async with opened.reading() as connection:
            found = await connection.execute(
                sa.text("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'")
            )
            return found.first() is not None

    working = asyncio.create_task(work(), name="work")
    async with asyncio.timeout(20):
        while not await sleeps():  # noqa: ASYNC110 - it is in another process
            await asyncio.sleep(0.01)
    await cut(postgresql, address)
    with pytest.raises(Unavailable, match=r"^database: .*terminat"):
        await working
    await opened.check()


async def test_a_connection_that_breaks_between_two_queries(opened, postgresql, address) -> None:
    async def work() -> None:
        async with opened.writing() as connection:
            await connection.execute(sa.text("SELECT 1"))
            await cut(postgresql, address)
            await connection.execute(sa.text("SELECT 1"))

    with pytest.raises(Unavailable):
        await work()
    await opened.check()


async def test_who_loses_a_deadlock_may_try_again(opened, postgresql, address) -> None:
    await asyncio.to_thread(postgresql.psql, "CREATE TABLE pair (id int PRIMARY KEY, by int)", url=address)
    await asyncio.to_thread(postgresql.psql, "INSERT INTO pair VALUES (1, 0), (2, 0)", url=address)
    both = asyncio.Barrier(2)

    async def write(first: int, second: int) -> None:
        async with opened.writing() as connection:
            await connection.execute(sa.text(f"UPDATE pair SET by = {first} WHERE id = {first}"))
            await both.wait()
            await connection.execute(sa.text(f"UPDATE pair SET by = {first} WHERE id = {second}"))

    outcomes = await asyncio.gather(write(1, 2), write(2, 1), return_exceptions=True)
    (lost,) = [each for each in outcomes if each is not None]
    assert isinstance(lost, Unavailable)
    assert "deadlock detected" in str(lost)


async def test_a_mistake_stays_a_mistake(opened) -> None:
    with pytest.raises(sa.exc.ProgrammingError):
        async with opened.writing() as connection:
            await connection.execute(sa.text("SELECT nothing"))


async def test_a_server_that_is_away_and_comes_back(tmp_path: Path, own_postgresql: PostgreSQL) -> None:
    database = await Database.open(own_postgresql.database(), data_dir=tmp_path)
    try:
        await database.check()
        await asyncio.to_thread(own_postgresql.stop, "immediate")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await database.check()
        await asyncio.to_thread(own_postgresql.start)
        await database.check()
    finally:
        await database.close()
