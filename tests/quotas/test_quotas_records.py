"""Records and files that a company may have: what is over is refused, what was there before stays and is named."""

from __future__ import annotations

import asyncio
import logging
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from api.api_rig import Rig, config_fields, open_rig, terminal_fields
from metadata.registry_stand import make_stand
from terrazzo.database.database import Database
from terrazzo.database.migration import WRITING
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import Holder, Use, add_use, count_missing, measure, use_of
from terrazzo.errors import QuotaExceeded
from terrazzo.metadata.excesses import ALL_COUNTED
from terrazzo.metadata.quotas import COUNTED_RECORDS, RecordQuotas

UPLOAD = "/object/api/v1/file/upload"


async def send(rig: Rig, content: bytes, who: str = "operator") -> dict[str, Any]:
    """Uploads a file; the answer's envelope."""
    form = aiohttp.FormData()
    form.add_field("file", BytesIO(content), filename="it.bin")
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with rig.http.post(UPLOAD, data=form, headers=headers) as response:
        return dict(await response.json())


async def kept(database: Database) -> dict[tuple[int, str, int], Use]:
    """All counters that are not zero."""
    async with database.reading() as connection:
        rows = (await connection.execute(sa.select(COMPANY_USAGE))).all()
    return {(row.company_id, row.kind, row.part): Use(row.records, row.bytes) for row in rows if row.records}


async def counted_anew(database: Database) -> dict[tuple[int, str, int], Use]:
    """What a count of everything comes to, by company."""
    found = {}
    async with database.reading() as connection:
        for each in ALL_COUNTED:
            ids = (await connection.execute(sa.select(each.table.c.id))).scalars().all()
            for holder, use in (await measure(connection, each, ids)).items():
                found[(holder.company_id, each.kind, holder.part)] = use
    return found


async def test_more_records_than_a_company_may_have_are_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_records": 4}) as rig:
        config = await rig.add_config()
        for uid in ("t0", "t1", "t2", "t3"):  # as many as there are users
            await rig.add_terminal(uid, config_id=config)
        refused = await rig.ask("create_terminal", **terminal_fields("t4", config))
        assert refused["code"] == 500
        assert refused["info"] == (
            "terminal: your company would have 5 records, and may have 4 (limits.company_records)"
        )
        rows = [terminal_fields("t5", config), terminal_fields("t6", config)]
        refused = await rig.ask("import_terminals", rows=rows)
        assert "limits.company_records" in refused["info"]
        assert (await rig.ask("delete_terminal", uid="t5"))["code"] == 10404
        await rig.add_terminal("s1", "stranger")  # another company has its own
        await rig.call("update_terminal", **(terminal_fields("t1", config) | {"name": "renamed"}))
        await rig.call("delete_terminal", uid="t1")
        await rig.add_terminal("t4", config_id=config)
        async with rig.http.get("/metrics") as response:
            assert "terrazzo_quota_records_refused_total 2.0" in await response.text()


async def test_bytes_of_all_records_together_are_limited(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_record_bytes": 20_000}) as rig:
        first = await rig.add_config(terminal_script={"text": "x" * 9_000})
        fields = config_fields() | {"uid": await rig.add_config()}
        refused = await rig.ask("create_terminal_config", **config_fields(), terminal_script={"t": "é" * 9_000})
        assert "bytes of records" in refused["info"]
        assert "20,000 (limits.company_record_bytes)" in refused["info"]
        grown = fields | {"terminal_script": {"text": "x" * 12_000}}
        assert "limits.company_record_bytes" in (await rig.ask("update_terminal_config", **grown))["info"]
        await rig.call("update_terminal_config", **config_fields(), uid=first, terminal_script={})
        await rig.call("update_terminal_config", **grown)


async def test_what_was_there_before_stays_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_rig(tmp_path) as rig:
        config = await rig.add_config()
        for uid in ("t1", "t2", "t3"):
            await rig.add_terminal(uid, config_id=config)
        tokens = rig.tokens
    caplog.set_level(logging.WARNING)
    async with open_rig(tmp_path, limits={"company_records": 2}, tokens=tokens) as rig:
        said = "company 1 has 3 records of terminal, more than limits.company_records = 2: what is there stays"
        assert any(said in record.getMessage() for record in caplog.records)
        assert len(await rig.call("get_terminal_list", page_index=1, page_size=10)) == 3
        await rig.call("update_terminal", **(terminal_fields("t1", config) | {"name": "renamed"}))
        assert "limits.company_records" in (await rig.ask("create_terminal", **terminal_fields("t4", config)))["info"]
        await rig.call("delete_terminal", uid="t1")
        await rig.call("delete_terminal", uid="t2")
        await rig.add_terminal("t4", config_id=config)


async def test_files_are_limited_by_number_and_bytes(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_files": 3, "company_file_bytes": 100_000}) as rig:
        assert (await send(rig, b"x" * 60_000))["code"] == 200
        refused = await send(rig, b"x" * 60_000)
        assert refused["code"] == 500
        assert "bytes of files, and may have 100,000 (limits.company_file_bytes)" in refused["info"]
        for _ in range(2):
            assert (await send(rig, b"x" * 100))["code"] == 200
        assert "3 (limits.company_files)" in (await send(rig, b"x"))["info"]
        assert (await send(rig, b"x" * 60_000, "stranger"))["code"] == 200
        assert len(list((tmp_path / "files").glob("*"))) == 4
        async with rig.http.get("/metrics") as response:
            assert "terrazzo_quota_files_refused_total 2.0" in await response.text()


async def test_uploads_at_the_same_time_count_together(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"company_file_bytes": 100_000}) as rig:
        answers = await asyncio.gather(*(send(rig, b"x" * 40_000) for _ in range(6)))
        assert sorted(answer["code"] for answer in answers)[:2] == [200, 200]
        assert sum(each.stat().st_size for each in (tmp_path / "files").glob("*")) <= 100_000
        assert (await kept(rig.platform.metadata.database))[(1, "upload", 0)].bytes <= 100_000


async def test_counters_are_what_a_count_comes_to(database: Database, tmp_path: Path) -> None:
    await count_missing(database, ALL_COUNTED)
    stand = await make_stand(database, tmp_path)
    entities = stand.entities
    for uid in ("ta", "tb", "tc"):
        await stand.terminal(uid)
    await stand.terminal("td", stand.second)
    values = {"name": "Objekt ü", "terminal_list": ["ta", "tb"]}
    made = await entities.objects.create(stand.first, values)
    await entities.objects.update(stand.first, made["id"], {"terminal_list": ["ta", "tb", "tc"], "name": "O"})
    await entities.terminals.update(stand.second, "td", {"name": "longer than before"})
    entities.terminals._quotas.records = 3
    with pytest.raises(QuotaExceeded, match=r"limits\.company_records"):
        await stand.terminal("te")
    assert await kept(database) == await counted_anew(database)
    await entities.objects.delete(stand.first, made["id"])
    await entities.terminals.delete(stand.first, "tc")
    assert await kept(database) == await counted_anew(database)
    assert await count_missing(database, ALL_COUNTED) == []


async def test_what_no_start_has_counted_is_counted_once(database: Database, tmp_path: Path) -> None:
    stand = await make_stand(database, tmp_path)
    for number in range(5):
        await stand.terminal(f"t{number}")
    async with database.writing() as connection:
        await connection.execute(COMPANY_USAGE.delete())
        await add_use(connection, "terminal", {Holder(99): Use(7, 7)})
    assert "terminal" in await count_missing(database, ALL_COUNTED)
    assert await kept(database) == await counted_anew(database)
    async with database.reading() as connection:
        first = Holder(stand.first.company_id)
        assert (await use_of(connection, "terminal", [first]))[first].records == 5


async def test_a_start_that_has_nothing_to_count_asks_once_and_writes_nothing(database: Database) -> None:
    await count_missing(database, ALL_COUNTED)
    asked: list[str] = []
    begun: list[dict[str, Any]] = []
    event.listen(database.engine.sync_engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    event.listen(database.engine.sync_engine, "begin", lambda given: begun.append(given.get_execution_options()))
    assert await count_missing(database, ALL_COUNTED) == []
    assert [each.split(maxsplit=1)[0] for each in asked] == ["SELECT"]
    assert [options.keys() & WRITING.keys() for options in begun] == [set()], "one transaction, which reads"


def test_every_entity_of_a_company_is_counted() -> None:
    assert "terminal" in COUNTED_RECORDS
    assert "company" not in COUNTED_RECORDS
    assert len(COUNTED_RECORDS) > 20
    assert RecordQuotas().records > 10**18
