"""Lists by a part of a name, found by names in memory, are those that the database alone has."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_stand import ROOT, Stand, make_stand

from query_plans import asked, scans
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Conditions
from terrazzo.domain.registry import Registry
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories import name_column
from terrazzo.metadata.repositories.name_column import _joined, _Piece, parts_of_names
from terrazzo.metadata.repositories.terminal_batches import TerminalBatches

NAMES = ("Pump 0777", "pump 77", "PUMP", "Pümp 0777", "PÜMP", "a%b_c", "a\\b", "ab", "Ölpumpe", "x", "07", "K", "K")
PATTERNS = ("%0777%", "%pump%", "PUMP%", "%Ü%", "%ü%", "a_b%", "%\\%", "%a%b%", "_", "%", "%77", "zzz", "K%", "%_0_7%")
MANY = 3_000
SQLITE = pytest.mark.parametrize("kind", ["sqlite"])  # PostgreSQL has trigrams


def like(pattern: str, *more: tuple[str, str, Any]) -> Conditions:
    return Conditions(all_of=[("name", "like", pattern), *more])


def searched(pattern: str, *more: tuple[str, str, Any]) -> Conditions:
    """As a person's search has it."""
    return Conditions(all_of=more, any_of=[("uid", "like", pattern), ("name", "like", pattern)])


async def fill(stand: Stand) -> None:
    for number, name in enumerate(NAMES * 2):
        actor = stand.first if number % 3 else stand.second
        await stand.terminal(f"t{number:02}", actor, name=name, type="Other" if number % 2 else "Adapter-II")


async def found(stand: Stand, actor: Any, pattern: str) -> list[str]:
    page = await stand.entities.terminals.page(actor, conditions=like(pattern), page_size=100)
    assert page.total == len(page.rows)
    return [row["uid"] for row in page.rows]


@SQLITE
@pytest.mark.parametrize("most", [name_column.MOST, 3])
async def test_the_same_as_the_database_alone_has(stand: Stand, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(name_column, "MOST", most)  # with more that may fit, lists are read as ever
    await fill(stand)
    terminals = stand.entities.terminals
    for actor in (ROOT, stand.first):
        for pattern in PATTERNS:
            other, later = ("type", "=", "Other"), ("id", ">", 3)
            either = (searched(pattern), searched(pattern, other), searched("%t1%", later))
            for conditions in (like(pattern), like(pattern, other), like(pattern, later), *either):
                for order in (None, ("name", True)):
                    for size, index in ((3, 2), (100, 1)):
                        asked_for: dict[str, Any] = {"page_size": size, "page_index": index, "order_by": order}
                        page = await terminals.page(actor, conditions=conditions, **asked_for)
                        names, terminals.names = terminals.names, None
                        assert page == await terminals.page(actor, conditions=conditions, **asked_for)
                        terminals.names = names


async def test_what_is_made_renamed_and_deleted_is_followed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(name_column, "CHANGED", 3)  # after which all are read again
    await fill(stand)
    terminals = stand.entities.terminals
    assert (terminals.names is not None) == (kind == "sqlite"), "PostgreSQL has trigrams"
    assert await found(stand, ROOT, "%new%") == []
    for number in range(8):
        await stand.terminal(f"n{number}", name=f"A new one {number}")
        assert await found(stand, stand.first, "%NEW one%") == [f"n{each}" for each in range(number + 1)]
    await terminals.update(stand.first, "n3", {"name": "other"})
    await terminals.delete(stand.first, "n4")
    page = await terminals.page(stand.first, conditions=searched("%N7%"), page_size=100)
    assert [row["uid"] for row in page.rows] == ["n7"]
    await TerminalBatches(terminals).delete(stand.first, ["n5"])
    assert await found(stand, stand.first, "%new%") == ["n0", "n1", "n2", "n6", "n7"]
    assert await found(stand, stand.first, "%othe%") == ["n3"]
    assert await found(stand, stand.second, "%new%") == []


async def test_what_others_change_is_found_before_it_is_heard_of(stand: Stand, url: str, tmp_path: Path) -> None:
    await fill(stand)
    assert await found(stand, ROOT, "%elsewhere%") == []
    database = await Database.open(url, data_dir=tmp_path)
    try:
        others = Entities.open(database, Registry(), Secrets.open(tmp_path))
        for uid in ("t01", "t02"):
            await others.terminals.update(ROOT, uid, {"name": f"named elsewhere {uid}"})
            assert await found(stand, ROOT, f"%elsewhere {uid}%") == [uid]
    finally:
        await database.close()


async def test_what_is_committed_and_not_told_yet_is_found(stand: Stand) -> None:
    await fill(stand)
    terminals, table = stand.entities.terminals, TERMINAL.table
    assert await found(stand, ROOT, "%untold%") == []

    async def rename(uid: str) -> None:
        async with stand.database.writing() as connection:
            await connection.execute(table.update().where(table.c.uid == uid).values(name=f"untold {uid}"))

    async with terminals._turn:  # as a change has it until it is told
        await rename("t01")
        assert await found(stand, ROOT, "%untold%") == ["t01"]

    async def interrupted() -> None:
        with stand.database.own.told_at_once() as own:
            own.append(MetadataChange("terminal", 1, "t02"))
            await rename("t02")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await interrupted()
    assert await found(stand, ROOT, "%untold t02%") == ["t02"]


@SQLITE
async def test_names_are_read_once_and_again_after_a_failure(stand: Stand) -> None:
    await fill(stand)
    names = stand.entities.terminals.names
    assert names is not None
    reading = asyncio.create_task(names.read_for(like("%x%")))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading})
    assert (names._pieces, names._changed) == (None, None), "nobody notes changes of what is not there"
    await asyncio.gather(*(names.read_for(like("%x%")) for _ in range(3)))
    pieces = names._pieces
    await names.read_for(like("%y%"))
    assert pieces is not None
    assert names._pieces is pieces


@SQLITE
async def test_no_row_is_looked_at_that_can_not_fit(database: Database, kind: str, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    row = dict(await stand.terminal("first"))
    stored = {name: row[name] for name in TERMINAL.fields if name in row} | {"pin": "", "series": None, "tags": "[]"}
    async with database.writing() as connection:
        rows = [stored | {"id": 100 + each, "uid": f"t{each}", "name": f"n{each:05}"} for each in range(MANY)]
        await connection.execute(TERMINAL.table.insert(), rows)
    for actor in (ROOT, stand.first):
        for order in (None, ("name", False), ("created", True)):
            for conditions, total in ((like("%n0077%"), 10), (searched("%T77%"), 11), (searched("%N0077%"), 10)):
                with asked() as statements:
                    page = await stand.entities.terminals.page(actor, conditions=conditions, order_by=order)
                assert page.total == total
                async with database.reading() as connection:
                    for statement, parameters in statements:
                        if "json_group_array" not in statement:  # that reads the names
                            assert "terminal" not in await scans(connection, kind, statement, parameters), statement


TEXTS = st.text(
    st.sampled_from("abAB01äÄ\u0130ſ\\%_ ") | st.characters(codec="utf-8", exclude_characters="\0"), max_size=12
)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12), st.lists(TEXTS, min_size=1, max_size=3), st.booleans())
def test_every_name_that_fits_may_fit(names: list[tuple[str, str]], patterns: list[str], is_any: bool) -> None:
    piece = _Piece(range(len(names)), [_joined(each) for each in names])
    columns = ("name", "uid")
    wanted = [(columns[number % 2 if is_any else 0], "like", each) for number, each in enumerate(patterns)]
    conditions = Conditions(any_of=wanted) if is_any else Conditions(all_of=wanted)
    parts = parts_of_names(conditions, columns)
    may_fit = {each for part in parts for each in piece.found(part)} if parts else set(range(len(names)))
    with sqlite3.connect(":memory:") as connection:
        for number, pair in enumerate(names):
            named = dict(zip(columns, pair, strict=True))
            fits = [
                connection.execute(
                    "SELECT ? LIKE ? ESCAPE '\\'", (named[column], each.replace("\\", "\\\\"))
                ).fetchone()
                for column, _, each in wanted
            ]
            found = [each for (each,) in fits]
            assert number in may_fit or not (any(found) if is_any else all(found))


@given(TEXTS, st.lists(TEXTS, max_size=12))
def test_a_record_is_found_once_for_each_part(part: str, names: list[str]) -> None:
    parts = parts_of_names(Conditions(all_of=[("name", "like", f"%{part}%")]), ["name"])
    for each in parts:
        found = list(_Piece(range(len(names)), names).found(each))
        assert len(set(found)) == len(found)


def test_what_else_may_fit_is_not_looked_for_in_names() -> None:
    columns = ("name", "uid")
    other = [("name", "like", "%a%"), ("type", "=", "x")]
    assert parts_of_names(Conditions(any_of=other), columns) == []
    assert parts_of_names(Conditions(any_of=[("name", "like", "%a%"), ("uid", "like", "%_%")]), columns) == []
    assert parts_of_names(Conditions(any_of=[("uid", "like", f"%{each}%") for each in range(9)]), columns) == []
    assert parts_of_names(Conditions(all_of=[("uid", "like", "%ab%")], any_of=other), columns) == [b"ab"]
    assert parts_of_names(Conditions(), columns) == []
