"""``check_mapping``: rows and payloads in, variables and events out, nothing stored."""

from __future__ import annotations

import pytest

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", "x * 0.1"],
    ["P", "", "", "STA", "pump.on", ""],
    ["HOT", "Hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 800 and P"],
]


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
async def test_what_is_wrong_is_said(rig, fields, info) -> None:
    answer = await rig.ask("check_mapping", **fields)
    if info is None:
        assert answer["code"] == 200
    else:
        assert (answer["code"], answer["info"][: len(info)]) == (10401, info)
