"""What needs a person: open labels, events, commands by company; that it is cheap, and told live when it changes."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from api_rig import Rig

from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.registry import COMMAND
from terrazzo.times import DAY_US, now_us


async def fill(rig: Rig, company_id: int, count: int, mark: str) -> None:
    """Events, labels and commands of a company, all of which wait."""
    now, named = now_us(), {"company_id": company_id, "object_id": 7, "terminal_id": mark}
    said = dict.fromkeys(("code", "label_en", "label_cn", "value"), mark)
    events = [
        {**named, **said, "extension_key": "", "extension_value": "", "created": now, "severity": number % 5 + 1}
        for number in range(count)
    ]
    labels = [
        {**named, **said, "project_id": 1, "class_id": "c", "opened_at": now - number * DAY_US, "created": now}
        for number in range(count)
    ]
    command = {**named, "command": "SP1", "payload": b"{}", "queued_us": now, "created_by": 1}
    commands = [
        {**command, "uid": f"{mark}-{number}", "state": state, "expires_us": now - 1_000}
        for number, state in enumerate(("queued", "sent", "expired", "delivered") * (count // 4))
    ]
    async with rig.platform.metadata.database.writing() as connection:
        for table, rows in ((EVENT, events), (LABEL, labels), (COMMAND, commands)):
            await connection.execute(table.insert(), rows)


@pytest.mark.usefixtures("each_database")
async def test_what_waits_is_counted_for_its_company_alone(rig: Rig) -> None:
    await fill(rig, 1, 20, "mine")
    await fill(rig, 2, 12, "theirs")
    mine = await rig.call("get_attention", "viewer", entries=3)
    assert "theirs" not in str(mine)
    assert mine["events"]["by_severity"] == dict.fromkeys(("critical", "major", "minor", "warning", "info"), 4)
    assert [each["severity"] for each in mine["events"]["entries"]] == ["critical"] * 3
    assert mine["labels"]["by_age"] == {"hour": 1, "day": 0, "week": 6, "older": 13}
    ages = [each["opened_at"] for each in mine["labels"]["entries"]]
    assert ages == sorted(ages)
    assert (mine["commands"]["waiting"], mine["commands"]["expired"]) == (10, 5)
    assert [each["state"] for each in mine["commands"]["entries"]] == ["expired"] * 3
    assert (mine["disk"], mine["tasks"], mine["quotas"]) == (None, None, [])
    theirs = await rig.call("get_attention", "stranger")
    assert "mine" not in str(theirs)
    assert theirs["events"]["count"] == 12
    everything = await rig.call("get_attention", "root")
    assert everything["events"]["count"] == 32
    assert everything["disk"]["free_bytes"] > 0
    assert everything["tasks"] == []


@pytest.mark.usefixtures("each_database")
async def test_an_acknowledged_event_waits_no_more(rig: Rig) -> None:
    await fill(rig, 1, 4, "mine")
    await rig.call("acknowledge_event", "operator", id=1)
    assert (await rig.call("get_attention"))["events"]["count"] == 3


async def test_a_limit_that_was_changed_is_told_at_once(rig: Rig) -> None:
    await rig.call("create_retainer", name="r" * 60, script=[], object_list=[])
    assert (await rig.call("get_attention"))["quotas"] == []
    company = next(each for each in (await rig.call("get_company_list", "root"))["data"] if each["id"] == 1)
    await rig.call("update_company", "root", uid=company["uid"], limit_record_bytes=1)
    assert [each["limit"] for each in (await rig.call("get_attention"))["quotas"]] == ["limits.company_record_bytes"]
    await rig.call("update_company", "root", uid=company["uid"], limit_record_bytes=0)
    assert (await rig.call("get_attention"))["quotas"] == []


async def test_many_who_ask_at_once_are_served_by_one_walk(rig: Rig) -> None:
    stats = rig.services.attention.stats
    answers = await asyncio.gather(*(rig.call("get_attention", "viewer") for _ in range(20)))
    assert (stats.asked, stats.made) == (20, 1)
    assert all(each == answers[0] for each in answers)


async def test_each_query_has_an_index(each_database: str, rig: Rig) -> None:
    explain, sort = {"sqlite": ("EXPLAIN QUERY PLAN", "TEMP B-TREE"), "postgresql": ("EXPLAIN", "Sort")}[each_database]
    await fill(rig, 1, 2_000, "mine")
    done = "UPDATE event SET state = 'cleared' WHERE id > 20", "UPDATE label SET close_at = 1 WHERE id > 20"
    async with rig.platform.metadata.database.writing() as connection:
        for statement in done:
            await connection.run_sync(sa.Connection.exec_driver_sql, statement)
    queries = {
        ("ix_event_raised",): "SELECT * FROM event WHERE state = 'raised' AND company_id = 1 "
        "ORDER BY severity DESC, id DESC LIMIT 5",
        (
            "ix_event_raised_of_all",
        ): "SELECT * FROM event WHERE state = 'raised' ORDER BY severity DESC, id DESC LIMIT 5",
        ("ix_label_open",): "SELECT * FROM label WHERE close_at IS NULL AND company_id = 1 ORDER BY opened_at LIMIT 5",
        (
            "ix_label_close_at_id",
            "ix_label_open_of_all",
        ): "SELECT * FROM label WHERE close_at IS NULL ORDER BY id LIMIT 5",
        ("ix_command_company_id_state_expires_us",): "SELECT * FROM command WHERE company_id = 1 AND state = 'expired' "
        "AND expires_us > 5 ORDER BY expires_us DESC LIMIT 5",
    }
    async with rig.platform.metadata.database.reading() as connection:
        if each_database == "postgresql":
            await connection.run_sync(sa.Connection.exec_driver_sql, "ANALYZE event, label, command")
        for indexes, query in queries.items():
            plan = str((await connection.run_sync(sa.Connection.exec_driver_sql, f"{explain} {query}")).all())
            assert any(index in plan for index in indexes), plan
            assert sort not in plan, plan


async def test_a_change_is_told_live(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.ws_connect("/apiproxy/api", headers=headers) as socket:
        await socket.send_json({"action": "subscribe", "kinds": ["attention"]})
        assert (await socket.receive_json(timeout=20))["code"] == 200
        await fill(rig, 1, 4, "mine")
        await rig.call("acknowledge_event", "operator", id=1)
        frame = await socket.receive_json(timeout=20)
        assert (frame["kind"], frame["data"]) == ("attention", {"parts": ["events"]})
