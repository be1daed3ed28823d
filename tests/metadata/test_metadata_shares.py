"""What one company may take of the database: time for a statement, connections, its turn to write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from migrated import seed
from terrazzo.database.database import (
    KEPT_OPEN,
    MORE_IN_NEED,
    POSTGRESQL_CONNECTIONS,
    POSTGRESQL_MORE,
    RESERVED,
    Database,
)
from terrazzo.errors import Throttled, Unavailable
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from waiting import until

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0"
LIMIT_S = 0.2


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql").database()
    else:
        seed(tmp_path / "data")
        url = ""
    database = await Database.open(url, data_dir=tmp_path / "data", statement_s=LIMIT_S)
    yield database
    await database.close()


async def test_a_statement_without_end_is_ended_in_the_database(database: Database):
    began = time.process_time()
    for _ in range(2):  # on the same connection, too
        with pytest.raises(Unavailable, match=r"a statement took longer than 0\.2 s \(limits\.statement_s\)"):
            async with database.reading() as connection:
                await connection.execute(sa.text(ENDLESS))
    used_s = time.process_time() - began
    await asyncio.sleep(LIMIT_S)
    assert time.process_time() - began < used_s + LIMIT_S / 2, "it goes on"
    await database.check()


async def test_the_time_is_each_statements_own(database: Database):
    async with database.writing() as connection:
        for _ in range(4):
            await connection.execute(sa.select(1))
            await asyncio.sleep(LIMIT_S / 2)
    async with database.reading() as connection:
        await connection.execute(sa.select(1))
        await asyncio.sleep(2 * LIMIT_S)
        await connection.execute(sa.select(1))


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[Database]:
    seed(tmp_path / "data")
    database = await Database.open("", data_dir=tmp_path / "data")
    yield database
    await database.close()


async def hold(database: Database, company_id: int, held: list[int], ended: asyncio.Event) -> None:
    """Reads for a company, until it is told to end."""
    begun = at_work.begin(Work("get_terminal_list", company_id))
    try:
        async with database.reading():
            held.append(company_id)
            await ended.wait()
    finally:
        at_work.end(begun)


async def settle(held: list[int], most: int) -> None:
    """Waits until so many have a connection, and whether nobody else gets one."""
    await until(lambda: len(held) >= most, f"{most} have a connection")
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(held) == most


async def test_a_company_has_a_share_of_the_connections_and_logins_find_one(sqlite: Database):
    held, ended = list[int](), asyncio.Event()
    all_for_companies = KEPT_OPEN + MORE_IN_NEED - RESERVED
    tasks = [asyncio.create_task(hold(sqlite, 1, held, ended)) for _ in range(50)]
    await settle(held, all_for_companies // 2)
    tasks += [asyncio.create_task(hold(sqlite, company, held, ended)) for company in range(2, 30)]
    await settle(held, all_for_companies)
    async with asyncio.timeout(5):
        await sqlite.check()  # as logins do, which are no company's yet
    ended.set()
    await asyncio.gather(*tasks)
    assert held.count(1) == 50


async def test_a_task_that_has_a_connection_gets_another_without_waiting(database: Database):
    async def nested() -> None:
        begun = at_work.begin(Work("import_terminals", 1))
        async with database.reading(), database.reading():
            await asyncio.sleep(0)
        at_work.end(begun)

    async with asyncio.timeout(20):
        await asyncio.gather(*(nested() for _ in range(20)))


async def test_writers_take_turns_by_company(sqlite: Database):
    order: list[int] = []

    async def write(company_id: int) -> None:
        begun = at_work.begin(Work("create_object", company_id))
        async with sqlite.writing():
            order.append(company_id)
            await asyncio.sleep(0.001)
        at_work.end(begun)

    await asyncio.gather(*(write(1) for _ in range(50)), write(2), write(0))
    assert order.index(2) <= 3
    assert order.index(0) <= 4


async def test_who_has_too_much_waiting_is_refused(database: Database):
    held, ended = list[int](), asyncio.Event()
    tasks = [asyncio.create_task(hold(database, 1, held, ended)) for _ in range(1_100)]
    is_sqlite = database.engine.dialect.name == "sqlite"
    connections = KEPT_OPEN + MORE_IN_NEED if is_sqlite else POSTGRESQL_CONNECTIONS + POSTGRESQL_MORE
    share = (connections - RESERVED) // 2
    await settle(held, share)
    refused = 1_100 - 1_000 - share
    ended.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(each, Throttled) for each in found) == refused
    assert found.count(None) == 1_100 - refused
