"""PostgreSQL takes transactions of the newest epoch alone, also where an earlier one is stopped amid its own; and none
where it went back to an older state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

from postgresql_server import PostgreSQL
from terrazzo.database.database import Database
from terrazzo.database.fence import DatabasePosition, Fence, Fenced
from terrazzo.database.migration import DatabaseUnusable
from terrazzo.errors import Unavailable

COUNT = sa.text("SELECT count(*) FROM written")


def new_fence(epoch: int, lost: list[str], *, known: int = 0, kept: list[int] | None = None) -> Fence:
    """One of a node that remembers a position in ``kept``, unless there is a 0 in it, and knows one of before."""
    numbers = [] if kept is None else kept

    async def keep(reached: int) -> bool:
        numbers.append(reached)
        return 0 not in numbers

    return Fence("c", f"node{epoch}", epoch, lost.append, DatabasePosition(known, keep))


async def opened(url: str, folder: Path, epoch: int, lost: list[str]) -> Database:
    return await Database.open(url, data_dir=folder, fence=new_fence(epoch, lost))


async def write(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(sa.text("INSERT INTO written VALUES (1)"))


async def stopped_amid(url: str) -> asyncpg.Connection:
    """A connection of epoch 1 whose process was stopped amid a transaction: it holds the epoch and has written."""
    connection = await asyncpg.connect(url, server_settings={"application_name": "terrazzo c 1"})
    await connection.execute("BEGIN")
    await connection.execute("SELECT epoch FROM terrazzo_leader FOR SHARE")
    await connection.execute("INSERT INTO written VALUES (2)")
    return connection


async def test_an_earlier_epoch_writes_no_more(postgresql: PostgreSQL, tmp_path: Path) -> None:
    url, lost = postgresql.migrated_database(), list[str]()
    old = await opened(url, tmp_path, 1, lost)
    async with old.writing() as connection:
        await connection.execute(sa.text("CREATE TABLE written (a int)"))
    await write(old)
    stopped = await stopped_amid(url)
    new = await opened(url, tmp_path, 2, lost)
    await write(new)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await stopped.execute("COMMIT")
    stopped.terminate()
    for _ in range(20):  # the connections of its pool are ended, which it finds out one by one
        with suppress(Unavailable):
            await write(old)
    with pytest.raises(Fenced, match="epoch 2, this node has 1"):
        await write(old)
    assert "epoch 2, this node has 1" in lost[-1]
    with pytest.raises(Fenced, match="has epoch 2, this node 1"):
        await opened(url, tmp_path, 1, lost)
    async with new.reading() as connection:
        assert (await connection.execute(COUNT)).scalar_one() == 2
    await old.close()
    await new.close()


async def test_the_position_rises_with_what_is_committed_and_is_remembered_afterwards(
    postgresql: PostgreSQL, tmp_path: Path
) -> None:
    lost, kept = list[str](), list[int]()
    fence = new_fence(1, lost, kept=kept)
    database = await Database.open(postgresql.migrated_database(), data_dir=tmp_path, fence=fence)
    await fence.move_on(database.engine)
    assert kept == [], "nothing was committed"
    for _ in range(2):
        async with database.writing() as connection:
            await connection.execute(sa.text("CREATE TABLE IF NOT EXISTS written (a int)"))
    await fence.move_on(database.engine)
    await fence.move_on(database.engine)
    assert kept == [1], "once for both"
    with pytest.raises(ZeroDivisionError):
        async with database.writing():
            raise ZeroDivisionError
    await fence.move_on(database.engine)
    assert kept == [1], "what is rolled back is not missing"
    await write(database)
    kept.append(0)
    await fence.move_on(database.engine)
    await fence.move_on(database.engine)
    assert kept == [1, 0, 2, 2], "what was not remembered is told again"
    kept.clear()
    await fence.move_on(database.engine)
    await fence.move_on(database.engine)
    assert kept == [2]
    assert lost == []
    await database.close()


async def test_a_position_is_raised_while_a_long_transaction_writes(postgresql: PostgreSQL, tmp_path: Path) -> None:
    kept: list[int] = []
    fence = new_fence(1, [], kept=kept)
    database = await Database.open(postgresql.migrated_database(), data_dir=tmp_path, fence=fence)
    async with database.writing() as connection:
        await connection.execute(sa.text("CREATE TABLE written (a int)"))
    async with database.writing() as connection:
        await connection.execute(sa.text("INSERT INTO written VALUES (1)"))
        async with asyncio.timeout(60):
            await fence.move_on(database.engine)
            await write(database)
        assert kept == [1]
    await fence.move_on(database.engine)
    assert kept == [1, 2]
    await database.close()


def put_in_its_place(postgresql: PostgreSQL, url: str, older: str) -> None:
    """As a failover does: connections end, and whoever connects finds another database under the name."""
    name, other = (each.rpartition("/")[2] for each in (url, older))
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    postgresql.psql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    postgresql.psql(ended)
    postgresql.psql(f"ALTER DATABASE {name} RENAME TO {name}_before")
    postgresql.psql(f"ALTER DATABASE {other} RENAME TO {name}")


@pytest.mark.parametrize("by", ["transaction", "look"])
async def test_a_database_that_went_back_is_not_written_to(postgresql: PostgreSQL, tmp_path: Path, by: str) -> None:
    url, lost = postgresql.migrated_database(), list[str]()
    fence = new_fence(1, lost)
    database = await Database.open(url, data_dir=tmp_path, fence=fence)
    async with database.writing() as connection:
        await connection.execute(sa.text("CREATE TABLE written (a int)"))
    await fence.move_on(database.engine)
    await database.close()
    older = postgresql.database(template=url.rpartition("/")[2])
    fence = new_fence(2, lost, known=1)
    database = await Database.open(url, data_dir=tmp_path, fence=fence)
    await write(database)
    await fence.move_on(database.engine)
    assert (fence.position.reached, lost) == (2, [])

    put_in_its_place(postgresql, url, older)
    for _ in range(20):  # the connections of its pool are ended, which it finds out one by one
        with suppress(Unavailable):
            await (write(database) if by == "transaction" else fence.move_on(database.engine))
    assert "it is at position 1 and was at 2; docs/scaling.md says what to do" in lost[-1]
    async with database.reading() as connection:
        assert (await connection.execute(COUNT)).scalar_one() == 0
    await database.close()
    with pytest.raises(DatabaseUnusable, match="went back to an older state, or is another one"):
        await Database.open(url, data_dir=tmp_path, fence=new_fence(3, lost, known=2))
    accepted = new_fence(3, lost)
    database = await Database.open(url, data_dir=tmp_path, fence=accepted)
    await write(database)
    await accepted.move_on(database.engine)
    assert accepted.position.reached == 2
    await database.close()


async def test_a_position_that_was_raised_while_the_answer_came_is_no_older_state() -> None:
    lost: list[str] = []
    fence = new_fence(1, lost, known=5)

    class Answer:
        def one_or_none(self) -> tuple[int, int]:
            return 1, 5

    class Connection:
        async def execute(self, *_: object) -> Answer:
            fence.position.reached = 6
            return Answer()

    await fence.check(Connection())  # type: ignore[arg-type]
    assert lost == []
