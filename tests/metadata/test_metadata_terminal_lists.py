"""Lists of terminals by their tags, and orders that a long table has an index for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from registry_stand import ROOT, Stand, make_stand

from query_plans import asked
from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.port import Conditions
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.database.tables.registry import TERMINAL_TAG
from terrazzo.metadata.definitions.registry import OBJECT, TERMINAL
from terrazzo.metadata.repositories.terminal_batches import TerminalBatches
from terrazzo.metadata.repositories.terminals import _configured

MANY = 20_000
_EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
ORDERS = [None, *((name, falls) for name in ("id", "name", "type") for falls in (False, True))]


async def test_tags_of_all_ways_to_write_them(stand: Stand) -> None:
    terminals = stand.entities.terminals
    await stand.terminal("ta", tags=["x", "y"])
    await stand.terminal("tb", tags=["y"])
    await stand.terminal("tc", stand.second, tags=["y"])

    async def found(*tags: str) -> list[str]:
        page = await terminals.page(stand.first, tags=tags, order_by=("uid", True))
        ids = await terminals.ids(stand.first, tags=tags, order_by=("uid", True))
        assert list(ids) == [row["id"] for row in page.rows]
        assert list(await terminals.rows_of(ids)) == list(page.rows)
        return [row["uid"] for row in page.rows]

    assert await found("y") == ["tb", "ta"]
    assert await found("x", "y") == ["ta"]
    await terminals.update(stand.first, "ta", {"tags": "z"})
    assert (await found("y"), await found("z")) == (["tb"], ["ta"])
    await TerminalBatches(terminals).update(stand.first, ["ta", "tb"], {"tags": ["q", "z"]})
    assert (await found("y"), await found("q", "z")) == ([], ["tb", "ta"])
    await terminals.delete(stand.first, "ta")
    await TerminalBatches(terminals).delete(ROOT, ["tb"])
    assert await found("z") == []
    async with stand.database.reading() as connection:
        left = (await connection.execute(sa.select(TERMINAL_TAG.c.tag))).scalars().all()
    assert left == ["y"], "what was deleted leaves no tag behind"
    assert await terminals.rows_of([4711]) == []


async def test_pages_by_tags_are_those_of_the_list_of_all(stand: Stand) -> None:
    for number in range(30):
        tags = [tag for tag, each in (("two", 2), ("three", 3)) if number % each == 0]
        values = {"tags": tags, "name": f"n{number % 4}", "type": "Other" if number % 5 else "Adapter-II"}
        await stand.terminal(f"t{number:02}", stand.second if number % 7 == 0 else stand.first, **values)
    for actor in (ROOT, stand.first):
        for tags in (["two"], ["three", "two"], ["none"]):
            for conditions in (Conditions(), Conditions(all_of=[("type", "=", "Other")])):
                for order in ORDERS:
                    await _expect_pages(stand, actor, tags, conditions, order)


async def _expect_pages(stand: Stand, actor: Any, tags: list[str], conditions: Conditions, order: Any) -> None:
    """Pages of any size, before and beyond the end, have what the list of all without tags has."""
    page = stand.entities.terminals.page
    all_of_them = (await page(actor, conditions=conditions, order_by=order, page_size=100)).rows
    wanted = [row["uid"] for row in all_of_them if set(tags) <= set(row["tags"])]
    for size in (1, 4, 50, 250):
        for index in range(1, len(wanted) // size + 3):
            found = await page(
                actor, conditions=conditions, order_by=order, tags=tags, page_size=size, page_index=index
            )
            assert [row["uid"] for row in found.rows] == wanted[size * (index - 1) : size * index]
            assert found.total == len(wanted)


async def test_long_lists_are_read_in_the_order_of_an_index(database: Database, kind: str, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    row = dict(await stand.terminal("first"))
    stored = {name: row[name] for name in TERMINAL.fields if name in row} | {"pin": "", "series": None}
    rows = [
        stored | {"id": 100 + number, "uid": f"t{number}", "tags": f'["tag-{number % 50:02}"]'}
        for number in range(MANY)
    ]
    async with database.writing() as connection:
        await connection.execute(TERMINAL.table.insert(), rows)
        tags = [{"terminal_id": 100 + number, "tag": f"tag-{number % 50:02}"} for number in range(MANY)]
        await connection.execute(TERMINAL_TAG.insert(), tags)
        states = [
            {"terminal_id": 100 + number, "company_id": stand.first.company_id, "version": "v", "since_us": 1}
            | {"state": "confirmed" if number % 50 else "sent", "reported_us": number % 100 or None, "difference": "[]"}
            for number in range(MANY)
        ]
        await connection.execute(TERMINAL_CONFIGURATION.insert(), states)
    async with database.writing() as connection:
        await connection.execute(sa.text("ANALYZE"))
    selection = Selection(TERMINAL, {}, stand.entities.terminals._selection._zone)
    table, explain = TERMINAL.table, _EXPLAIN[kind]
    sort = {"sqlite": "TEMP B-TREE", "postgresql": "Sort"}[kind]
    own = table.c.permission_company_id == stand.first.company_id
    tagged = table.c.id.in_(sa.select(TERMINAL_TAG.c.terminal_id).where(TERMINAL_TAG.c.tag == "tag-07"))

    async with database.reading() as connection:

        async def plan(query: sa.Select[Any]) -> str:
            text = query.compile(connection.sync_connection, compile_kwargs={"literal_binds": True})
            return str((await connection.run_sync(sa.Connection.exec_driver_sql, f"{explain} {text}")).all())

        for name in ("config_id", "tags"):
            for falls in (False, True):
                for where in ((), (own,)):
                    query = sa.select(table.c.id).where(*where).order_by(*selection.order((name, falls))).limit(20)
                    assert sort not in await plan(query), (name, falls, where)
        counted = await plan(sa.select(sa.func.count()).select_from(table).where(own, tagged))
        assert "terminal_tag" in counted
        assert "SCAN terminal_tag" not in counted
        assert "Seq Scan on terminal_tag" not in counted
        for configured in ("differs", "unreported"):
            so_far = table.c.id.in_(_configured(stand.first, configured))
            counted = await plan(sa.select(sa.func.count()).select_from(table).where(own, so_far))
            assert "ix_terminal_configuration_state" in counted, counted
            assert "SCAN terminal_configuration" not in counted
    page = await stand.entities.terminals.page(
        stand.first, conditions=Conditions(), tags=["tag-07"], order_by=("tags", True)
    )
    assert (len(page.rows), page.total) == (20, MANY // 50)
    totals = [
        (await stand.entities.terminals.page(stand.first, configured=configured)).total
        for configured in ("agrees", "differs", "unreported")
    ]
    assert totals == [MANY - MANY // 50, MANY // 100, MANY // 100]
    for actor in (ROOT, stand.first):
        with asked() as statements:
            page = await stand.entities.terminals.page(actor, tags=["tag-07"], page_index=12)
        assert [row["uid"] for row in page.rows[:2]] == ["t11007", "t11057"]
        async with database.reading() as connection:
            for statement, parameters in statements:
                found = await connection.run_sync(sa.Connection.exec_driver_sql, f"{explain} {statement}", parameters)
                told = str(found.all())
                assert "Seq Scan" not in told, told
                if kind == "sqlite":  # in the order of the index, as far as the page is
                    assert "SEARCH terminal_tag USING COVERING INDEX" in told, told
                    assert sort not in told, told


async def test_objects_of_a_place_are_found_by_an_index(database: Database, kind: str, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    row = await stand.entities.objects.create(stand.first, {"name": "o"})
    async with database.writing() as connection:
        (sample,) = (await connection.execute(OBJECT.table.select().where(OBJECT.table.c.id == row["id"]))).mappings()
        places = {"city": "Como", "province": "Como"}
        rows = [
            {**sample, "id": 100 + number, "uid": str(100 + number), **(places if number % 20 == 7 else {})}
            for number in range(MANY)
        ]
        await connection.execute(OBJECT.table.insert(), rows)
    async with database.writing() as connection:
        await connection.execute(sa.text("ANALYZE object"))
    for place in ("city", "province"):
        conditions = Conditions(all_of=[(place, "=", "Como")])
        for actor in (ROOT, stand.first):
            with asked() as statements:
                page = await stand.entities.objects.page(actor, conditions=conditions, page_index=2)
            assert ([row["id"] for row in page.rows[:2]], page.total) == ([507, 527], MANY // 20)
            async with database.reading() as connection:
                for statement, parameters in statements:
                    told = await connection.run_sync(
                        sa.Connection.exec_driver_sql, f"{_EXPLAIN[kind]} {statement}", parameters
                    )
                    text = str(told.all())
                    assert "Seq Scan on object" not in text, text
                    assert "SCAN object" not in text, text
                    assert f"{place}_id" in text or "json_each" in text or "ANY" in text, text
