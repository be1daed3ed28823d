"""Each field of each documented action: what is missing or mistyped is refused by name; what is optional is."""

from __future__ import annotations

from typing import Any

import pytest
from contract_world import Door, World, ask
from gateway_tables import ACTIONS, Action, Field

from support import interface_description
from terrazzo.api.operations.table import TABLE

WRONG: dict[str, tuple[Any, ...]] = {
    "key": (True, 1.5, {}, []),
    "text": (7, True, {}, []),
    "int": ("one", 1.5, {}, [], True),
    "time": ("yesterday", 7, {}, ""),
    "keys": (7, {}, [{}], [1.5], "[broken"),
    "names": (7, {}, [98765432], "[98765432]", "[broken"),
    "json": (7, True, "{broken"),
    "value": ({}, []),
}
"""Values that are none of the type's."""


def of_action(action: Action) -> str:
    return action.name


def check_refused(answer: dict[str, Any], action: Action, *fields: Field) -> None:
    assert (answer["resp"], answer["code"], answer["result"]) == (action.name, 10401, {}), answer
    named = [part.split(":")[0] for part in answer["info"].split("; ")]
    for field in fields:
        assert any(name == field.name or name.startswith(f"{field.name}[") for name in named), (field, answer["info"])


@pytest.mark.parametrize("action", ACTIONS, ids=of_action)
def test_the_action_exists_with_its_fields(action: Action) -> None:
    operation = TABLE.find(action.name)
    assert operation is not None
    names = set(operation.request.__struct_encode_fields__)
    assert {field.name for field in action.fields} <= names


@pytest.mark.parametrize("action", ACTIONS, ids=of_action)
def test_each_missing_required_field_is_named(world: World, door: Door, action: Action) -> None:
    request = world.request(action.name)
    required = [field for field in action.fields if field.required]
    for field in required:
        given = {name: value for name, value in request.items() if name != field.name}
        check_refused(ask(door, given), action, field)
    if required:
        check_refused(ask(door, {"action": action.name}), action, *required)


@pytest.mark.parametrize("action", ACTIONS, ids=of_action)
def test_each_mistyped_field_is_named(world: World, door: Door, action: Action) -> None:
    request = world.request(action.name)
    for field in action.fields:
        for value in WRONG[field.type]:
            check_refused(ask(door, {**request, field.name: value}), action, field)


@pytest.mark.parametrize("action", [each for each in ACTIONS if each.name.startswith("get_")], ids=of_action)
def test_optional_fields_may_be_left_out_or_null(world: World, door: Door, action: Action) -> None:
    request = world.request(action.name)
    optional = [field.name for field in action.fields if not field.required]
    without = {name: value for name, value in request.items() if name not in optional}
    for given in (without, {**without, **dict.fromkeys(optional)}):
        answer = ask(door, given)
        assert answer["code"] == 200, (given, answer)


def test_the_tables_are_those_of_the_interface_description() -> None:
    text = interface_description("1-gateway.md").partition("## Endpoints")[2].partition("### TCP")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    documented = [(row[0].removesuffix(" (spelled so)"), *row[1:]) for row in rows if row[0] != "Action"]
    assert documented == [(action.name, action.asks, action.gives) for action in ACTIONS]
