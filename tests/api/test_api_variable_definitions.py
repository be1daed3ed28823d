"""Units, decimals, ranges and names of states: what is said beside a mapping, and what an object's variables show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_rig import Rig, open_rig

from terrazzo.domain.variables.definition import parse_variable_definitions
from terrazzo.ports.store import Record
from terrazzo.times import now_us

ROWS = [
    ["T", "Temperature", "温度", "STA", "$AdapterID-1.t", ""],
    ["RUN", "Runs", "运行", "STA", "$AdapterID-1.run", ""],
    ["HOT", "Too hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 80"],
]
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
UNSAID = {"unit": "", "decimals": None, "low": None, "high": None, "limits": [], "states": {}}
LIMIT = {"above": 80.0, "below": None, "severity": "major", "name": "hot"}


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
    listed = await rig.call("get_variable_definition_list", "viewer", mapping_id=uid)
    assert listed == [
        {"code": "T", "label_en": "Temperature", "label_cn": "温度", "kind": "STA", **UNSAID},
        {"code": "RUN", "label_en": "Runs", "label_cn": "运行", "kind": "STA", **UNSAID},
    ]
    said = {"unit": "°C", "decimals": 1, "low": 0.0, "high": 120.0}
    asked = {**said, "limits": [{"above": 80, "severity": "major", "name": "hot"}]}
    t = await rig.call("update_variable_definition", mapping_id=uid, code="T", **asked)
    assert t == {**listed[0], **said, "limits": [LIMIT]}
    states = {"1": {"label_en": "On", "label_cn": "开"}, "0": {"label_en": "Off", "label_cn": "关"}}
    run = await rig.call("update_variable_definition", mapping_id=uid, code="RUN", states=json.dumps(states))
    assert run["states"] == states
    t = await rig.call("update_variable_definition", mapping_id=uid, code="T", low=None, limits=[])
    assert (t["low"], t["high"], t["limits"], t["unit"]) == (None, 120.0, [], "°C")
    assert await rig.call("get_variable_definition_list", mapping_id=uid) == [t, run]
    changed = (await rig.call("get_audit_list", where_and=[["entity", "=", "mapping"]]))["data"]
    assert "°C" in json.dumps(changed, ensure_ascii=False)


async def test_all_at_once_with_the_mapping_and_in_bulk(rig: Rig) -> None:
    uid = await mapping(rig, variables={"T": {"unit": "bar"}, "GONE": {"unit": "m"}})
    assert (await rig.call("get_mapping_item", uid=uid))["variables"]["T"] == {"unit": "bar"}
    listed = await rig.call("get_variable_definition_list", mapping_id=uid)
    assert [(each["code"], each["unit"]) for each in listed] == [("T", "bar"), ("RUN", "")]
    row = {"name": "imported", "script": ROWS, "variables": {"T": {"unit": "kW", "decimals": 2}}}
    report = await rig.call("import_mappings", rows=[row])
    assert report["created"] == 1, report
    found = await rig.call("get_mapping_list", where_and=[["name", "=", "imported"]])
    assert found[0]["variables"] == {"T": {"unit": "kW", "decimals": 2}}
    bad = await rig.ask("import_mappings", rows=[row | {"variables": {"T": {"decimals": 10}}}])
    assert bad["code"] == 10401
    assert "variables" in json.dumps(bad["result"])


@IN_MODULE
@pytest.mark.parametrize(
    ("who", "fields", "code", "named"),
    [
        ("operator", {"unit": "m"}, 10403, ""),
        ("stranger", {"unit": "m"}, 10404, ""),
        ("admin", {"unit": "m" * 17}, 10401, "unit"),
        ("admin", {"decimals": 10}, 10401, "decimals"),
        ("admin", {"low": 2, "high": 1}, 10401, "variables"),
        ("admin", {"limits": [{"above": 1, "below": 2}]}, 10401, "variables"),
        ("admin", {"limits": [{"above": 1, "severity": "bad"}]}, 10401, "variables"),
        ("admin", {"limits": [{"above": 1}] * 9}, 10401, "variables"),
        ("admin", {"limits": {"above": 1}}, 10401, "variables"),
        ("admin", {"states": {"1": {"color": "red"}}}, 10401, "variables"),
        ("admin", {"states": {str(n): {} for n in range(65)}}, 10401, "variables"),
        ("admin", {"states": ["a"]}, 10401, "variables"),
        ("admin", {"unit": "a\0b"}, 10401, "variables"),
        ("admin", {}, 10401, "code"),
        ("admin", {"unit": "m", "code": "HOT"}, 10404, "code"),
    ],
)
async def test_what_is_refused(shared_rig: Rig, who: str, fields: dict[str, Any], code: int, named: str) -> None:
    uid = await mapping(shared_rig)
    answer = await shared_rig.ask("update_variable_definition", who, **{"mapping_id": uid, "code": "T", **fields})
    assert answer["code"] == code, answer
    assert answer["info"].startswith(named), answer


async def test_two_at_once_lose_nothing_beside_events(rig: Rig) -> None:
    uid = await mapping(rig)
    asked = [("T", {"unit": "m"}), ("RUN", {"decimals": 0}), ("T", {"high": 5})] * 4
    variables = [rig.call("update_variable_definition", mapping_id=uid, code=code, **said) for code, said in asked]
    events = [rig.call("update_event_definition", mapping_id=uid, code="HOT", severity="major") for _ in range(4)]
    await asyncio.gather(*variables, *events)
    listed = await rig.call("get_variable_definition_list", mapping_id=uid)
    assert [(each["unit"], each["decimals"], each["high"]) for each in listed] == [("m", None, 5.0), ("", 0, None)]
    assert (await rig.call("get_event_definition_list", mapping_id=uid))[0]["severity"] == "major"


async def test_an_object_shows_its_variables_with_their_newest_values(rig: Rig) -> None:
    uid = await mapping(rig, variables={"T": {"unit": "°C"}})
    await rig.add_terminal("t1")
    made = await rig.call("create_object", name="o", mapping_id=uid, terminal_list=["t1"], **BY)
    object_id, now = made["id"], now_us()
    bodies = [({"T": 20.5, "RUN": True}, now - 9_000_000), ({"T": 21.5}, now - 3_000_000)]
    await rig.services.store.append(
        [Record(f"m/{object_id}", time_us, msgspec.msgpack.encode(body)) for body, time_us in bodies]
    )
    t, run = await rig.call("get_object_variable_list", "viewer", object_id=object_id)
    assert (t["code"], t["value"], t["unit"], run["value"]) == ("T", 21.5, "°C", True)
    assert 3 <= t["age_s"] < run["age_s"] < 600
    assert t["time"] > run["time"]
    assert (await rig.ask("get_object_variable_list", "stranger", object_id=object_id))["code"] == 10404
    other = await rig.call("create_object", name="p", mapping_id=uid, terminal_list=["t1"], **BY)
    assert [each["value"] for each in await rig.call("get_object_variable_list", object_id=other["id"])] == [None, None]


def test_what_cannot_be_a_definition() -> None:
    for value in ([], {"": {}}, {"x" * 65: {}}, {"T": {"color": 1}}, {str(n): {} for n in range(1_001)}):
        with pytest.raises(ValueError, match=r"expected|at most|unknown field"):
            parse_variable_definitions(value)
