"""Lists: bare arrays and pages, their defaults and bounds, and conditions in every documented shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from contract_world import Door, World, ask, call
from gateway_tables import ACTIONS, Action

LISTS = [action for action in ACTIONS if any(field.name == "page_index" for field in action.fields)]
PAGED = [action for action in LISTS if isinstance(action.result, dict)]
BARE = [action for action in LISTS if isinstance(action.result, list)]


def of_action(action: Action) -> str:
    return action.name


def request_of(world: World, action: str) -> dict[str, Any]:
    """The documented request without its page."""
    return {name: value for name, value in world.request(action).items() if name not in ("page_index", "page_size")}


@pytest.mark.parametrize("action", PAGED, ids=of_action)
def test_a_page_is_the_first_of_twenty_unless_asked_otherwise(world: World, door: Door, action: Action) -> None:
    page = call(door, request_of(world, action.name))
    assert (page["page_index"], page["page_size"]) == (1, 20)
    total, size = page["total_records"], page["page_size"]
    assert page["total_pages"] == -(-total // size)
    assert len(page["data"]) == min(total, size)


@pytest.mark.parametrize("action", PAGED, ids=of_action)
def test_pages_of_one_record_are_all_records(world: World, door: Door, action: Action) -> None:
    request = request_of(world, action.name)
    whole = call(door, request)
    single = [call(door, {**request, "page_index": n + 1, "page_size": 1}) for n in range(len(whole["data"]))]
    assert [page["data"][0] for page in single] == whole["data"]
    for page in single:
        assert (page["page_size"], page["total_pages"], page["total_records"]) == (
            1,
            whole["total_records"],
            whole["total_records"],
        )


@pytest.mark.parametrize("action", LISTS, ids=of_action)
def test_a_page_past_the_end_is_empty(world: World, door: Door, action: Action) -> None:
    result = call(door, {**request_of(world, action.name), "page_index": 10_000, "page_size": 1000})
    assert result == [] if isinstance(result, list) else (result["data"], result["page_index"]) == ([], 10_000)


@pytest.mark.parametrize("action", LISTS, ids=of_action)
def test_page_numbers_have_bounds(world: World, door: Door, action: Action) -> None:
    request = request_of(world, action.name)
    for field, value in (
        ("page_size", 0),
        ("page_size", 1001),
        ("page_size", -1),
        ("page_index", 0),
        ("page_index", -1),
    ):
        answer = ask(door, {**request, field: value})
        assert answer["code"] == 10401, (field, value)
        assert answer["info"].startswith(f"{field}: ")
    for size in (1, 1000):
        call(door, {**request, "page_size": size})


@pytest.mark.parametrize("action", BARE, ids=of_action)
def test_bare_arrays_have_twenty_records_unless_asked_otherwise(world: World, door: Door, action: Action) -> None:
    create = f"create_{action.name.removeprefix('get_').removesuffix('_list')}"
    given = world.request(create)
    request = {"action": action.name}
    for number in range(21 - len(call(door, {**request, "page_size": 1000}))):
        call(door, {**given, **({"uid": f"extra-{number}"} if "uid" in given else {})})
    assert len(call(door, request)) == 20
    everything = call(door, {**request, "page_size": 1000})
    assert len(everything) >= 21
    assert call(door, {**request, "page_index": 2}) == everything[20:40]
    assert call(door, {**request, "page_size": 5, "page_index": 2}) == everything[5:10]


CUSTOMERS = "get_customer_list"


@pytest.fixture(scope="module")
def customers(world: World) -> list[str]:
    """The names of a few customers."""
    names = ["Aqua North", "Aqua South", "Boiler House"]
    session = world.rehearsal.session
    for name in names:
        session.send({"action": "create_customer", "name": name, "city": name.split()[-1], "province": "Cond"})
    return names


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"where_and": [["city", "=", "North"]]}, {"Aqua North"}),
        ({"where_and": [["name", "like", "Aqua%"], ["city", "=", "South"]]}, {"Aqua South"}),
        ({"where_and": [["name", "LIKE", "%House"]]}, {"Boiler House"}),
        ({"where_and": [["city", "<>", "North"]]}, {"Aqua South", "Boiler House"}),
        ({"where_or": [["city", "=", "North"], ["city", "=", "House"]]}, {"Aqua North", "Boiler House"}),
        ({"where_in": [["city", "North,South"]]}, {"Aqua North", "Aqua South"}),
        ({"where_in": ["city", "North,South"]}, {"Aqua North", "Aqua South"}),
        ({"where_in": ["city", ["North", "House"]]}, {"Aqua North", "Boiler House"}),
        ({"where_in": [["city", ["North", "House"]], ["name", "Boiler House"]]}, {"Boiler House"}),
        ({"where_and": [], "where_or": [], "where_in": []}, {"Aqua North", "Aqua South", "Boiler House"}),
    ],
)
@pytest.mark.parametrize("as_text", [True, False], ids=["text", "json"])
@pytest.mark.usefixtures("customers")
def test_conditions(door: Door, conditions: dict[str, Any], expected: set[str], *, as_text: bool) -> None:
    if not any("province" in str(value) for value in conditions.values()):
        conditions = {**conditions, "where_and": [["province", "=", "Cond"], *conditions.get("where_and", [])]}
    given = {name: json.dumps(value) if as_text else value for name, value in conditions.items()}
    page = call(door, {"action": CUSTOMERS, **given})
    assert {record["name"] for record in page["data"]} == expected
    assert page["total_records"] == len(expected)


@pytest.mark.parametrize(
    ("field", "value", "about"),
    [
        ("where_and", '[["no_such", "=", "x"]]', "no_such"),
        ("where_and", '[["name", "is", "x"]]', "is"),
        ("where_and", '[["name", "="]]', ""),
        ("where_or", '["name", "=", "x"]', ""),
        ("where_in", '[["name"]]', ""),
        ("where_in", '["no_such", "a,b"]', "no_such"),
        ("where_and", '[["name; DROP TABLE customer", "=", "x"]]', ""),
        ("where_and", '[["name", "=", {"a": 1}]]', ""),
    ],
)
def test_conditions_that_cannot_be_read_are_refused(door: Door, field: str, value: str, about: str) -> None:
    answer = ask(door, {"action": CUSTOMERS, field: value})
    assert answer["code"] == 10401, answer
    assert answer["info"].startswith(field), answer["info"]
    assert about in answer["info"]


@pytest.mark.usefixtures("customers")
def test_values_are_bound_and_never_spliced(door: Door) -> None:
    for value in ("' OR '1'='1", "%'; DELETE FROM customer; --", "\\", "a_b%"):
        page = call(door, {"action": CUSTOMERS, "where_and": json.dumps([["name", "=", value]])})
        assert page["data"] == []
    assert call(door, {"action": CUSTOMERS, "where_and": '[["province", "=", "Cond"]]'})["total_records"] == 3
