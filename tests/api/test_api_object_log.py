"""The log of an object: what people wrote, files, its terminals out of service, and their connections."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import Rig, open_rig
from test_api_happenings import insert

from query_plans import asked
from terrazzo.database.tables.presence import PRESENCE_DAY
from terrazzo.database.tables.registry import RECORD_LOG
from terrazzo.domain.actor import SYSTEM
from terrazzo.metadata.definitions.components import COLLECTOS, SERVICE
from terrazzo.ports.bus import Presence
from terrazzo.terminals.presence_bands import MOST_A_DAY, STOPPED, Change, DayLog, encode_day
from terrazzo.times import DAY_US, now_us

BY: dict[str, Any] = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
PDF = {"name": "plan.pdf", "url": "file/1", "uid": "1"}
PHOTO = {"name": "photo.jpg", "url": "file/2", "uid": "2"}


async def make_object(rig: Rig, *terminals: str) -> int:
    config = await rig.add_config()
    for uid in terminals:
        await rig.add_terminal(uid, config_id=config)
    row = ["T", "", "", "STA", "$AdapterID-1.t", ""]
    mapping = (await rig.call("create_mapping", name="m", script=[row], **BY))["uid"]
    made = await rig.call("create_object", name="o", mapping_id=mapping, terminal_list=list(terminals), **BY)
    return int(made["id"])


def note(rig: Rig, uid: str, *, online: bool, reason: str = "") -> None:
    """A connection begins or ends."""
    terminal = rig.services.registry.terminal(uid)
    client: Any = SimpleNamespace(identity=SimpleNamespace(terminal=terminal))
    rig.services.presence_log.on_presence(client, Presence(online=online, disconnect_reason=reason))


async def log(rig: Rig, object_id: int, *kinds: str, who: str = "viewer", size: int = 200) -> list[dict[str, Any]]:
    """All pages of it."""
    found: list[dict[str, Any]] = []
    before = ""
    while True:
        asked_for = {"object_id": object_id, "page_size": size, "kinds": list(kinds), "before": before}
        page = await rig.call("get_object_log", who, **asked_for)
        found += page["data"]
        before = page["next"]
        if not before:
            return found


def told(entries: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(each[name] for name in names) for each in entries]


@pytest.mark.usefixtures("each_database")
async def test_what_people_wrote(rig: Rig) -> None:
    object_id, other = await make_object(rig), await make_object(rig)
    entities = rig.services.entities
    project = await entities.collects.create(SYSTEM, {"name": "Filter"})
    for item in (object_id, other):
        whose = {"object_id": item, "name": f"of {item}"}
        await entities.services.create(
            SYSTEM, {**whose, "category": "设备维修", "staff_name": "Ann", "description": "x"}
        )
        await entities.collected.create(
            SYSTEM, {**whose, "project_id": project["id"], "value": "y" * 300, "collector": "Bo"}
        )
    assert told(await log(rig, object_id, "service", "offline"), "kind", "code", "label_en", "value", "username") == [
        ("offline", "", f"of {object_id}", "y" * 255, "Bo"),
        ("service", "设备维修", f"of {object_id}", "x", "Ann"),
    ]
    assert (await rig.ask("get_object_log", "stranger", object_id=object_id))["code"] == 10404


@pytest.mark.usefixtures("each_database")
async def test_files_that_came_and_went(rig: Rig) -> None:
    object_id = await make_object(rig)
    files, objects = rig.services.entities.files, rig.services.entities.objects
    assert await log(rig, object_id, "file") == []
    record = await files.create(SYSTEM, {"name": "f", "file": [PDF]})
    await objects.update(SYSTEM, object_id, {"file_id": record["id"]})
    await files.update(SYSTEM, record["id"], {"file": [PDF, PHOTO]})
    await files.update(SYSTEM, record["id"], {"description": "no other files"})
    await files.update(SYSTEM, record["id"], {"file": [{**PHOTO, "name": "renamed.jpg"}]})
    assert told(await log(rig, object_id, "file"), "code", "value", "username") == [
        ("removed", "plan.pdf", "system"),
        ("attached", "photo.jpg", "system"),
        ("attached", "plan.pdf", "system"),
    ]


async def test_the_files_of_another_company_stay_its_own(rig: Rig) -> None:
    """An object names a file record by number, whoever's that is."""
    object_id = await make_object(rig)
    theirs = await rig.services.entities.files.create(SYSTEM, {"name": "f", "file": [PDF], "permission_company_id": 2})
    await rig.services.entities.objects.update(SYSTEM, object_id, {"file_id": theirs["id"]})
    assert await log(rig, object_id, "file", who="root") == []


@pytest.mark.usefixtures("each_database")
async def test_terminals_out_of_service(rig: Rig) -> None:
    object_id = await make_object(rig, "t1", "t2")
    await rig.add_terminal("t3")
    uids = ["t1", "t3"]
    await rig.call("put_out_of_service", "operator", uids=uids, minutes=10, reason="pump is open")
    await rig.call("put_out_of_service", "operator", uids=["t1"], minutes=20, reason="still open")
    await rig.call("put_into_service", "operator", uids=uids)
    await rig.call("put_into_service", "operator", uids=uids)  # they are: nothing happens
    await rig.call("put_out_of_service", "admin", uids=["t2"], minutes=1, reason="short")
    later = rig.services.out_of_service
    later._clock = lambda: now_us() + DAY_US
    await later.end_over()
    assert told(await log(rig, object_id, "out_of_service"), "code", "value", "terminal_id", "username") == [
        ("ended", "short", "t2", "system"),
        ("set", "short", "t2", "admin-user"),
        ("ended", "still open", "t1", "operator-user"),
        ("set", "still open", "t1", "operator-user"),
        ("set", "pump is open", "t1", "operator-user"),
    ]


@pytest.mark.usefixtures("each_database")
async def test_connections_of_its_terminals(rig: Rig) -> None:
    object_id = await make_object(rig, "t1", "t2")
    await rig.add_terminal("t3")
    note(rig, "t1", online=True)
    note(rig, "t3", online=True)
    note(rig, "t1", online=False, reason="keep alive timeout")
    note(rig, "t2", online=True)
    found = await log(rig, object_id, "presence")
    assert sorted(told(found, "terminal_id", "state", "value")) == [
        ("t1", "offline", "keep alive timeout"),
        ("t1", "online", ""),
        ("t2", "online", ""),
    ]
    places = told(found, "place")
    assert len(set(places)) == 3
    assert await log(rig, object_id, "presence", size=1) == found


async def test_a_restart_ends_what_was_connected(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        object_id = await make_object(rig, "t1", "t2", "t3")
        note(rig, "t1", online=True)
        note(rig, "t2", online=True)
        note(rig, "t2", online=False, reason="went")
        tokens = rig.tokens
    async with open_rig(tmp_path, tokens=tokens) as rig:
        note(rig, "t1", online=True)
        found = await log(rig, object_id, "presence")
        of_first = told([each for each in found if each["terminal_id"] == "t1"], "state", "value")
        assert of_first == [("online", ""), ("offline", STOPPED), ("online", "")]
        assert STOPPED not in str([each for each in found if each["terminal_id"] == "t2"])


@pytest.mark.usefixtures("each_database")
async def test_pages_of_any_size_are_the_whole_of_a_year(rig: Rig) -> None:
    """Terminals that flap, that changed at the same time, and one that was there before all of it."""
    names = [f"t{n}" for n in range(5)]
    object_id = await make_object(rig, *names)
    ids = [rig.services.registry.terminal(name).id for name in names]  # type: ignore[union-attr]
    today = now_us() // DAY_US
    rows = []
    for day in range(today - 60, today):
        for number, record_id in enumerate(ids[:-1]):
            if (day + number) % 3:
                continue
            stored = DayLog([])
            for at in range(MOST_A_DAY + 5 if day % 6 == 0 else 2):
                stored.add(Change(day * DAY_US + at * 1_000_000, at % 2 == 0, "x"), day)
            rows.append({"terminal_id": record_id, "day": day, "log": encode_day(stored)})
    first = DayLog([])
    first.add(Change((today - 300) * DAY_US, is_online=True, reason=""), today - 300)
    rows.append({"terminal_id": ids[-1], "day": today - 300, "log": encode_day(first)})
    stop = DayLog([])
    for at, is_online in enumerate((True, False, True, False)):
        stop.add(
            Change((today - 30) * DAY_US + at * 1_000_000 + 500_000, is_online=is_online, reason=STOPPED), today - 30
        )
    rows.append({"terminal_id": 0, "day": today - 30, "log": encode_day(stop)})
    await insert(rig, PRESENCE_DAY, *rows)
    whole = await log(rig, object_id, "presence")
    assert len(whole) > 500
    assert len({each["place"] for each in whole}) == len(whole)
    assert [(each["time"], each["value"]) for each in whole if each["terminal_id"] == "t4"][-1][1] == ""
    assert [each["value"] for each in whole if each["terminal_id"] == "t4"] == [STOPPED, ""]
    assert {each["state"] for each in whole} == {"online", "offline", "flapping"}
    assert await log(rig, object_id, "presence", size=37) == whole
    assert await log(rig, object_id, "presence", size=199) == whole


@pytest.mark.usefixtures("each_database")
async def test_a_page_of_a_long_log_asks_few_statements_and_sorts_nothing(rig: Rig) -> None:
    """Each kind is read in the order of an index, so that a page costs the same among 100,000 rows."""
    object_id = await make_object(rig, "t1")
    at = now_us()
    made = await rig.services.entities.services.create(SYSTEM, {"object_id": object_id, "name": "s"})
    async with rig.services.events._database.reading() as connection:
        first = (await connection.execute(sa.select(SERVICE.table).where(SERVICE.table.c.id == made["id"]))).mappings()
    row = {name: value for name, value in first.one().items() if name != "id"}
    services = [{**row, "uid": f"s{n}", "service_at": at - n} for n in range(2_000)]
    await insert(rig, SERVICE.table, *services)
    entity = {"company_id": 1, "entity": "terminal", "record_id": 1, "uid": "t1", "username": "u", "value": "v"}
    await insert(rig, RECORD_LOG, *({**entity, "what": "set", "time": at - n} for n in range(2_000)))
    item = await rig.services.entities.files.create(SYSTEM, {"name": "f", "file": [PDF]})
    await rig.services.entities.objects.update(SYSTEM, object_id, {"file_id": item["id"]})
    kinds = ["service", "offline", "file", "out_of_service", "presence"]
    with asked(once=False) as statements:
        page = await rig.call("get_object_log", "viewer", object_id=object_id, page_size=200, kinds=kinds)
    assert len(page["data"]) == 200
    ours = [each for each in statements if "record_log" in each[0] or "presence_day" in each[0] or "_at" in each[0]]
    assert 5 <= len(ours) <= 8
    async with rig.services.events._database.writing() as connection:
        if connection.dialect.name != "sqlite":
            return  # with so few rows it reads the table
        for statement, parameters in ours:
            plan = await connection.run_sync(
                sa.Connection.exec_driver_sql, f"EXPLAIN QUERY PLAN {statement}", parameters
            )
            lines = [str(row[-1]) for row in plan.all()]
            assert not any(line.startswith(("SCAN service", "SCAN collectos", "SCAN record_log")) for line in lines)
            is_of_days = "presence_day" in statement  # few, and without what they hold
            assert is_of_days or not any("TEMP B-TREE" in line for line in lines), (statement, lines)
            assert not any("(day<" in line for line in lines), "the days of all terminals are looked through"


def test_offline_records_have_an_index_by_time() -> None:
    assert "ix_collectos_object_id_collect_at_id" in {each.name for each in COLLECTOS.table.indexes}
