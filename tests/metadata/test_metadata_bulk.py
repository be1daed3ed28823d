"""Imports on SQLite and on PostgreSQL: many rows a statement, numbers that a file brings along, updates, conflicts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from registry_stand import Stand, terminal_values

from query_plans import asked
from terrazzo.bulk.columns import Columns
from terrazzo.bulk.importing import Importer
from terrazzo.bulk.report import ImportRefused, Report
from terrazzo.bulk.rows import read_objects
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.database.tables.registry import OBJECT_TERMINAL
from terrazzo.errors import Conflict
from terrazzo.metadata.repositories.repository import EntityRepository


async def run(
    stand: Stand, repository: EntityRepository, rows: list[dict[str, Any]], *, mode: Any = "create", on: Any = None
) -> Report:
    importer = Importer(
        repository,
        Columns(repository.entity),
        stand.first,
        UnfinishedImports(stand.database, lambda _: repository),
        mode=mode,
        dry_run=False,
        on_progress=on or (lambda stage, done, total: None),
    )
    return await importer.run(read_objects(rows))


async def test_terminals_are_made_and_changed_and_the_registry_knows(stand: Stand) -> None:
    rows = [terminal_values(f"t{n}", config_id="config of one") for n in range(1_200)]
    terminals = stand.entities.terminals
    assert (await run(stand, terminals, rows)).created == 1_200
    known = stand.registry.terminal("t1199")
    assert known is not None
    assert (known.pin, known.username) == ("pin-of-it", "u-t1199")
    changes = [{"uid": f"t{n}", "pin": "new-pin", "keep_alive": n} for n in range(700)]
    assert (await run(stand, terminals, changes, mode="upsert")).updated == 700
    rows_now = await terminals.page(stand.first, page_size=1_000)
    assert rows_now.total == 1_200
    assert [row["keep_alive"] for row in rows_now.rows] == [*range(700), *[0] * 300]
    assert {row["pin"] for row in rows_now.rows[:700]} == {"new-pin"}
    known = stand.registry.terminal("t699")
    assert known is not None
    assert known.keep_alive_s == 699


async def test_objects_with_terminals_take_no_statements_of_their_own(stand: Stand) -> None:
    """A hundred objects more cost the statements of a piece, not some of each: fifty thousand take seconds."""
    rows = [terminal_values(f"t{n}", config_id="config of one") for n in range(1_300)]
    await run(stand, stand.entities.terminals, rows)
    ids = {row["uid"]: row["id"] async for row in stand.entities.terminals.every()}
    objects, told = stand.entities.objects, {}
    for count in (10, 1_200):
        with asked(once=False) as statements:
            listed = ({"terminal_list": [f"t{n}", ids[f"t{n + 1}"]]} for n in range(count))
            made = await run(stand, objects, [{"name": f"{count} {n}", **lists} for n, lists in enumerate(listed)])
        told[count] = len(statements)
        assert made.created == count
    assert told[1_200] < 10 * told[10]
    page = await objects.page(stand.first, page_size=1_000, page_index=2)
    assert [row["terminal_list"] for row in page.rows][-1] == ["t1199", "t1200"]
    async with stand.database.reading() as connection:
        links = (await connection.execute(OBJECT_TERMINAL.select())).all()
    assert len(links) == 2 * 1_210
    changed = [{"uid": page.rows[0]["uid"], "terminal_list": ["t7"]}, {"uid": page.rows[1]["uid"], "terminal_list": []}]
    assert (await run(stand, objects, changed, mode="upsert")).updated == 2
    lists = [(await objects.item(stand.first, row["uid"]))["terminal_list"] for row in page.rows[:2]]
    assert lists == [["t7"], []]
    with pytest.raises(ImportRefused):
        await run(stand, objects, [{"name": "x", "terminal_list": ["t1", str(ids["t1"])]}])
    with pytest.raises(ImportRefused):
        await run(stand, objects, [{"name": "x", "terminal_list": "t1,nobody"}])


async def test_numbers_of_a_file_are_kept_and_counting_goes_on_after_them(stand: Stand) -> None:
    objects = stand.entities.objects
    first = await objects.create(stand.first, {"name": "first"})
    gone = await objects.create(stand.first, {"name": "gone"})
    await objects.delete(stand.first, gone["id"])
    ahead = gone["id"] + 5
    rows = [
        {"uid": str(ahead), "name": "ahead", "object_list": [str(ahead + 1), first["uid"]]},
        {"uid": str(ahead + 1), "name": "next"},
        {"name": "numbered by the platform"},
    ]
    assert (await run(stand, objects, rows)).created == 3
    found = (await objects.page(stand.first)).rows
    assert [row["id"] for row in found] == [first["id"], ahead, ahead + 1, ahead + 2]
    assert [row["uid"] for row in found] == [str(row["id"]) for row in found]
    assert found[1]["object_list"] == [str(ahead + 1), first["uid"]]
    assert (await objects.create(stand.first, {"name": "later"}))["id"] == ahead + 3
    with pytest.raises(ImportRefused, match="used before"):
        await run(stand, objects, [{"uid": gone["uid"], "name": "again"}])


async def test_a_change_in_between_is_a_conflict(stand: Stand) -> None:
    terminals = stand.entities.terminals
    await stand.terminal("t1")
    changing: list[asyncio.Task[Any]] = []

    def change(stage: str, done: int, total: int) -> None:
        if stage == "check" and done == 0:
            changing.append(
                asyncio.create_task(terminals.update(stand.first, "t1", {"maker": "another"}), name="other")
            )

    rows = [{"uid": "t1", "maker": "mine"}, *(terminal_values(f"n{n}", config_id=stand.config) for n in range(1_500))]
    with pytest.raises(Conflict, match="terminal t1: somebody has just changed it"):
        await run(stand, terminals, rows, mode="upsert", on=change)
    await changing[0]
    page = await terminals.page(stand.first)
    assert [row["maker"] for row in page.rows] == ["another"], "all or nothing"
