"""The shape of each documented result, in the examples, which another test holds against a running platform."""

from __future__ import annotations

import re
from typing import Any

import pytest
from example_run import EXAMPLES, example_of
from gateway_tables import ACTIONS, USER, Action

SPACED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
IS = {
    "text": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "time": lambda value: isinstance(value, str) and SPACED.fullmatch(value),
    "offset time": lambda value: isinstance(value, str) and WITH_OFFSET.fullmatch(value),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "rows": lambda value: isinstance(value, list) and all(isinstance(row, list) for row in value),
    "any": lambda value: True,
}


def faults(shape: Any, value: Any, at: str) -> list[str]:
    """Where a value doesn't have the shape. Fields that the description doesn't know may be there."""
    if isinstance(shape, str):
        return [] if any(IS[kind](value) for kind in shape.split("|")) else [f"{at}: {value!r} is not {shape}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at}: {value!r} is no array"]
        found = [] if value else [f"{at}: is empty, so that the example shows nothing"]
        return found + [fault for each in value for fault in faults(shape[0], each, f"{at}[]")]
    if not isinstance(value, dict):
        return [f"{at}: {value!r} is no object"]
    missing = [f"{at}.{name}: is missing" for name in shape if name not in value]
    return missing + [
        fault for name in shape if name in value for fault in faults(shape[name], value[name], f"{at}.{name}")
    ]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_the_result_has_the_documented_shape(action: Action) -> None:
    _, answer = example_of(action.name)
    total = {"total_records"} if isinstance(action.result, list) else set()  # what a bare array can't say itself
    named = {"commands"} & answer.keys() if action.name.startswith("publish_") else set()  # beside what is documented
    assert answer.keys() == {"resp", "actionid", "code", "msg", "info", "result"} | total | named
    assert not total or answer["total_records"] >= len(answer["result"])
    assert faults(action.result, answer["result"], "result") == []


def test_a_login_gives_nothing_else() -> None:
    assert EXAMPLES["login"][1]["result"].keys() == USER.keys(), "no password hash above all"


def test_a_mosaic_record_has_its_keys_and_the_time() -> None:
    for name in ("get_last_mosaic", "get_mosaic_item", "get_last_mosaic_list", "get_mosaic_list"):
        request, answer = EXAMPLES[name]
        for record in answer["result"]["data"]:
            assert record.keys() == {*request["keys"], "time"}
            assert all(isinstance(record[key], int | float) for key in request["keys"])


def test_faults_are_found() -> None:
    assert faults({"a": "int"}, {"a": True}, "r") == ["r.a: True is not int"]
    assert faults({"a": "int"}, {}, "r") == ["r.a: is missing"]
    assert faults(["text"], [1], "r") == ["r[]: 1 is not text"]
    assert faults("time", "2026-01-01T00:00:00+00:00", "r") != []
