"""Statements of SQLite come with their rows: one question to the connection's thread, and nothing is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from migrated import seed
from terrazzo.database.database import Database
from terrazzo.database.whole_statements import AT_ONCE
from terrazzo.errors import Unavailable

COUNTED = sa.table("counted", sa.column("n"))
NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT :most) SELECT n FROM c"
EDGES = [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE, 5_003]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open("", data_dir=seed(tmp_path / "data"), statement_s=0.2)
    yield opened
    await opened.close()


async def fill(database: Database, most: int) -> None:
    async with database.writing() as connection:
        await connection.execute(sa.text("CREATE TABLE counted (n INTEGER)"))
        if most:
            await connection.execute(sa.insert(COUNTED), [{"n": n} for n in range(1, most + 1)])


@pytest.mark.parametrize("most", EDGES)
async def test_every_row_comes_once_and_in_order(database: Database, most: int) -> None:
    await fill(database, most)
    asked, expected = sa.select(COUNTED.c.n).order_by(COUNTED.c.n), list(range(1, most + 1))
    async with database.reading() as connection:
        assert list((await connection.execute(asked)).scalars()) == expected
        streamed = [row.n async for row in await connection.stream(asked)]
        assert streamed == expected
        by_pages = await connection.stream(asked)
        assert [row.n async for page in by_pages.partitions(7) for row in page] == expected
        assert (await connection.execute(asked)).first() == ((1,) if most else None)
        begun = await connection.stream(asked)
        assert await begun.first() == ((1,) if most else None)
        assert list((await connection.execute(asked)).scalars()) == expected, "what was left unread is in nobody's way"


@pytest.mark.parametrize("most", EDGES)
async def test_what_was_changed_is_counted(database: Database, most: int) -> None:
    await fill(database, most)
    async with database.writing() as connection:
        changed = await connection.execute(sa.update(COUNTED).values(n=COUNTED.c.n + 1))
        assert changed.rowcount == most
        gone = await connection.execute(sa.delete(COUNTED).where(COUNTED.c.n > 1).returning(COUNTED.c.n))
        assert sorted(gone.scalars()) == list(range(2, most + 2))
        assert (await connection.execute(sa.select(sa.func.count()).select_from(COUNTED))).scalar_one() == 0
        made = await connection.execute(sa.insert(COUNTED).values(n=7))
        assert (made.rowcount, made.lastrowid) == (1, 1)


async def test_a_statement_asks_the_thread_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, answers = asyncio.get_running_loop(), 0
    ask = loop.call_soon_threadsafe

    def count(*given: object, **more: object) -> asyncio.Handle:
        nonlocal answers
        answers += 1
        return ask(*given, **more)  # type: ignore[arg-type]

    await fill(database, AT_ONCE - 1)
    async with database.reading() as connection:
        await connection.execute(sa.select(COUNTED.c.n))
        monkeypatch.setattr(loop, "call_soon_threadsafe", count)
        for number in range(1, 6):
            assert len((await connection.execute(sa.select(COUNTED.c.n))).all()) == AT_ONCE - 1
            assert answers == number
        monkeypatch.undo()


async def test_a_statement_that_takes_too_long_ends_in_the_middle_and_leaves_nothing_behind(database: Database) -> None:
    endless = sa.text(NUMBERS.replace("SELECT n FROM c", "SELECT n FROM c WHERE n < 5 OR n > 1000000000"))
    for _ in range(3):
        with pytest.raises(Unavailable, match="a statement took longer"):
            async with database.reading() as connection:
                await connection.execute(endless, {"most": 2_000_000_000})
    await fill(database, 3)
    async with database.reading() as connection:
        assert list((await connection.execute(sa.select(COUNTED.c.n))).scalars()) == [1, 2, 3]


async def test_who_leaves_a_stream_in_the_middle_keeps_no_lock(database: Database) -> None:
    await fill(database, 10 * AT_ONCE)
    for _ in range(3):
        async with database.reading() as connection:
            assert (await (await connection.stream(sa.select(COUNTED.c.n))).fetchmany(3)) == [(1,), (2,), (3,)]
        async with database.writing() as connection:
            await connection.execute(sa.text("DROP TABLE counted"))
        await fill(database, 10 * AT_ONCE)
