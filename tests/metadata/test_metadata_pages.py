"""Pages from either end of a list, and what PostgreSQL needs to find them soon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import pytest
import sqlalchemy as sa
from registry_stand import ROOT, Stand

from postgresql_server import PostgreSQL
from terrazzo.async_engine import AsyncConnection
from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.port import EVERYTHING, Conditions
from terrazzo.database.trigram_index import PREFIX
from terrazzo.metadata.definitions.registry import TERMINAL

SORTED = ("id", "name", "keep_alive", "username", "activated")
ORDERS = [None, *((name, falls) for name in SORTED for falls in (False, True))]


async def fill(stand: Stand) -> None:
    """Terminals with equal names, equal numbers, and times that are missing."""
    for number in range(23):
        values = {"name": f"Pump {number % 5}", "keep_alive": number % 7, "username": f"u{number % 6}"}
        await stand.terminal(f"G{number:02}", **values)
    await stand.entities.terminals.set_all_activated({f"G{number:02}": number % 4 + 1 for number in range(0, 23, 3)})


async def test_pages_of_any_size_are_the_list_in_its_order(stand: Stand) -> None:
    await fill(stand)
    page = stand.entities.terminals.page
    for conditions in (EVERYTHING, Conditions(all_of=[("name", "like", "%pump%")])):
        for order in ORDERS:
            whole = [
                row["uid"] for row in (await page(ROOT, conditions=conditions, page_size=100, order_by=order)).rows
            ]
            assert len(set(whole)) == 23
            for size in (1, 4, 11, 12, 22, 23, 24):
                found = []
                for index in range(1, 23 // size + 3):
                    rows = await page(ROOT, conditions=conditions, page_size=size, page_index=index, order_by=order)
                    assert rows.total == 23
                    found += [row["uid"] for row in rows.rows]
                assert found == whole, (order, size)


@pytest.fixture
def postgresql_url(postgresql: PostgreSQL) -> str:
    return postgresql.database()


@asynccontextmanager
async def reading(url: str, folder: Path) -> AsyncIterator[AsyncConnection]:
    database = await Database.open(url, data_dir=folder)
    try:
        async with database.reading() as connection:
            yield connection
    finally:
        await database.close()


async def test_searching_in_names_goes_by_the_index_of_trigrams(postgresql_url: str, tmp_path: Path) -> None:
    selection = Selection(TERMINAL, {}, UTC)
    query = sa.select(selection.ids).where(*selection.where(Conditions(all_of=[("name", "like", "%0777%")])))
    async with reading(postgresql_url, tmp_path) as connection:
        options = {"dialect": connection.dialect, "compile_kwargs": {"literal_binds": True}}
        text = str(query.compile(**options)).replace("%%", "%")
        await connection.execute(sa.text("SET LOCAL enable_seqscan = off"))  # an empty table is soon read
        plan = (await connection.run_sync(sa.Connection.exec_driver_sql, f"EXPLAIN {text}")).scalars()
        assert f"{PREFIX}terminal_name_c" in "\n".join(plan)


async def test_plans_are_for_the_values_at_hand_unless_an_operator_wants_others(
    postgresql_url: str, tmp_path: Path
) -> None:
    query = sa.text("SELECT current_setting('plan_cache_mode'), current_setting('random_page_cost')")
    async with reading(postgresql_url, tmp_path) as connection:
        assert tuple((await connection.execute(query)).one()) == ("force_custom_plan", "1.1")
        name = sa.make_url(postgresql_url).database
        await connection.execute(sa.text(f'ALTER DATABASE "{name}" SET random_page_cost = 2'))
        await connection.commit()
    async with reading(postgresql_url, tmp_path) as connection:
        assert tuple((await connection.execute(query)).one()) == ("force_custom_plan", "2")
