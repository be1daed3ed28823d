"""Severity and clearing of events: what is said beside a mapping, and what lists show, filter and sort by."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig
from test_api_happenings import T0, event, insert

from terrazzo.database.tables.events import EVENT

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", ""],
    ["HOT", "Too hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 80"],
    ["COOL", "Cool", "凉", "EVNT", "$AdapterID-1.t", "", "x < 50"],
]
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
UNSAID = {"name": "", "severity": "warning", "clears_itself": 0, "clears": [], "clear_after_s": 0}


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


async def mapping(rig: Rig, **fields: Any) -> str:
    return str((await rig.call("create_mapping", name="m", script=ROWS, **BY, **fields))["uid"])


@pytest.mark.usefixtures("each_database")
async def test_what_is_said_is_kept_by_code(rig: Rig) -> None:
    uid = await mapping(rig)
    listed = await rig.call("get_event_definition_list", "viewer", mapping_id=uid)
    assert listed == [
        {"code": "HOT", "label_en": "Too hot", "label_cn": "热", **UNSAID},
        {"code": "COOL", "label_en": "Cool", "label_cn": "凉", **UNSAID},
    ]
    said = {"severity": "critical", "clears_itself": 1, "name": "Overheated"}
    hot = await rig.call("update_event_definition", mapping_id=uid, code="HOT", **said)
    assert hot == {**listed[0], **said}
    cool = await rig.call("update_event_definition", mapping_id=uid, code="COOL", clears="HOT", clear_after_s=60)
    assert (cool["clears"], cool["clear_after_s"], cool["severity"]) == (["HOT"], 60, "warning")
    hot = await rig.call("update_event_definition", mapping_id=uid, code="HOT", severity="", clears_itself=0)
    assert (hot["severity"], hot["clears_itself"], hot["name"]) == ("warning", 0, "Overheated")
    assert await rig.call("get_event_definition_list", mapping_id=uid) == [hot, cool]
    changed = (await rig.call("get_audit_list", where_and=[["entity", "=", "mapping"]]))["data"]
    assert "Overheated" in json.dumps(changed)


async def test_all_at_once_with_the_mapping(rig: Rig) -> None:
    uid = await mapping(rig, events={"HOT": {"severity": "major"}, "GONE": {"severity": "info"}})
    record = await rig.call("get_mapping_item", uid=uid)
    assert record["events"]["HOT"] == {"severity": "major"}
    listed = await rig.call("get_event_definition_list", mapping_id=uid)
    assert [(each["code"], each["severity"]) for each in listed] == [("HOT", "major"), ("COOL", "warning")]
    answer = await rig.ask("create_mapping", name="n", script=ROWS, **BY, events={"HOT": {"severity": "bad"}})
    assert (answer["code"], answer["info"][:7]) == (10401, "events:")
    assert "expected one of info, warning" in answer["info"]
    assert (await rig.call("get_mapping_item", uid=await mapping(rig)))["events"] == {}


@IN_MODULE
@pytest.mark.parametrize(
    ("who", "fields", "code", "named"),
    [
        ("operator", {"severity": "major"}, 10403, ""),
        ("stranger", {"severity": "major"}, 10404, ""),
        ("admin", {"severity": "high"}, 10401, "severity"),
        ("admin", {"clears": ["NONE"]}, 10401, "clears"),
        ("admin", {"clears": ["HOT"] * 17}, 10401, "clears"),
        ("admin", {"clear_after_s": -1}, 10401, "clear_after_s"),
        ("admin", {"name": "a\0b"}, 10401, "name"),
        ("admin", {}, 10401, "code"),
        ("admin", {"severity": "major", "code": "T"}, 10404, "code"),
    ],
)
async def test_what_is_refused(shared_rig: Rig, who: str, fields: dict[str, Any], code: int, named: str) -> None:
    uid = await mapping(shared_rig)
    answer = await shared_rig.ask("update_event_definition", who, **{"mapping_id": uid, "code": "HOT", **fields})
    assert answer["code"] == code, answer
    assert answer["info"].startswith(named), answer


async def test_two_at_once_lose_nothing(rig: Rig) -> None:
    uid = await mapping(rig)
    asked = [("HOT", {"severity": "major"}), ("COOL", {"severity": "info"}), ("HOT", {"name": "x"})] * 4
    await asyncio.gather(
        *(rig.call("update_event_definition", mapping_id=uid, code=code, **said) for code, said in asked)
    )
    listed = await rig.call("get_event_definition_list", mapping_id=uid)
    assert [(each["severity"], each["name"]) for each in listed] == [("major", "x"), ("info", "")]


@pytest.mark.usefixtures("each_database")
async def test_lists_filter_and_sort_by_severity(rig: Rig) -> None:
    ranks = {"A": 3, "B": 5, "C": 1, "D": 4}
    await insert(rig, EVENT, *(event(code=code, severity=rank, created=T0) for code, rank in ranks.items()))

    async def codes(**fields: Any) -> str:
        return "".join(each["code"] for each in (await rig.call("get_event_list", "viewer", **fields))["data"])

    assert await codes(order_by=["severity", "desc"]) == "BDAC"
    assert await codes(order_by=["severity", "asc"]) == "CADB"
    assert await codes(where_and=[["severity", ">=", "major"]]) == "DB"
    assert await codes(where_and=[["severity", "=", "info"]]) == "C"
    assert await codes(where_in=["severity", "minor,critical"]) == "BA"
    assert await codes(where_and=[["severity", "<>", "critical"], ["state", "=", "raised"]]) == "DCA"
    answer = await rig.ask("get_event_list", where_and=[["severity", "=", "high"]])
    assert answer["code"] == 10401
    assert "expected one of info, warning, minor, major, critical" in answer["info"]
    assert [each["severity"] for each in (await rig.call("get_event_list"))["data"]] == [
        "major",
        "info",
        "critical",
        "minor",
    ]
    status, page = await rig.get("/service/api/v1/event/getList", where_and='[["severity", ">", "minor"]]')
    assert status == 200
    assert [(each["code"], each["severity"], each["state"]) for each in page["result"]["data"]] == [
        ("D", "major", "raised"),
        ("B", "critical", "raised"),
    ]


async def test_a_user_clears_and_time_does_not_any_more(rig: Rig) -> None:
    await insert(rig, EVENT, event(clear_at=T0 + 10**15))
    before = await rig.call("get_event_item", id=1)
    assert (before["cleared_cause"], before["severity"]) == ("", "warning")
    assert before["clear_at"] is not None
    after = await rig.call("clear_event", "operator", id=1)
    assert (after["state"], after["cleared_cause"], after["clear_at"]) == ("cleared", "user", None)
    assert after["cleared_by"] is not None
