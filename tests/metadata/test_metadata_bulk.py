"""Imports on SQLite and on PostgreSQL: many rows a statement, numbers that a file brings along, updates, conflicts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from registry_stand import Stand, terminal_values

from query_plans import asked
from terrazzo.bulk.columns import Columns
from terrazzo.bulk.importing import Importer
from terrazzo.bulk.report import ImportRefused, Report
from terrazzo.bulk.rows import read_objects
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import OBJECT_TERMINAL
from terrazzo.errors import BadParameter, Conflict
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


async def test_a_change_in_between_is_a_conflict(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made when the import has read the record, and in the database before it writes."""
    terminals = stand.entities.terminals
    await stand.terminal("t1")
    changing: list[asyncio.Task[Any]] = []

    def change(stage: str, done: int, total: int) -> None:
        if stage == "check" and done == 1:
            changing.append(
                asyncio.create_task(terminals.update(stand.first, "t1", {"maker": "another"}), name="other")
            )

    write = Importer._write

    async def write_afterwards(importer: Importer, *given: Any) -> Report:
        await changing[0]
        return await write(importer, *given)

    monkeypatch.setattr(Importer, "_write", write_afterwards)
    rows = [{"uid": "t1", "maker": "mine"}, *(terminal_values(f"n{n}", config_id=stand.config) for n in range(1_500))]
    with pytest.raises(Conflict, match="terminal t1: somebody has just changed it"):
        await run(stand, terminals, rows, mode="upsert", on=change)
    page = await terminals.page(stand.first)
    assert [row["maker"] for row in page.rows] == ["another"], "all or nothing"


class BrokenOff(Exception):
    """Ends an import."""


async def refused_beside(
    stand: Stand, repository: EntityRepository, rows: list[dict[str, Any]], *refer: Callable[[Row], Awaitable[object]]
) -> list[str]:
    """How it is refused to refer to the first record of an import that is under way, which is broken off then."""
    told: list[str] = []

    async def try_each() -> None:
        first = (await repository.page(stand.first, order_by=("id", False), page_size=1_000)).rows[-1]
        for each in refer:
            with pytest.raises(BadParameter) as refused:
                await each(first)
            told.append(re.sub(r"'\w+'|\d+", "KEY", str(refused.value)))

    trying: list[asyncio.Task[None]] = []

    def on(stage: str, done: int, total: int) -> None:
        if stage == "write" and done and not trying:
            trying.append(asyncio.create_task(try_each(), name="others"))
        elif trying and trying[0].done():
            raise BrokenOff

    with pytest.raises(BrokenOff):
        await run(stand, repository, rows, on=on)
    await trying[0]
    return told


async def test_nobody_refers_to_what_may_be_taken_back(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    if stand.database.sqlite_file is None:
        pytest.skip("elsewhere an import is one transaction, which nobody sees before its end")
    terminals, objects, configurations = stand.entities.terminals, stand.entities.objects, stand.entities.configurations
    values = [terminal_values(f"n{n}", config_id=stand.config) for n in range(4_000)]
    there = await objects.create(stand.first, {"name": "there before"})

    async def import_one(row: Row) -> None:
        try:
            await run(stand, objects, [{"name": "of a file", "terminal_list": [row["uid"]]}])
        except ImportRefused as error:
            raise BadParameter("terminal_list", error.result.errors[0].reason) from None

    assert (
        await refused_beside(
            stand,
            terminals,
            values,
            lambda row: objects.create(stand.first, {"name": "o", "terminal_list": [row["uid"]]}),
            lambda row: objects.update(stand.first, there["uid"], {"terminal_list": str(row["id"])}),
            import_one,
        )
        == ["terminal_list: terminal KEY is being imported: try again when that import has ended"] * 3
    )
    assert await refused_beside(
        stand,
        configurations,
        [{"name": f"c{n}"} for n in range(4_000)],
        lambda row: stand.terminal("t1", config_id=row["uid"]),
    ) == ["config_id: configuration KEY is being imported: try again when that import has ended"]
    assert await refused_beside(
        stand,
        objects,
        [{"name": f"o{n}"} for n in range(4_000)],
        lambda row: objects.update(stand.first, there["uid"], {"object_list": [row["id"]]}),
    ) == ["object_list: object KEY is being imported: try again when that import has ended"]
    pages = [await each.page(stand.first) for each in (terminals, objects, configurations)]
    assert [page.total for page in pages] == [0, 1, 1], "as it was before"
    assert "stay, as others refer to them" not in caplog.text
    await run(stand, terminals, values[:1_000])
    await objects.update(stand.first, there["uid"], {"terminal_list": ["n0", "n999"]})
