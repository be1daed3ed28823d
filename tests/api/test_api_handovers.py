"""Handovers of shifts: what is open and done now, kept with notes, by company."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import Rig, open_rig

from terrazzo.api.operations.event_handling import handovers as shifts
from terrazzo.database.tables.events import EVENT, HANDOVER, LABEL
from terrazzo.events import handovers
from terrazzo.times import DAY_US, now_us

HOUR_US = 3_600_000_000


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


async def fill(rig: Rig) -> None:
    """An event that is open, one that was cleared now and one that was long ago; labels alike; one of a stranger."""
    now = now_us()
    said = {"object_id": 1, "terminal_id": "t", "label_en": "", "label_cn": "", "value": "", "company_id": 1}
    event = {**said, "extension_key": "", "extension_value": "", "created": now - DAY_US}
    cleared = {"state": "cleared", "cleared_by": 2}
    label = {
        **said,
        "project_id": 1,
        "class_id": "c",
        "reference": "",
        "created": now - DAY_US,
        "opened_at": now - DAY_US,
    }
    async with rig.platform.metadata.database.writing() as connection:
        for values in (
            {**event, "code": "OPEN"},
            {**event, "code": "DONE", **cleared, "cleared_at": now - HOUR_US},
            {**event, "code": "LONG-AGO", **cleared, "cleared_at": now - 20 * HOUR_US},
            {**event, "code": "STRANGE", "company_id": 2},
        ):
            await connection.execute(EVENT.insert().values(values))
        for values in ({**label, "code": "L-OPEN"}, {**label, "code": "L-CLOSED", "close_at": now - HOUR_US}):
            await connection.execute(LABEL.insert().values(values))


@pytest.mark.usefixtures("each_database")
async def test_a_handover_keeps_what_was_open_and_done(rig: Rig) -> None:
    await fill(rig)
    shift = await rig.call("get_shift", "viewer", hours=8)
    assert [each["code"] for each in shift["events"]] == ["OPEN"]
    assert [each["code"] for each in shift["handled"]] == ["DONE"]
    assert [each["code"] for each in shift["labels"]] == ["L-OPEN"]
    assert [each["code"] for each in shift["closed"]] == ["L-CLOSED"]
    written = await rig.call("write_handover", "operator", hours=8, notes="Pump 2 泵 leaks <b>")
    async with rig.platform.metadata.database.writing() as connection:
        await connection.execute(EVENT.delete())
    kept = await rig.call("get_handover_item", "viewer", id=written["id"])
    assert (kept["notes"], kept["username"], kept["shift"]["open_events"]) == (
        "Pump 2 泵 leaks <b>",
        "operator-user",
        1,
    )
    assert [each["code"] for each in kept["shift"]["events"]] == ["OPEN"]
    listed = (await rig.call("get_handover_list", "viewer"))["data"]
    assert [each["id"] for each in listed] == [written["id"]]
    audited = (await rig.call("get_audit_list", where_and=[["entity", "=", "handover"]]))["data"]
    assert [each["action"] for each in audited] == ["create"]


async def test_what_was_done_stands_by_when_it_was_done(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shifts, "MOST_ENTRIES", 3)
    now = now_us()
    said = {"object_id": 1, "terminal_id": "t", "label_en": "", "label_cn": "", "value": "", "company_id": 1}
    event = {**said, "extension_key": "", "extension_value": ""}
    label = {**said, "project_id": 1, "class_id": "c", "reference": "", "created": now - DAY_US}
    minutes = 60_000_000
    done = [  # raised later and later, and done in another order
        {"code": "A", "acknowledged_at": now - 5 * minutes},
        {"code": "B", "acknowledged_at": now - 90 * minutes, "cleared_at": now - minutes},
        {"code": "C", "cleared_at": now - 40 * minutes},
        {"code": "D", "acknowledged_at": now - 20 * minutes},
        {"code": "E", "cleared_at": now - 30 * minutes},
    ]
    async with rig.platform.metadata.database.writing() as connection:
        for place, values in enumerate(done):
            state = {"state": "cleared" if "cleared_at" in values else "acknowledged"}
            await connection.execute(EVENT.insert().values(event | state | values | {"created": now - (99 - place)}))
            closed = {"code": values["code"], "close_at": now - (place + 1) * minutes}
            await connection.execute(LABEL.insert().values(label | closed | {"opened_at": now - (99 - place)}))
    shift = await rig.call("get_shift", "viewer", hours=8)
    assert shift["handled_events"] == 5
    assert [each["code"] for each in shift["handled"]] == ["B", "A", "D"]
    assert [each["code"] for each in shift["closed"]] == ["A", "B", "C"]


@pytest.mark.usefixtures("each_database")
async def test_what_was_done_is_there_whenever_it_was_raised(rig: Rig) -> None:
    now = now_us()
    said = {"object_id": 1, "terminal_id": "t", "label_en": "", "label_cn": "", "value": "", "company_id": 1}
    event = {**said, "extension_key": "", "extension_value": "", "created": now - 400 * DAY_US}
    done = {"acknowledged_at": now - HOUR_US, "acknowledged_by": 2}, {"cleared_at": now - 2 * HOUR_US, "cleared_by": 2}
    async with rig.platform.metadata.database.writing() as connection:
        for code, state, values in (
            ("SEEN", "acknowledged", done[0]),
            ("OVER", "cleared", done[1]),
            ("BOTH", "cleared", done[0] | done[1]),
            ("BEFORE", "cleared", {"acknowledged_at": now - 9 * HOUR_US, "cleared_at": now - 9 * HOUR_US}),
        ):
            await connection.execute(EVENT.insert().values({**event, "code": code, "state": state, **values}))
    for username in ("viewer", "root"):
        shift = await rig.call("get_shift", username, hours=8)
        assert shift["handled_events"] == 3, username
        assert sorted(each["code"] for each in shift["handled"]) == ["BOTH", "OVER", "SEEN"]
        assert shift["handled"][-1]["code"] == "OVER"


@pytest.mark.parametrize("username", ["viewer", "root"])
async def test_what_was_done_is_found_by_an_index_of_its_own(rig: Rig, username: str) -> None:
    database, asked = rig.platform.metadata.database, list[tuple[str, Any]]()

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if "FROM event" in statement and "cleared_at" in statement.partition("WHERE")[2]:
            asked.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        await rig.call("get_shift", username, hours=8)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    plans = list[str]()
    async with database.reading() as connection:
        for statement, parameters in asked:
            explain = f"EXPLAIN QUERY PLAN {statement}"
            rows = (await connection.run_sync(sa.Connection.exec_driver_sql, explain, parameters)).all()
            plans += [row[-1] for row in rows]
    assert plans
    assert all("at_id" in each for each in plans if "event" in each), plans


async def test_companies_do_not_see_each_others(rig: Rig) -> None:
    await fill(rig)
    written = await rig.call("write_handover", hours=8, notes="ours")
    assert (await rig.call("get_shift", "stranger", hours=8))["events"][0]["code"] == "STRANGE"
    assert (await rig.ask("get_handover_item", "stranger", id=written["id"]))["code"] == 10404
    assert (await rig.call("get_handover_list", "stranger"))["data"] == []
    assert (await rig.ask("write_handover", "viewer", hours=8))["code"] == 10403


@pytest.mark.parametrize("hours", [0, 24 * 8])
async def test_a_shift_lasts_a_week_at_most(rig: Rig, hours: int) -> None:
    assert (await rig.ask("get_shift", hours=hours))["code"] == 10401
    assert (await rig.ask("write_handover", hours=hours))["code"] == 10401


async def test_the_oldest_go_when_there_are_too_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handovers, "MOST", 2)
    ids = [(await rig.call("write_handover", hours=1, notes=str(n)))["id"] for n in range(4)]
    assert [each["id"] for each in (await rig.call("get_handover_list"))["data"]] == ids[:1:-1]
    async with rig.platform.metadata.database.reading() as connection:
        assert len((await connection.execute(HANDOVER.select())).all()) == 2
