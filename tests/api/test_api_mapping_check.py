"""``check_mapping``: rows and payloads in, variables and events out, nothing stored."""

from __future__ import annotations

import pytest

from terrazzo.ports.store import Record

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", "x * 0.1"],
    ["P", "", "", "STA", "pump.on", ""],
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 800 and P"],
]


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


async def test_rows_and_payloads_become_variables_and_events(rig) -> None:
    payloads = [
        {"payload": {"t": 795}, "time": "2026-01-05 08:00:00"},
        {"payload": {"on": True}, "terminal_id": "pump"},
        {"payload": {"t": 815, "z": {"deep": 1}}},
    ]
    fields = {"script": ROWS, "terminal_list": ["g1", "pump"], "payloads": payloads}
    before = await rig.services.store.notes("")
    result = await rig.call("check_mapping", "viewer", **fields)
    assert result["records"] == [
        {"time": "2026-01-05 08:00:00", "value": {"T": 79.5}},
        {"time": "2026-01-05 08:00:01", "value": {"P": True}},
        {"time": "2026-01-05 08:00:02", "value": {"T": 81.5}},
    ]
    (event,) = result["events"]
    assert (event["code"], event["time"], event["terminal_id"]) == ("HOT", "2026-01-05 08:00:02", "g1")
    assert result["variables"] == {"T": 81.5, "P": True}
    assert await rig.services.store.notes("") == before
    assert await rig.services.store.series("") == []


@IN_MODULE
@pytest.mark.parametrize(
    ("fields", "info"),
    [
        (
            {"script": [["A", "", "", "STA", "$AdapterID-1.t", "x +"]]},
            "script: row 1, column 6: character 4",
        ),
        ({"script": [["A", "", "", "STA", "t", ""]]}, "script: row 1, column 5: 't' names a terminal"),
        ({"script": {"a": 1}}, "script: expected an array of rows"),
        ({"script": [], "payloads": [{"payload": {"a": [1]}}]}, None),
        ({"script": ROWS, "payloads": [{"payload": {"a": [1]}}]}, "payloads: a: an array is not a value"),
        ({"script": ROWS, "payloads": [{"payload": [1]}]}, "payloads: payload 1: expected a JSON object of points"),
        (
            {"script": ROWS, "payloads": [{"payload": {}, "terminal_id": "no"}]},
            "payloads: payload 1: terminal_list",
        ),
    ],
)
async def test_what_is_wrong_is_said(shared_rig, fields, info) -> None:
    answer = await shared_rig.ask("check_mapping", **fields)
    if info is None:
        assert answer["code"] == 200
    else:
        assert (answer["code"], answer["info"][: len(info)]) == (10401, info)


async def test_the_latest_reports_go_through_a_draft(rig) -> None:
    await rig.add_terminal("g1")
    await rig.add_terminal("g2")
    at = 1_700_000_000_000_000
    bodies = [(f"g/g1/{'r' if number % 2 else 'a'}", b'{"t": %d}' % (700 + number)) for number in range(30)]
    records = [Record(series, at + number * 1_000_000, body) for number, (series, body) in enumerate(bodies)]
    odd = Record("g/g2/r", at + 100_000_000, b"[1, 2]")
    await rig.services.store.append([*records, odd])
    row = ["T", "", "", "STA", "$AdapterID-1.t", ""]
    fields = {"script": [row], "terminal_list": ["g1", "g2"]}
    checked = await rig.call("check_mapping", "viewer", **fields, latest=20)
    messages = checked["messages"]
    assert len(messages) == 20
    assert [each["values"] for each in messages[:2]] == [{"T": 711}, {"T": 712}]
    assert (messages[0]["topic"], messages[0]["payload"]) == ("g/g1/r", {"t": 711})
    assert (messages[-1]["terminal_id"], messages[-1]["values"]) == ("g2", {})
    assert messages[-1]["problem"] == "the payload is an array, not an object of points"
    assert messages[-1]["told"] == {"code": "payload_no_object", "parameters": {"got": "an array"}}
    assert "told" not in messages[0]
    assert checked["variables"] == {"T": 729}
    assert (await rig.call("check_mapping", **fields))["messages"] == []
    for who, wrong in (("stranger", {}), ("admin", {"terminal_list": None}), ("admin", {"latest": 101})):
        assert (await rig.ask("check_mapping", who, **{**fields, "latest": 20, **wrong}))["code"] == 10401


async def test_all_that_is_wrong_is_named_and_points_come_nonetheless(rig) -> None:
    await rig.add_terminal("g1")
    await rig.services.store.append([Record("g/g1/r", 1_700_000_000_000_000, b'{"t": 1, "pump": {"on": true}}')])
    script = [
        ["A", "", "", "STA", "$AdapterID-1.t", "x +"],
        ["B", "", "", "STA", "$AdapterID-1.t", ""],
        ["C", "", "", "ODD", "", ""],
        ["D"],
    ]
    fields = {"script": script, "terminal_list": ["g1"], "latest": 5, "all_problems": 1}
    checked = await rig.call("check_mapping", "viewer", **fields)
    assert [(each["row"], each["column"]) for each in checked["problems"]] == [(1, 6), (3, 4), (4, 0)]
    assert checked["problems"][1]["reason"].startswith("expected one of STA")
    assert (checked["records"], checked["variables"]) == ([], {})
    assert checked["messages"][0]["points"] == {"t": 1, "pump": {"on": True}}


@IN_MODULE
@pytest.mark.parametrize(
    ("script", "problems"),
    [
        ([["A", "", "", "FUNC", "", "B"], ["B", "", "", "FUNC", "", "C + D"], ["E", "", "", "FUNC", "", "F"]], [2, 3]),
        ([["A", "", "", "FUNC", "", "B"], ["B", "", "", "FUNC", "", "A"]], [1]),
        ([["A", "", "", "FUNC", "", "1"], ["A", "", "", "FUNC", "", "2"]], [2]),
        (ROWS, []),
    ],
)
async def test_rows_are_held_against_each_other(shared_rig, script, problems) -> None:
    checked = await shared_rig.call("check_mapping", script=script, all_problems=1)
    assert [each["row"] for each in checked["problems"]] == problems


@IN_MODULE
@pytest.mark.parametrize("script", [{"a": 1}, [["A", "", "", "STA", "", "x" * 2001]], [["A"]] * 1001])
async def test_what_is_no_row_s_fault_is_refused(shared_rig, script) -> None:
    assert (await shared_rig.ask("check_mapping", script=script, all_problems=1))["code"] == 10401
