"""Many events at once: acknowledged, cleared, commented, shelved; and the log of an object."""

from __future__ import annotations

from typing import Any

import pytest
from api_rig import Rig
from test_api_happenings import T0, event, insert

from terrazzo.api.operations.history.object_log import parse_place
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.registry import COMMAND
from terrazzo.errors import BadParameter
from terrazzo.times import DAY_US, format_iso, now_us

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


def ahead(days: int = 1) -> str:
    return format_iso(now_us() + days * DAY_US)


@pytest.mark.usefixtures("each_database")
async def test_all_or_none(rig: Rig) -> None:
    await insert(rig, EVENT, *(event(code=code) for code in "ABC"), event(code="D", company_id=2))
    moved = await rig.call("acknowledge_events", "operator", ids=[1, 2, 2], comment="on it")
    assert [(each["code"], each["state"], each["comments"][0]["text"]) for each in moved] == [
        ("A", "acknowledged", "on it"),
        ("B", "acknowledged", "on it"),
    ]
    answer = await rig.ask("clear_events", "operator", ids=[1, 4])
    assert answer["code"] == 10404
    assert (await rig.call("get_event_item", id=1))["state"] == "acknowledged"
    assert [each["state"] for each in await rig.call("clear_events", "operator", ids=[1, 3])] == ["cleared"] * 2
    assert len((await rig.call("comment_events", "operator", ids=[1, 2], comment="x"))[1]["comments"]) == 2
    for name, fields in (("acknowledge_events", {}), ("comment_events", {"comment": "x"})):
        assert (await rig.ask(name, "viewer", ids=[1], **fields))["code"] == 10403
        assert (await rig.ask(name, ids=[], **fields))["code"] == 10401
        assert (await rig.ask(name, ids=list(range(501)), **fields))["code"] == 10401


@pytest.mark.usefixtures("each_database")
async def test_a_shelved_event_needs_nobody_until_its_time(rig: Rig) -> None:
    await insert(rig, EVENT, event(code="A"), event(code="B"))
    (shelved,) = await rig.call("shelve_events", "operator", ids=[1], until=ahead(), comment="spare part ordered")
    assert shelved["state"] == "raised"
    assert shelved["shelved_until"] is not None
    assert (await rig.call("get_attention", "viewer"))["events"]["count"] == 1
    entries = (await rig.call("get_audit_list", where_and=[["entity", "=", "event"]]))["data"]
    assert "shelved_until" in entries[0]["after"]
    (back,) = await rig.call("shelve_events", "operator", ids=[1], until=None)
    assert (back["shelved_until"], back["shelved_by"]) == (None, None)
    assert (await rig.call("get_event_list", where_and=[["shelved_until", "<>", None]]))["total_records"] == 0
    for until in (format_iso(now_us() - DAY_US), ahead(400)):
        answer = await rig.ask("shelve_events", "operator", ids=[1], until=until)
        assert (answer["code"], answer["info"][:6]) == (10401, "until:")


async def test_a_cleared_event_is_not_shelved(rig: Rig) -> None:
    await insert(rig, EVENT, event())
    await rig.call("clear_event", id=1)
    assert (await rig.call("shelve_events", ids=[1], until=ahead()))[0]["shelved_until"] is None


@pytest.fixture
async def object_id(rig: Rig) -> int:
    """An object with 20 of each kind, several at one time."""
    await rig.add_terminal("t1")
    row = ["T", "", "", "STA", "$AdapterID-1.t", ""]
    mapping = (await rig.call("create_mapping", name="m", script=[row], **BY))["uid"]
    made = await rig.call("create_object", name="o", mapping_id=mapping, terminal_list=["t1"], **BY)
    number = int(made["id"])
    named: dict[str, Any] = {"company_id": 1, "object_id": number, "terminal_id": "t1"}
    said = dict.fromkeys(("code", "label_en", "label_cn", "value"), "x")
    times = [T0 + place // 3 * 1_000_000 for place in range(20)]
    await insert(rig, EVENT, *(event(object_id=number, created=time_us) for time_us in times))
    label = {**named, **said, "project_id": 1, "class_id": "c", "created": T0}
    await insert(rig, LABEL, *({**label, "opened_at": time_us, "close_at": time_us + 10} for time_us in times))
    command = {**named, "command": "SP1", "payload": b"{}", "created_by": 1, "state": "queued", "expires_us": T0}
    await insert(rig, COMMAND, *({**command, "uid": f"c{n}", "queued_us": at} for n, at in enumerate(times)))
    await insert(rig, EVENT, event(object_id=number + 1, code="OTHER"))
    return number


@pytest.mark.usefixtures("each_database")
async def test_pages_of_any_size_are_the_whole_log(rig: Rig, object_id: int) -> None:
    async def log(size: int, who: str = "admin") -> list[dict[str, Any]]:
        found, before = [], ""
        while True:
            page = await rig.call("get_object_log", who, object_id=object_id, page_size=size, before=before)
            found += page["data"]
            before = page["next"]
            if not before:
                return found

    whole = await log(200)
    kinds = [each["kind"] for each in whole]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        **dict.fromkeys(("event", "label_opened", "label_closed", "command"), 20),
        "change": 1,
    }
    times = [each["time"] for each in whole]
    assert times == sorted(times, reverse=True)
    assert await log(7) == whole
    assert await log(1) == whole
    assert "change" not in {each["kind"] for each in await log(50, "viewer")}
    assert "OTHER" not in str(whole)
    opened = await rig.call("get_object_log", object_id=object_id, page_size=200, kinds=["label_opened", "command"])
    assert opened["data"] == [each for each in whole if each["kind"] in ("label_opened", "command")]
    hidden = await rig.call("get_object_log", "viewer", object_id=object_id, kinds=["change"])
    assert hidden == {"data": [], "next": ""}
    assert (await rig.ask("get_object_log", object_id=object_id, kinds=["odd"]))["code"] == 10401
    assert (await rig.ask("get_object_log", "stranger", object_id=object_id))["code"] == 10404


def test_where_a_page_ended() -> None:
    assert parse_place("5.1.2") == (5, 1, 2)
    for text in ("", "5", "1.2.3.4", "a.b.c", "1.-2.3", "9" * 20 + ".1.1", "١.1.1"):
        with pytest.raises(BadParameter):
            parse_place(text)
