"""A long import on a database with one writer goes in pieces: others write in between, and it is all or nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa
from api_rig import Rig, config_fields, open_rig, terminal_fields

from length import rounds
from mqtt_bytes import login, publish
from postgresql_server import PostgreSQL, metadata_in
from terrazzo.bulk.plan import Planned, Planner
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.bulk.writing import ImportWriter
from terrazzo.database.tables.events import EVENT
from terrazzo.database.usage import Holder, Use, use_of
from terrazzo.metadata.repositories.repository import Unit
from waiting import close, until

TERMINALS = 1_200


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, limits={"import_bytes": 32 << 20}) as opened:
        await opened.call("create_terminal_config", **(config_fields() | {"name": "Standard"}))
        yield opened


@pytest.fixture
async def on_postgresql(tmp_path: Path, postgresql: PostgreSQL) -> AsyncIterator[Rig]:
    with metadata_in(postgresql):
        async with open_rig(tmp_path) as opened:
            await opened.call("create_terminal_config", **(config_fields() | {"name": "Standard"}))
            yield opened


def rows(terminals: int = TERMINALS) -> list[dict[str, Any]]:
    return [
        {"uid": f"T{n}", "name": f"T {n}", "type": "A", "config_id": "Standard", "mode": "pwd"}
        | {"username": f"u{n}", "pin": f"{n:08}"}
        for n in range(terminals)
    ]


def after_piece(rig: Rig, number: int, act: Callable[[], Awaitable[object]]) -> None:
    """Has ``act`` begin when so many pieces are about to be written."""
    unfinished, seen = rig.services.unfinished_imports, 0
    note = unfinished.note

    async def noted(unit: Unit, entity: str, record_ids: Sequence[int]) -> None:
        nonlocal seen
        await note(unit, entity, record_ids)
        seen += 1
        if seen == number:
            await act()

    unfinished.note = noted  # type: ignore[method-assign]


async def count(rig: Rig) -> int:
    """The terminals that there are."""
    async with rig.platform.metadata.database.reading() as connection:
        found = await connection.execute(sa.select(sa.func.count()).select_from(rig.services.entities.terminals.table))
        return int(found.scalar_one())


async def test_others_write_in_between(rig: Rig) -> None:
    begun, done = asyncio.Event(), asyncio.Event()
    written = 0

    async def write() -> None:
        nonlocal written
        while not done.is_set():
            await rig.call("create_customer", name=f"c{written}", created_by=1, last_modified_by=1)
            written += 1
            begun.set()

    writing = asyncio.create_task(write())
    await begun.wait()
    before = written
    report = await rig.call("import_terminals", rows=rows(3_000), mode="create")
    during = written - before
    done.set()
    await writing
    assert report["created"] == 3_000
    assert during >= 4, "in one transaction there would be two at most, one before and one after"
    assert await count(rig) == 3_000


async def test_a_connection_is_held_for_some_rows_at_a_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are computed meanwhile, and connections are few: an import of 100,000 rows held one for ten seconds."""
    checked: list[Any] = []
    check = Planner._row

    async def noted(planner: Planner, *row: Any) -> Planned | None:
        checked.append(planner._connection)
        return await check(planner, *row)

    monkeypatch.setattr(Planner, "_row", noted)
    found = await rig.call("import_terminals", rows=rows(), mode="create", dry_run=1)
    assert (found["created"], len(checked)) == (TERMINALS, TERMINALS)
    assert [sum(each is one for each in checked) for one in dict.fromkeys(checked)] == [500, 500, 200]


class Others:
    """Another company's commands and events, one after the other, and how many pieces each waited for."""

    def __init__(self, rig: Rig) -> None:
        self.commands: list[int] = []
        self.events: list[int] = []
        self.pieces = 0
        self._rig = rig
        unfinished = rig.services.unfinished_imports
        note = unfinished.note

        async def noted(unit: Unit, entity: str, record_ids: Sequence[int]) -> None:
            await note(unit, entity, record_ids)
            self.pieces += 1

        unfinished.note = noted  # type: ignore[method-assign]

    async def prepare(self) -> None:
        by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        config = await self._rig.add_config("stranger", name="other")
        for uid in ("busy", "away"):
            await self._rig.add_terminal(uid, "stranger", config_id=config)
        script = [["HOT", "Hot", "\u70ed", "EVNT", "busy.t", "x", "x > 800"]]
        mapping = await self._rig.call("create_mapping", "stranger", name="m", script=script, **by)
        await self._rig.call("create_object", "stranger", name="o", mapping_id=mapping["uid"], terminal_list=["busy"])

    async def command(self) -> None:
        """One is given: its journal has it when that is answered."""
        began = self.pieces
        await self._rig.call("publish_terminal_command", "stranger", terminal_id="away", command="SP", value=1)
        self.commands.append(self.pieces - began)

    async def report(self) -> None:
        """A terminal is hot and cold in turn, until the task is cancelled."""
        host, _, port = self._rig.addresses.mqtt[0].rpartition("/")[2].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(login("busy", "u-busy", "p-busy"))
            assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
            for number in itertools.count(1):
                for heat in (900, 0):
                    await self._report(reader, writer, heat, number)
        finally:
            await close(writer)

    async def _report(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heat: int, number: int) -> None:
        writer.write(publish("g/busy/r", b'{"t": %d}' % heat))
        await reader.readexactly(4)
        began = self.pieces  # how long the store took for the report is nothing of the database's
        while heat and await self._in_database() < number:  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0)
        if heat:
            self.events.append(self.pieces - began)

    async def _in_database(self) -> int:
        async with self._rig.platform.metadata.database.reading() as connection:
            found = await connection.execute(sa.select(sa.func.count()).select_from(EVENT))
            return int(found.scalar_one())


@pytest.mark.timeout(rounds(120, 1_800))
async def test_others_events_and_commands_wait_for_a_piece_and_not_for_the_import(rig: Rig) -> None:
    """By pieces, of which a machine of its own writes ten in a second: ``benchmarks/bulk.py`` has the times."""
    others, count = Others(rig), rounds(5_000, 100_000)
    await others.prepare()
    reporting, done = asyncio.create_task(others.report()), asyncio.Event()

    async def command() -> None:
        while not done.is_set():
            await others.command()

    commanding = asyncio.create_task(command())
    await until(lambda: others.events and others.commands, "both are at work")
    file = "\n".join(json.dumps(row) for row in rows(count))
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
    forever = aiohttp.ClientTimeout()
    async with rig.http.post("/bulk/terminals", data=file.encode(), headers=headers, timeout=forever) as response:
        report = (await response.json())["result"]
    done.set()
    await commanding
    reporting.cancel()
    await asyncio.wait({reporting})
    assert (report["created"], others.pieces) == (count, count // 500)
    waits = others.commands + others.events
    assert sum(each > 0 for each in waits) >= 2, "some came while a piece was written"
    assert max(waits) <= 3, "the piece that is written, one more, and one until it is seen"


async def test_beside_an_import_in_one_transaction_others_do_not_wait_at_all(
    on_postgresql: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has many writers: what is written of an import locks nothing that others' events and commands need."""
    rig, add, writes, goes_on = on_postgresql, ImportWriter._add, asyncio.Event(), asyncio.Event()

    async def stands(writer: ImportWriter, *some: Any) -> list[int]:
        made = await add(writer, *some)
        writes.set()
        await goes_on.wait()
        return made

    others = Others(rig)
    await others.prepare()
    monkeypatch.setattr(ImportWriter, "_add", stands)
    importing = asyncio.create_task(rig.call("import_terminals", rows=rows(), mode="create"))
    await writes.wait()
    reporting = asyncio.create_task(others.report())
    await others.command()
    await until(lambda: len(others.events) >= 2, "events are in the database")
    assert not importing.done()
    reporting.cancel()
    await asyncio.wait({reporting})
    goes_on.set()
    assert (await importing)["created"] == TERMINALS


async def fails(rig: Rig, *, at: int, act: Callable[[], Awaitable[object]]) -> dict[str, Any]:
    after_piece(rig, at, act)
    answer = await rig.ask("import_terminals", rows=rows(), mode="create")
    assert answer["code"] != 200
    return answer


async def broken() -> None:
    raise RuntimeError("a fault in the middle")


async def test_what_fails_in_the_middle_leaves_nothing(rig: Rig) -> None:
    await rig.add_terminal("before")
    used = await usage(rig)
    await fails(rig, at=2, act=broken)
    assert await count(rig) == 1
    assert await usage(rig) == used
    assert rig.services.registry.terminal("T1") is None
    entries = (await rig.call("get_audit_list", page_index=1, page_size=1_000))["data"]
    about = [(each["action"], each["batch"]) for each in entries if each["uid"] == "T499"]
    assert [action for action, _ in about] == ["delete", "create"]
    assert about[0][1] == about[1][1] is not None
    del rig.services.unfinished_imports.note
    again = await rig.call("import_terminals", rows=rows(), mode="create")
    assert again["created"] == TERMINALS


async def test_what_somebody_took_meanwhile_is_a_conflict(rig: Rig) -> None:
    config = await rig.add_config(name="other")
    taken: list[asyncio.Task[Any]] = []

    async def take() -> None:
        fields = {**terminal_fields(f"T{TERMINALS - 1}", config), "pin": "another"}
        taken.append(asyncio.create_task(rig.ask("create_terminal", **fields)))

    answer = await fails(rig, at=1, act=take)
    (created,) = await asyncio.gather(*taken)
    assert created["code"] == 200
    assert answer["code"] == 10409 or "taken" in answer["info"] or "contradicts" in answer["info"]
    assert await count(rig) == 1


async def test_nobody_refers_meanwhile_to_what_is_undone(rig: Rig) -> None:
    mapping = await rig.call("create_mapping", name="m", script=[], is_available=1, created_by=1, last_modified_by=1)
    using: list[asyncio.Task[Any]] = []

    async def refer() -> None:
        fields = {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["T1"]}
        using.append(asyncio.create_task(rig.ask("create_object", **fields)))

    after_piece(rig, 1, refer)
    after_piece(rig, 3, broken)
    answer = await rig.ask("import_terminals", rows=rows(1_600), mode="create")
    refused = await asyncio.gather(*using)
    assert answer["code"] != 200
    assert [(each["code"], "is being imported" in each["info"]) for each in refused] == [(10401, True)]
    assert await count(rig) == 0


async def test_what_a_kill_has_left_is_undone_at_the_next_start(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.call("create_terminal_config", **(config_fields() | {"name": "Standard"}))
        undoing = UnfinishedImports._try_to_undo

        async def not_now(*_: object) -> None:
            """As if the process had been killed."""

        UnfinishedImports._try_to_undo = not_now  # type: ignore[method-assign,assignment]
        try:
            await fails(rig, at=2, act=broken)
            assert await count(rig) == 500
        finally:
            UnfinishedImports._try_to_undo = undoing  # type: ignore[method-assign]
        tokens = rig.tokens
    async with open_rig(tmp_path, tokens=tokens) as again:
        assert await count(again) == 0
        assert again.services.registry.terminal("T1") is None


async def test_a_quota_refuses_before_the_first_record(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_records": 1_000}) as rig:
        await rig.call("create_terminal_config", **(config_fields() | {"name": "Standard"}))
        after_piece(rig, 1, broken)
        answer = await rig.ask("import_terminals", rows=rows(), mode="create")
        assert "limits.company_records" in answer["info"]
        assert await count(rig) == 0


async def usage(rig: Rig) -> Use:
    """What the company has of terminals, as it is counted."""
    async with rig.platform.metadata.database.reading() as connection:
        return (await use_of(connection, "terminal", [Holder(1)]))[Holder(1)]
