"""The registry in memory is what the database says, after every change and at every start."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from registry_stand import ROOT, Stand, terminal_values

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import BUSY_TIMEOUT_S, Database
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import BadParameter, Conflict
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.rows import RowCodec


async def test_terminal_reaches_the_registry_whole(stand: Stand, tmp_path: Path) -> None:
    row = await stand.terminal(
        "G1",
        mode="auto",
        access="pub",
        topic="pub:r,a;sub:g/#",
        is_route=1,
        session_expiry=3600,
        keep_alive=60,
        encryption=1,
        dixie=1,
        is_available=0,
    )
    expected = Terminal(
        id=row["id"],
        uid="G1",
        name="Terminal G1",
        company_id=stand.first.company_id,
        type="Adapter-II",
        mode="auto",
        username="u-G1",
        pin="pin-of-it",
        access="pub",
        topic="pub:r,a;sub:g/#",
        is_route=True,
        session_expiry_s=3600,
        keep_alive_s=60,
        encryption=True,
        dixie=True,
        is_available=False,
        config_id=row["config_id"],
    )
    assert stand.registry.terminal("G1") == expected
    loaded = await load_registry(stand.database, Secrets.open(tmp_path))
    assert list(loaded.terminals()) == [expected]


async def test_registry_follows_changes_and_tells_only_of_real_ones(stand: Stand) -> None:
    seen: list[tuple[str | None, str | None]] = []
    stand.registry.terminal_changes.listen(
        lambda before, after: seen.append((before and before.pin, after and after.pin))
    )
    terminals = stand.entities.terminals
    await stand.terminal("G1")
    await terminals.update(stand.first, "G1", {"pin": "another"})
    await terminals.update(stand.first, "G1", {"description": "nothing that the hot path knows"})
    await terminals.set_all_activated({"G1": 5_000_000})
    await terminals.update(stand.first, "G1", {"maker": "nor this"})
    await terminals.delete(stand.first, "G1")
    assert seen == [(None, "pin-of-it"), ("pin-of-it", "another"), ("another", None)]
    assert stand.registry.terminal("G1") is None


async def test_refused_change_leaves_the_registry_alone(stand: Stand) -> None:
    await stand.terminal("G1")
    before = stand.registry.terminal("G1")
    with pytest.raises(BadParameter):
        await stand.entities.terminals.update(stand.first, "G1", {"pin": "new", "config_id": "nothing"})
    with pytest.raises(Conflict):
        await stand.terminal("G1", pin="new")
    assert stand.registry.terminal("G1") is before


async def test_object_list_reaches_the_registry_in_order(stand: Stand, tmp_path: Path) -> None:
    rows = [await stand.terminal(f"G{number}") for number in range(4)]
    objects = stand.entities.objects
    forms = [
        (["G2", "G0"], ("G2", "G0")),
        ('["G1", "G3"]', ("G1", "G3")),
        ("G3, G0,G1", ("G3", "G0", "G1")),
        ([rows[2]["id"], str(rows[1]["id"])], ("G2", "G1")),
        ("", ()),
        (None, ()),
        ([], ()),
    ]
    made = await objects.create(stand.first, {"name": "o"})
    assert (made["terminal_list"], stand.registry.object_terminals(made["id"])) == ([], ())
    for given, expected in forms:
        row = await objects.update(stand.first, made["id"], {"terminal_list": given})
        assert row["terminal_list"] == list(expected)
        assert stand.registry.object_terminals(made["id"]) == expected
        loaded = await load_registry(stand.database, Secrets.open(tmp_path))
        assert loaded.object_terminals(made["id"]) == expected
    await objects.update(stand.first, made["id"], {"terminal_list": ["G1", "G2"]})
    await objects.update(stand.first, made["id"], {"name": "renamed"})
    assert stand.registry.share_object("G1", "G2")
    await objects.delete(stand.first, made["uid"])
    assert not stand.registry.share_object("G1", "G2")
    await stand.entities.terminals.delete(stand.first, "G1")


async def test_bad_object_lists_are_refused(stand: Stand) -> None:
    await stand.terminal("G1")
    await stand.terminal("F1", stand.second)
    for given, reason in [
        (["G1", "G1"], "terminal G1 is listed twice"),
        (["G1", "nothing"], "no terminal 'nothing'"),
        (["F1"], "no terminal 'F1'"),
        ([[1]], "expected uids"),
        ([""], "expected uids"),
        ([True], "expected uids"),
        ({"a": 1}, "expected an array"),
        (7, "expected a JSON object or array"),
        ("[1", "not valid JSON"),
        (["x"] * 1_001, "at most 1000"),
    ]:
        with pytest.raises(BadParameter, match=f"terminal_list: {reason}"):
            await stand.entities.objects.create(stand.first, {"name": "o", "terminal_list": given})
    assert (await stand.entities.objects.page(ROOT)).total == 0


async def test_first_login_is_noted_once(stand: Stand) -> None:
    terminals = stand.entities.terminals
    await stand.terminal("G1")
    await stand.terminal("G2")
    await terminals.set_all_activated({"G1": 1_000})
    await terminals.set_all_activated({"G1": 2_000, "G2": 3_000, "unknown": 4_000})
    await terminals.set_all_activated({"G2": 5_000})
    rows = (await terminals.page(ROOT)).rows
    assert [row["activated"] for row in rows] == [1_000, 3_000]
    await terminals.delete(ROOT, "G1")
    await stand.terminal("G1")
    await terminals.set_all_activated({"G1": 6_000})
    assert (await terminals.item(ROOT, "G1"))["activated"] == 6_000


async def test_another_process_follows(stand: Stand, url: str, tmp_path: Path) -> None:
    await stand.terminal("G1")
    database = await Database.open(url, data_dir=tmp_path)
    secrets = Secrets.open(tmp_path)
    watcher = ChangeWatcher(database)
    await watcher.start()
    registry = await load_registry(database, secrets)
    Entities.open(database, registry, secrets).follow(watcher)
    assert await watcher.poll() == 0
    await stand.entities.terminals.update(stand.first, "G1", {"pin": "another"})
    await stand.terminal("G2")
    await stand.terminal("G3")
    await stand.entities.objects.create(stand.first, {"name": "o", "terminal_list": "G1,G2"})
    await stand.entities.terminals.delete(stand.first, "G3")
    assert await watcher.poll() == 5
    assert list(registry.terminals()) == list(stand.registry.terminals())
    assert registry.share_object("G1", "G2")
    await database.close()


async def test_terminal_made_again_under_its_uid_is_not_dropped_by_the_echo(stand: Stand) -> None:
    watcher = ChangeWatcher(stand.database)
    await watcher.start()
    stand.entities.follow(watcher)
    await stand.terminal("G1")
    await stand.entities.terminals.delete(stand.first, "G1")
    await stand.terminal("G1")
    seen: list[object] = []
    stand.registry.terminal_changes.listen(lambda before, after: seen.append((before, after)))
    assert await watcher.poll() == 3
    assert seen == []
    assert stand.registry.terminal("G1") is not None


async def test_cancelled_change_is_either_whole_or_not_there_and_holds_no_lock(stand: Stand) -> None:
    watcher = ChangeWatcher(stand.database)
    await watcher.start()
    stand.entities.follow(watcher)
    cancelled = []  # their tracebacks keep alive what the changes were using
    for number in range(60):
        task = asyncio.create_task(stand.terminal(f"G{number}"))
        await asyncio.sleep(number * 0.0001)
        task.cancel()
        cancelled.append(task)
        await asyncio.wait({task})
        async with asyncio.timeout(BUSY_TIMEOUT_S - 0.5):  # a lock that is held fails the change after that time
            await stand.terminal(f"after-{number}")
    assert any(task.cancelled() for task in cancelled)
    await watcher.poll()
    stored = {row["uid"] for row in (await stand.entities.terminals.page(ROOT, page_size=1000)).rows}
    assert {terminal.uid for terminal in stand.registry.terminals()} == stored
    assert {f"after-{number}" for number in range(60)} <= stored


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
async def test_hundred_thousand_terminals_load_and_page_fast(stand: Stand, tmp_path: Path) -> None:
    row = await stand.terminal("G")
    secrets = Secrets.open(tmp_path)
    codec = RowCodec(TERMINAL, secrets)
    values = {name: row.get(name) for name in TERMINAL.fields}
    async with stand.database.writing() as connection:
        for start in range(0, 100_000, 20_000):
            many = [values | terminal_values(f"G{number}") for number in range(start, start + 20_000)]
            await connection.execute(TERMINAL.table.insert(), [codec.encode(each) for each in many])
    start_s = time.process_time()
    registry = await load_registry(stand.database, secrets)
    load_s = time.process_time() - start_s
    assert sum(1 for _ in registry.terminals()) == 100_001
    assert load_s < 10
    for order in (None, ("name", True)):
        for index in (1, 2_500, 5_000):
            start_s = time.process_time()
            page = await stand.entities.terminals.page(stand.first, page_index=index, order_by=order)
            assert time.process_time() - start_s < 1
            assert (len(page.rows), page.total) == (20, 100_001)
