"""``where_and``, ``where_or``, ``where_in``, ``order_by``: every shape, against the same records in a Python list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import msgspec
import pytest
from api_rig import Rig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from terrazzo.api.kernel.conditions import Comparisons, Memberships, Order
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations.table import TABLE

NAMES = ["Pump", "pump 2", "Fan", "50%_x", "a\\b", "Zoë", "'; DROP TABLE customer; --"]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "!=": lambda left, right: left != right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}
Fields = dict[str, Any]


async def fill(rig: Rig) -> list[Fields]:
    """Customers that differ in name, city and whether they are available; as the list shows them."""
    for number in range(24):
        name, city = NAMES[number % len(NAMES)], f"C{number % 5}"
        await rig.call("create_customer", name=name, city=city, is_available=number % 2)
    return list((await rig.call("get_customer_list", page_size=100))["data"])


def in_list(row: Fields, field: str, values: Any) -> bool:
    given = values.split(",") if isinstance(values, str) else values
    return str(row[field]) in [str(value).strip() for value in given]


def holds(row: Fields, condition: list[Any]) -> bool:
    field, operator, value = condition
    operator = operator.lower()
    if operator == "like":
        return value.strip("%").lower() in row[field].lower()
    if operator == "in":
        return in_list(row, field, value)
    return OPERATORS[operator](row[field], int(value) if field in ("id", "is_available") else value)


def expected(rows: list[Fields], request: Fields) -> list[Fields]:
    pairs = request.get("where_in") or []
    pairs = [pairs] if pairs and isinstance(pairs[0], str) else pairs
    some = request.get("where_or") or []
    return [
        row
        for row in rows
        if all(holds(row, each) for each in request.get("where_and") or [])
        and (not some or any(holds(row, each) for each in some))
        and all(in_list(row, field, values) for field, values in pairs)
    ]


any_case = st.sampled_from([str.upper, str.lower, str.title])
ids = st.integers(0, 30)
condition = st.one_of(
    st.tuples(st.just("id"), st.sampled_from(sorted(OPERATORS)), ids | ids.map(str)),
    st.tuples(st.just("is_available"), st.sampled_from(["=", "<>"]), st.integers(0, 1)),
    st.tuples(st.just("name"), st.sampled_from(["=", "<>", "!="]), st.sampled_from(NAMES)),
    st.tuples(
        st.just("name"), st.builds(lambda case: case("like"), any_case), st.sampled_from(["%pump%", "%FAN%", "%o%"])
    ),
    st.tuples(st.just("city"), st.builds(lambda case: case("in"), any_case), st.sampled_from(["C1,C3", ["C0"], []])),
).map(list)
pair = st.one_of(
    st.tuples(st.just("city"), st.sampled_from(["C1, C2", "C4", ["C0", "C1"], []])),
    st.tuples(
        st.just("id"), st.lists(ids, max_size=6) | st.lists(ids, min_size=1).map(lambda n: ",".join(map(str, n)))
    ),
).map(list)
order = st.tuples(
    st.sampled_from(["id", "city", "is_available"]),
    st.builds(lambda way, case: case(way), st.sampled_from(["asc", "desc"]), any_case),
).map(list)
requests = st.fixed_dictionaries(
    {},
    optional={
        "where_and": st.lists(condition, max_size=2),
        "where_or": st.lists(condition, max_size=3),
        "where_in": pair | st.lists(pair, max_size=2),
        "order_by": order,
    },
)


async def test_every_list_is_what_a_python_list_says(rig: Rig) -> None:
    rows = await fill(rig)
    loop = asyncio.get_running_loop()

    @settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(request=requests, as_text=st.booleans(), index=st.integers(1, 3), size=st.integers(1, 12))
    def check(request: Fields, as_text: bool, index: int, size: int) -> None:
        sent = {name: json.dumps(value) if as_text else value for name, value in request.items()}
        asked = rig.call("get_customer_list", "viewer", page_index=index, page_size=size, **sent)
        page = asyncio.run_coroutine_threadsafe(asked, loop).result(30)
        wanted = expected(rows, request)
        field, way = request.get("order_by") or ("id", "asc")
        wanted.sort(key=lambda row: (row[field], row["id"]), reverse=way.lower() == "desc")
        assert page["total_records"] == len(wanted)
        assert page["total_pages"] == -(-len(wanted) // size)
        assert [row["id"] for row in page["data"]] == [row["id"] for row in wanted[(index - 1) * size : index * size]]

    await asyncio.to_thread(check)


LISTS = [
    "terminal", "terminal_config", "mapping", "control", "customer", "object", "retainer", "statistics_script",
    "calculate_script", "balance", "dashboard", "user", "company",
]  # fmt: skip


async def test_every_list_takes_conditions(rig: Rig) -> None:
    for name in LISTS:
        result = await rig.call(f"get_{name}_list", "root", where_and='[["id","=",0]]', order_by='["id","desc"]')
        assert (result if isinstance(result, list) else result["data"]) == [], name
        answer = await rig.ask(f"get_{name}_list", "root", where_or=[["id", "=", 1], ["nothing", "=", 1]])
        assert answer["code"] == 10401
        assert answer["info"].startswith("where_or: condition 2: nothing: no such field"), name


REFUSED: list[tuple[str, Any, str]] = [
    ("where_and", "[", "where_and: not valid JSON: "),
    ("where_and", "5", "where_and: expected an array or its JSON text, got int"),
    ("where_and", {"id": 1}, "where_and: expected an array or its JSON text, got object"),
    ("where_and", ["id", "=", 1], 'where_and: condition 1: expected [field, operator, value], got "id"'),
    (
        "where_and",
        [["id", "=", 1], ["id", "="]],
        'where_and: condition 2: expected [field, operator, value], got ["id"',
    ),
    ("where_or", [[1, "=", 1]], "where_or: condition 1, element 1: expected str, got int"),
    ("where_or", [["id", None, 1]], "where_or: condition 1, element 2: expected str, got null"),
    ("where_and", [["id", "~", 1]], "where_and: condition 1: id: unknown operator '~'"),
    ("where_and", [["name", "like", 5]], "where_and: condition 1: name: like: expected text"),
    ("where_and", [["id", "=", 1], ["secret", "=", 1]], "where_and: condition 2: secret: no such field"),
    (
        "where_in",
        [["uid", "a," * 2_000]] * 5,
        "where_in: more than 10000 values in all conditions together",
    ),
    ("where_in", ["id"], 'where_in: condition 1: expected [field, values], got ["id"]'),
    ("where_in", ["id", None], "where_in: condition 1, element 2: expected a list or text with commas, got null"),
    ("where_in", [["id", "1"], ["id", "x"]], "where_in: condition 2: id: expected an integer, got 'x'"),
    ("where_in", [["id", "1"], [5, "x"]], "where_in: condition 2, element 1: expected str, got int"),
    ("order_by", ["id"], 'order_by: expected [field, asc or desc], got ["id"]'),
    ("order_by", ["id", "down"], 'order_by: element 2: expected asc or desc, got "down"'),
    ("order_by", ["nothing", "asc"], "order_by: nothing: no such field"),
]


async def test_bad_conditions_are_refused_by_parameter_and_position(rig: Rig) -> None:
    for parameter, value, info in REFUSED:
        answer = await rig.ask("get_customer_list", **{parameter: value})
        assert answer["code"] == 10401, (parameter, value)
        assert answer["info"].startswith(info), answer["info"]


def test_a_query_string_has_them_as_text() -> None:
    operation: Operation = TABLE["get_customer_list"]
    query = {"where_and": '[["name","LIKE","%a%"]]', "where_in": '["id","1,2"]', "order_by": '["id","DESC"]'}
    request = Validator(UTC).from_query(operation, query)
    assert request.where_and.conditions == (("name", "LIKE", "%a%"),)
    assert request.where_in.conditions == (("id", ["1", "2"]),)
    assert request.order_by.by == ("id", True)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(st.sampled_from([Comparisons, Memberships, Order]), anything)
def test_anything_is_read_or_refused_with_a_reason(shape: Any, value: Any) -> None:
    for given_ in (value, msgspec.json.encode(value).decode()):
        try:
            shape.parse(given_, UTC)
        except ValueError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, another exception isn't


@pytest.mark.parametrize("nothing", [None, "", "  ", "[]", []])
def test_nothing_is_no_condition(nothing: Any) -> None:
    assert Comparisons.parse(nothing, UTC).conditions == ()
    assert Memberships.parse(nothing, UTC).conditions == ()
    assert Order.parse(nothing, UTC).by is None
