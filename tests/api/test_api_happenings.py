"""Lists and counts of events and labels: shapes, conditions, days, companies, and how long they take."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from api_rig import Rig, open_rig

from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.times import now_us, parse_time

EVENT_FIELDS = {
    **dict.fromkeys(("id", "object_id", "is_available"), int),
    **dict.fromkeys(("terminal_id", "code", "label_en", "label_cn", "value", "extension_key", "extension_value"), str),
    **dict.fromkeys(("reference", "created", "severity", "state"), str),
}
"""Section 2 "Event record", with severity and state."""
LABEL_FIELDS = {
    **dict.fromkeys(("id", "object_id", "project_id", "is_available"), int),
    **dict.fromkeys(("terminal_id", "class_id", "code", "label_en", "label_cn", "retained", "opened_at"), str),
    **dict.fromkeys(("close_at", "elapsed", "reference", "created"), str),
}
"""Section 2 "Retainer-label record"."""
ZONE = ZoneInfo("Asia/Shanghai")
NAMED = {"terminal_id": "t1", "label_en": "Hot", "label_cn": "热", "value": "81"}
T0 = parse_time("2026-03-01 08:00:00")
HOUR = 3_600_000_000


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, time={"zone": ZONE.key}) as opened:
        yield opened


def event(**changes: Any) -> dict[str, Any]:
    base = {"company_id": 1, "object_id": 17, "code": "HOT", "extension_key": "x > 80", "extension_value": "81"}
    return {**NAMED, **base, "created": T0, **changes}


def label(**changes: Any) -> dict[str, Any]:
    base = {"company_id": 1, "object_id": 17, "code": "RUN", "project_id": 5, "class_id": "r5", "close_at": None}
    return {**NAMED, **base, "opened_at": T0, "created": T0, **changes}


async def insert(rig: Rig, table: Any, *rows: dict[str, Any]) -> None:
    async with rig.services.events._database.writing() as connection:
        for _, alike in groupby(rows, key=tuple):  # a list is read by the columns of its first row
            await connection.execute(table.insert(), list(alike))


async def component(rig: Rig, path: str, **query: str) -> Any:
    status, answer = await rig.get(f"/service/api/v1/{path}", **query)
    assert (status, answer["code"]) == (200, 200), answer
    return answer["result"]


def check(record: dict[str, Any], fields: dict[str, type]) -> None:
    assert {name: type(value) for name, value in record.items()} == fields


async def test_component_records_are_those_of_the_tables(rig: Rig) -> None:
    await insert(rig, EVENT, event())
    await insert(rig, LABEL, label(), label(close_at=T0 + 3_723_000_000))
    for path, fields in (("event", EVENT_FIELDS), ("retainer", LABEL_FIELDS)):
        page = await component(rig, f"{path}/getList")
        assert page.keys() == {"data", "page_index", "page_size", "total_pages", "total_records"}
        for record in page["data"]:
            check(record, fields)
            assert await component(rig, f"{path}/getItem", id=str(record["id"])) | {"elapsed": ""} == record | {
                "elapsed": ""
            }
    closed = await component(rig, "retainer/getItem", id="2")
    assert closed["opened_at"] == "2026-03-01 16:00:00", "in time.zone"
    assert (closed["retained"], closed["elapsed"], closed["close_at"]) == ("0", "1:02:03", "2026-03-01 17:02:03")
    still_open = await component(rig, "retainer/getItem", id="1")
    assert (still_open["retained"], still_open["close_at"]) == ("1", "")


@pytest.mark.usefixtures("each_database")
async def test_the_newest_come_first(rig: Rig) -> None:
    await insert(rig, EVENT, event(created=T0 + 2), event(created=T0 + 3), event(created=T0 + 1))
    page = await rig.call("get_event_list", page_size=2)
    assert [each["id"] for each in page["data"]] == [2, 1]
    assert (page["total_records"], page["total_pages"]) == (3, 2)
    ordered = await rig.call("get_event_list", order_by=["created", "asc"])
    assert [each["id"] for each in ordered["data"]] == [3, 1, 2]


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({"where_and": '[["code", "=", "LOW"]]'}, [2]),
        ({"where_and": [["created", ">", "2026-03-01 16:30:00"]]}, [2]),
        ({"where_and": [["created", ">", "2026-03-01T08:30:00Z"]]}, [2]),
        ({"where_or": [["code", "LIKE", "H%"], ["object_id", "=", "18"]]}, [1, 2]),
        ({"where_in": '["object_id", "17,18"]'}, [1, 2]),
        ({"where_in": [["object_id", [18]]]}, [2]),
    ],
)
async def test_conditions(rig: Rig, conditions: dict[str, Any], found: list[int]) -> None:
    await insert(rig, EVENT, event(), event(object_id=18, code="LOW", created=T0 + HOUR))
    page = await rig.call("get_event_list", **conditions)
    assert sorted(each["id"] for each in page["data"]) == found
    query = {name: value if isinstance(value, str) else json.dumps(value) for name, value in conditions.items()}
    assert await component(rig, "statistics/eventQuantity", **query) == {"data": len(found)}


@pytest.mark.usefixtures("each_database")
async def test_conditions_on_what_labels_derive(rig: Rig) -> None:
    await insert(rig, LABEL, label(), label(close_at=T0), label(class_id="r6"))
    for field, value, found in (("retained", "1", [1, 3]), ("retained", 0, [2]), ("template_id", "r6", [3])):
        page = await rig.call("get_retainer_label_list", where_and=[[field, "=", value]])
        assert sorted(each["id"] for each in page["data"]) == found
    opened = await rig.call("get_open_retainer_list")
    assert [(each["id"], each["template_id"], each["object_id"]) for each in opened["data"]] == [
        (3, "r6", "17"),
        (1, "r5", "17"),
    ]


EMPTY_TIMES = [
    ({"where_and": [["close_at", "=", ""]]}, [1, 3]),
    ({"where_and": [["close_at", "<>", ""]]}, [2]),
    ({"where_and": [["close_at", "!=", ""], ["code", "=", "RUN"]]}, [2]),
    ({"where_or": [["close_at", "=", ""], ["code", "=", "none"]]}, [1, 3]),
    ({"where_in": [["close_at", ["", "2026-03-01 16:00:00"]]]}, [1, 2, 3]),
    ({"where_in": [["close_at", [""]]]}, [1, 3]),
    ({"where_and": [["retained", "=", ""]]}, []),
]


@pytest.mark.usefixtures("each_database")
async def test_empty_text_is_a_time_that_is_not_there(rig: Rig) -> None:
    """What a record shows as empty text is found by it: open labels, events that nobody has taken care of."""
    recently = {"opened_at": now_us(), "created": now_us()}  # days are counted back from today
    await insert(rig, LABEL, label(**recently), label(**recently, close_at=T0), label(**recently, class_id="r6"))
    await insert(rig, EVENT, event(), event(cleared_by=1, cleared_at=T0))
    for conditions, found in EMPTY_TIMES:
        page = await rig.call("get_retainer_label_list", **conditions)
        assert sorted(each["id"] for each in page["data"]) == found, conditions
        query = {name: json.dumps(value) for name, value in conditions.items()}
        listed = await component(rig, "retainer/getList", **query)
        assert sorted(each["id"] for each in listed["data"]) == found, conditions
        assert await component(rig, "statistics/retainerQuantity", **query) == {"data": len(found)}
        assert await rig.call("get_retainer_quantity", **conditions) == {"data": len(found)}
    for name in ("cleared_at", "cleared_by"):
        for operator, found in (("=", [1]), ("<>", [2])):
            page = await rig.call("get_event_list", where_and=[[name, operator, ""]])
            assert [each["id"] for each in page["data"]] == found, (name, operator)
            query = {"where_and": json.dumps([[name, operator, ""]])}
            assert await component(rig, "statistics/eventQuantity", **query) == {"data": 1}
    days = await component(rig, "statistics/retainerQuantityByDay", day="7", where_in='["close_at", [""]]')
    assert sum(days["data"].values()) == 2
    for operator in (">", "<="):
        answer = await rig.ask("get_retainer_label_list", where_and=[["close_at", operator, ""]])
        assert answer["info"].startswith("where_and: condition 1: close_at: '' is not a time"), answer


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"where_and": [["company_id", "=", 2]]}, "where_and: condition 1: company_id: no such field"),
        ({"where_and": [["code", "~", "x"]]}, "where_and: condition 1: code: unknown operator"),
        ({"order_by": ["nothing", "asc"]}, "order_by: nothing: no such field"),
        ({"start_time": "2026-03-02 00:00:00", "end_time": "2026-03-01 00:00:00"}, "start_time: is after end_time"),
    ],
)
async def test_bad_requests_name_the_field(rig: Rig, fields: dict[str, Any], reason: str) -> None:
    for action in ("get_event_list", "get_retainer_label_list"):
        answer = await rig.ask(action, **fields)
        assert answer["code"] == 10401
        assert answer["info"].startswith(reason)


@pytest.mark.usefixtures("each_database")
async def test_counts_by_day_have_every_day(rig: Rig) -> None:
    now = now_us()
    await insert(rig, EVENT, event(created=now), event(created=now), event(created=now - 40 * 24 * HOUR))
    await insert(rig, LABEL, label(opened_at=now), label(opened_at=now - 3 * 24 * HOUR))
    events = await component(rig, "statistics/eventQuantityByDay")
    assert len(events["date"]) == 14
    assert list(events["data"]) == events["date"]
    assert list(events["data"].values()) == [0] * 13 + [2]
    labels = await component(rig, "statistics/retainerQuantityByDay", day="4", where_in='["object_id", "17"]')
    assert list(labels["data"].values()) == [1, 0, 0, 1]
    assert sum((await rig.call("get_event_quantity_by_day", day=60))["data"].values()) == 3
    for day in ("0", "-1", "366", "x"):
        _, answer = await rig.get("/service/api/v1/statistics/eventQuantityByDay", day=day)
        assert answer["code"] == 500
        assert answer["info"].startswith("day: ")


async def test_another_companys_are_not_there(rig: Rig) -> None:
    await insert(rig, EVENT, event(), event(company_id=2))
    assert [each["id"] for each in (await rig.call("get_event_list"))["data"]] == [1]
    assert (await rig.call("get_event_list", "root"))["total_records"] == 2
    assert (await rig.call("get_event_quantity", "stranger"))["data"] == 1
    for action, fields in (("get_event_item", {}), ("clear_event", {}), ("comment_event", {"comment": "mine"})):
        assert (await rig.ask(action, "stranger", id=1, **fields))["code"] == 10404


@pytest.mark.usefixtures("each_database")
async def test_an_event_is_handled_once_and_by_name(rig: Rig) -> None:
    await insert(rig, EVENT, event())
    assert (await rig.ask("acknowledge_event", "viewer", id=1))["code"] == 10403
    first = await rig.call("acknowledge_event", "operator", id="1", comment="On my way")
    assert (first["state"], first["comments"][0]["username"]) == ("acknowledged", "operator-user")
    again = await rig.call("acknowledge_event", "admin", id=1)
    assert (again["acknowledged_by"], again["acknowledged_at"]) == (first["acknowledged_by"], first["acknowledged_at"])
    cleared = await rig.call("clear_event", "admin", id=1)
    assert cleared["state"] == "cleared"
    assert cleared["cleared_by"] != cleared["acknowledged_by"]
    assert (await rig.call("acknowledge_event", "operator", id=1))["state"] == "cleared", "there is no way back"
    said = await rig.call("comment_event", "operator", id=1, comment="The valve")
    assert [each["text"] for each in said["comments"]] == ["On my way", "The valve"]
    assert await rig.call("get_event_item", id=1) == said
    entries = (await rig.call("get_audit_list", entity="event"))["data"]
    assert [(each["username"], each["before"], each["after"]) for each in entries] == [
        ("operator-user", None, {"comment": "The valve"}),
        ("admin-user", {"state": "acknowledged"}, {"state": "cleared"}),
        ("operator-user", {"state": "raised"}, {"state": "acknowledged", "comment": "On my way"}),
    ]
    for comment in ("", "x" * 1_001, "\0", 7):
        answer = await rig.ask("comment_event", "operator", id=1, comment=comment)
        assert answer["code"] == 10401
        assert answer["info"].startswith("comment: ")


async def test_ten_thousand_events_are_listed_from_indexes(each_database: str, rig: Rig) -> None:
    await insert(rig, EVENT, *(event(created=T0 + number, object_id=number % 50) for number in range(10_000)))
    requests: list[tuple[str, dict[str, Any]]] = [
        ("get_event_list", {"page_size": 20}),
        ("get_event_list", {"page_size": 20, "page_index": 500}),
        ("get_event_list", {"object_id": None, "where_and": [["object_id", "=", 7]]}),
        ("get_event_quantity", {}),
        ("get_event_quantity_by_day", {"day": 365}),
    ]
    for who in ("admin", "root"):
        for action, fields in requests:
            took_s = []
            for _ in range(5):
                began_s = time.process_time()
                await rig.call(action, who, **fields)
                took_s.append(time.process_time() - began_s)
            assert min(took_s) < 0.1, (who, action, fields)
    explain, sort = {"sqlite": ("EXPLAIN QUERY PLAN", "TEMP B-TREE"), "postgresql": ("EXPLAIN", "Sort")}[each_database]
    async with rig.services.events._database.reading() as connection:
        await connection.run_sync(sa.Connection.exec_driver_sql, "ANALYZE event")
        for scope in ("WHERE company_id = 1", "WHERE object_id = 7", ""):
            query = f"{explain} SELECT id FROM event {scope} ORDER BY created DESC, id DESC LIMIT 20"
            plan = str((await connection.run_sync(sa.Connection.exec_driver_sql, query)).all())
            assert "ix_event" in plan, plan
            assert sort not in plan, plan
