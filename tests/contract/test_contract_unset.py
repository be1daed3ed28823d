"""What was never written reads as empty, and is found by empty text."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest
from contract_world import Door, World, call

SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


@pytest.mark.parametrize("given", [{}, {"terminal_script": None, "config_script": ""}])
def test_scripts_of_a_configuration(door: Door, given: dict[str, Any]) -> None:
    """Section 1 "Terminal configuration": an object on read."""
    uid = call(door, {"action": "create_terminal_config", "name": "bare", **SIGNED, **given})["uid"]
    item = call(door, {"action": "get_terminal_config_item", "uid": uid})
    assert (item["terminal_script"], item["config_script"]) == ({}, {})
    assert call(door, {"action": "update_terminal_config", **item})["uid"] == uid, "as it was read"
    listed = call(door, {"action": "get_terminal_config_list", "page_size": 1000})
    (found,) = (each for each in listed if each["uid"] == uid)
    assert (found["terminal_script"], found["config_script"]) == ({}, {})
    call(door, {"action": "delete_terminal_config", "uid": uid})


@pytest.mark.parametrize("given", [{}, {"addition": ""}, {"addition": "[]"}])
def test_the_addition_of_a_mapping(door: Door, given: dict[str, Any]) -> None:
    """Section 1 "Mapping table": an array of objects on read."""
    script = json.dumps([["T", "T", "T", "STA", "$AdapterID-1.T", "x", ""]])
    uid = call(door, {"action": "create_mapping", "name": "bare", "script": script, **SIGNED, **given})["uid"]
    assert call(door, {"action": "get_mapping_item", "uid": uid})["addition"] == []
    listed = call(door, {"action": "get_mapping_list", "page_size": 1000})
    assert [each["addition"] for each in listed if each["uid"] == uid] == [[]]
    call(door, {"action": "delete_mapping", "uid": uid})


def test_open_and_closed_labels(world: World) -> None:
    """Section 2 "Retainer-label record": ``close_at`` is empty text while a label is open."""
    http = HTTPConnection("127.0.0.1", world.platform.http, timeout=30)

    def ask(path: str, *conditions: list[str]) -> Any:
        query = urlencode({"where_and": json.dumps(conditions), **({"page_size": 1000} if "List" in path else {})})
        http.request("GET", f"/service/api/v1/{path}?{query}", headers={"Authorization": f"Bearer {world.token}"})
        answer = json.loads(http.getresponse().read())
        assert answer["code"] == 200, answer
        return answer["result"]

    everything = ask("retainer/getList")["data"]
    counted = 0
    for operator, is_open in (("=", True), ("<>", False)):
        condition = ["close_at", operator, ""]
        found = ask("retainer/getList", condition)["data"]
        assert [each["id"] for each in found] == [
            each["id"] for each in everything if (not each["close_at"]) is is_open
        ]
        assert ask("statistics/retainerQuantity", condition) == {"data": len(found)}
        counted += len(found)
    assert counted == len(everything) > 0
    http.close()
