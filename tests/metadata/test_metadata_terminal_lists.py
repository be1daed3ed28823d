"""Lists of terminals by their tags, and orders that a long table has an index for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from registry_stand import ROOT, Stand, make_stand

from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.port import Conditions
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.database.tables.registry import TERMINAL_TAG
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.repositories.terminal_batches import TerminalBatches
from terrazzo.metadata.repositories.terminals import _configured

MANY = 20_000


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
    table, explain = TERMINAL.table, {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}[kind]
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
