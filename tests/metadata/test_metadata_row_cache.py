"""Items come from memory, and are what the database says after every change, whoever made it."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_stand import ROOT, Stand

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.errors import NotFound
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.row_cache import RowCache, size_of


@pytest.fixture(params=["sqlite"])
def url() -> str:
    return ""


async def count_queries(stand: Stand, work: Any) -> int:
    """How many transactions ``work`` reads in."""
    count, reading = 0, stand.database.reading

    def counted() -> Any:
        nonlocal count
        count += 1
        return reading()

    stand.database.reading = counted  # type: ignore[method-assign]
    try:
        await work
    finally:
        stand.database.reading = reading  # type: ignore[method-assign]
    return count


async def test_the_second_look_reads_no_database(stand: Stand) -> None:
    row = await stand.terminal("G1")
    item = stand.entities.terminals.item
    assert await count_queries(stand, item(stand.first, "G1")) == 1
    for key in ("G1", row["id"]):
        assert await count_queries(stand, item(stand.first, key)) == 0
        assert await item(stand.first, key) == row
        assert await item(ROOT, key) == row
    made = await stand.entities.objects.create(stand.first, {"name": "o"})
    assert await count_queries(stand, stand.entities.objects.item(stand.first, made["uid"])) == 1
    assert await count_queries(stand, stand.entities.objects.item(stand.first, made["uid"])) == 0


async def test_what_is_kept_is_shown_to_nobody_else(stand: Stand) -> None:
    row = await stand.terminal("G1")
    await stand.entities.terminals.item(stand.first, "G1")
    for key in ("G1", row["id"], str(row["id"])):
        with pytest.raises(NotFound):
            await stand.entities.terminals.item(stand.second, key)
    user = await stand.entities.users.item(stand.first, stand.first.user_id)
    again = await stand.entities.users.item(stand.first, stand.first.user_id)
    assert again == user
    assert not {"password_hash", "token_epoch"} & set(again)


async def test_a_number_is_another_terminals_uid_first(stand: Stand) -> None:
    plain = await stand.terminal("G1")
    item = stand.entities.terminals.item
    await item(stand.first, plain["id"])
    key = str(plain["id"])
    assert (await item(stand.first, key))["uid"] == "G1"
    tricky = await stand.terminal(key)
    assert (await item(stand.first, key))["id"] == tricky["id"]
    assert (await item(stand.first, key))["id"] == tricky["id"]
    await stand.entities.terminals.delete(stand.first, tricky["id"])
    assert (await item(stand.first, key))["uid"] == "G1"


async def test_a_change_is_seen_at_once(stand: Stand) -> None:
    await stand.terminal("G1")
    terminals = stand.entities.terminals
    for number in range(3):
        await terminals.item(stand.first, "G1")
        await terminals.update(stand.first, "G1", {"description": f"{number}"})
        assert (await terminals.item(stand.first, "G1"))["description"] == f"{number}"
    await terminals.delete(stand.first, "G1")
    with pytest.raises(NotFound):
        await terminals.item(stand.first, "G1")
    again = await stand.terminal("G1", description="another")
    assert await terminals.item(stand.first, "G1") == again


async def test_a_first_login_is_seen_at_once(stand: Stand) -> None:
    terminals = stand.entities.terminals
    uids = [f"G{number}" for number in range(3)]
    for uid in uids:
        await stand.terminal(uid)
        assert (await terminals.item(stand.first, uid))["activated"] is None
    await terminals.set_all_activated(dict.fromkeys(uids, 5_000_000))
    assert {(await terminals.item(stand.first, uid))["activated"] for uid in uids} == {5_000_000}
    assert {row["activated"] for row in (await terminals.page(stand.first)).rows} == {5_000_000}


async def test_what_another_process_changes_is_seen_after_a_look(stand: Stand, url: str, tmp_path: Path) -> None:
    await stand.terminal("G1")
    database = await Database.open(url, data_dir=tmp_path)
    other = Entities.open(database, Registry(), Secrets.open(tmp_path))
    changes = ChangeWatcher(stand.database)
    await changes.start()
    stand.entities.follow(changes)
    item = stand.entities.terminals.item
    await item(stand.first, "G1")
    await other.terminals.update(stand.first, "G1", {"name": "renamed"})
    await changes.poll()
    assert (await item(stand.first, "G1"))["name"] == "renamed"
    await other.terminals.set_all_activated({"G1": 7_000_000})
    await changes.poll()
    assert (await item(stand.first, "G1"))["activated"] == 7_000_000
    await other.terminals.delete(stand.first, "G1")
    await changes.poll()
    with pytest.raises(NotFound):
        await item(stand.first, "G1")
    await database.close()


async def test_readers_beside_a_writer_never_keep_an_old_row(stand: Stand) -> None:
    await stand.terminal("G1")
    terminals = stand.entities.terminals
    for number in range(20):
        reads = [terminals.item(stand.first, "G1") for _ in range(3)]
        await asyncio.gather(*reads, terminals.update(stand.first, "G1", {"keep_alive": number}))
        assert (await terminals.item(stand.first, "G1"))["keep_alive"] == number


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 6)),
        st.tuples(st.just("slow read"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["write", "delete", "forget"]), st.integers(1, 6)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_cache_is_never_behind_and_never_too_large(steps: list[tuple[str, int]]) -> None:
    table: dict[int, dict[str, Any]] = {}
    cache = RowCache("uid", most=3)
    for version, (step, number) in enumerate(steps):
        row, read_at = table.get(number), cache.changes
        if step in ("write", "slow read"):
            table[number] = {"id": number, "uid": f"u{number}", "version": version}
            cache.change(number, table[number])
        elif step == "delete":
            table.pop(number, None)
            cache.change(number, None)
        elif step == "forget" and number in table:
            table[number] = {**table[number], "version": version}
            cache.forget(f"u{number}")
        if step in ("read", "slow read") and row is not None:  # a slow one read before the change
            cache.keep(row, read_at=read_at)
        kept = [each for each in range(1, 7) if cache.by_id(each) is not None]
        assert len(kept) <= 3
        for each in kept:
            assert cache.by_id(each) == cache.by_uid(f"u{each}") == table[each]


def test_the_least_recently_used_row_goes() -> None:
    cache = RowCache("uid", most=2)
    rows = [{"id": number, "uid": f"u{number}"} for number in (1, 2, 3)]
    cache.keep(rows[0], read_at=0)
    cache.keep(rows[1], read_at=0)
    assert cache.by_uid("u1") == rows[0]
    cache.keep(rows[2], read_at=0)
    assert [cache.by_id(number) is not None for number in (1, 2, 3)] == [True, False, True]
    assert cache.by_uid("u2") is None


def test_long_rows_leave_sooner() -> None:
    cache = RowCache("uid", most_bytes=980_000)
    for number in range(1, 21):
        cache.keep({"id": number, "uid": f"u{number}", "script": [["x" * 90_000, 1, None]]}, read_at=0)
    assert [number for number in range(1, 21) if cache.by_id(number)] == list(range(11, 21))
    for number in range(11, 21):
        cache.change(number, {"id": number, "uid": f"u{number}", "script": []})
    for number in range(21, 31):
        cache.keep({"id": number, "uid": f"u{number}", "script": [["x" * 90_000]]}, read_at=10)
    assert cache.by_id(11), "there is room for them now"


def test_rows_count_for_their_company_and_its_least_used_go_first() -> None:
    cache = RowCache("uid", "company_id")
    for number in range(1, 9):
        cache.keep({"id": number, "uid": f"u{number}", "company_id": number % 2, "text": "x" * 10_000}, read_at=0)
    assert cache.by_id(1)
    kept = cache.kept()
    assert kept[0] == kept[1]
    assert 40_000 < kept[1].bytes < 45_000
    assert 10_000 < cache.give_up(1, 10_000) < 12_000
    assert [number for number in range(1, 9) if cache.by_id(number)] == [1, 2, 4, 5, 6, 7, 8], "3 was used longest ago"
    assert cache.give_up(1, 10**6) == kept[1].bytes * 3 // 4
    assert cache.kept() == {0: kept[0]}
    cache.change(2, {"id": 2, "uid": "u2", "company_id": 0, "text": ""})
    assert cache.kept()[0].bytes < kept[0].bytes * 7 // 8
    for number in (2, 4, 6, 8):
        cache.change(number, None)
    assert cache.kept() == {}


def test_what_is_counted_is_what_rows_cost() -> None:
    rows: list[dict[str, Any]] = []
    tracemalloc.start()
    try:
        for number in range(2_000):
            row = {f"column_{n}": number * 1_000 + n for n in range(12)} | {"name": f"record {number}", "script": []}
            row["script"] = [[f"V{n}", f"variable {n} of {number}", "STA", f"t.p{n}"] for n in range(5)]
            rows.append(row)
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    grown = sum(
        each.size for each in snapshot.filter_traces([tracemalloc.Filter(True, __file__)]).statistics("filename")
    )
    counted = sum(map(size_of, rows))
    assert 0.7 < counted / grown < 1.3, (counted, grown)
