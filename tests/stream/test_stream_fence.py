"""PostgreSQL takes transactions of the newest epoch alone, also where an earlier one is stopped amid its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

from postgresql_server import PostgreSQL
from terrazzo.database.database import Database
from terrazzo.database.fence import Fence, Fenced
from terrazzo.errors import Unavailable

COUNT = sa.text("SELECT count(*) FROM written")


async def opened(url: str, folder: Path, epoch: int, lost: list[str]) -> Database:
    fence = Fence("c", f"node{epoch}", epoch, lost.append)
    return await Database.open(url, data_dir=folder, fence=fence)


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
