"""Conditions and pages against the same records in a Python list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from registry_stand import ROOT, Stand

from length import rounds
from terrazzo.database.port import Conditions, Row
from terrazzo.errors import BadParameter

NAMES = ["", "a", "A", "ab", "a_b", "a%b", "a\\b", "Zoë", "zoo", "50%", "'; DROP TABLE terminal; --"]
COMPARISONS = ["=", "<>", "!=", ">", ">=", "<", "<="]


async def fill(stand: Stand) -> list[Row]:
    """Terminals that differ in what is asked for below."""
    for number in range(40):
        await stand.terminal(
            f"G{number:02}",
            stand.first if number % 4 else stand.second,
            description=NAMES[number % len(NAMES)],
            keep_alive=number % 7,
            is_route=number % 2,
        )
    await stand.entities.terminals.set_all_activated(
        {f"G{number:02}": number * 1_000_000 for number in range(0, 40, 3)}
    )
    return list((await stand.entities.terminals.page(ROOT, page_size=1000)).rows)


def compare(left: Any, operator: str, right: Any) -> bool:
    if operator == "=":
        return bool(left == right)
    if operator in ("<>", "!="):
        return bool(left != right)
    if left is None or right is None:
        return False
    return {">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[operator]


def like(text: str, pattern: str) -> bool:
    expression = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL | re.IGNORECASE) is not None


def holds(row: Row, condition: tuple[str, str, Any]) -> bool:
    field, operator, value = condition
    if operator.lower() == "like":
        return like(str(row[field]), value)
    if operator == "in":
        return row[field] in value
    return compare(row[field], operator, value)


def expected(rows: Sequence[Row], conditions: Conditions) -> list[Row]:
    return [
        row
        for row in rows
        if all(holds(row, each) for each in conditions.all_of)
        and (not conditions.any_of or any(holds(row, each) for each in conditions.any_of))
        and all(row[field] in values for field, values in conditions.within)
    ]


NUMBERS = st.sampled_from(["keep_alive", "is_route", "id"])
CONDITION = st.one_of(
    st.tuples(NUMBERS, st.sampled_from(COMPARISONS), st.integers(-2, 42) | st.sampled_from([-70_000, 2**15, 2**62])),
    st.tuples(st.just("activated"), st.sampled_from(COMPARISONS), st.integers(0, 40).map(lambda n: n * 1_000_000)),
    st.tuples(st.just("activated"), st.sampled_from(["=", "<>"]), st.none()),
    st.tuples(st.just("description"), st.sampled_from(["=", "<>", "!="]), st.sampled_from(NAMES)),
    st.tuples(
        st.just("description"), st.sampled_from(["like", "LIKE"]), st.text("aABbz%_\\50", max_size=4).map(str.lower)
    ),
    st.tuples(NUMBERS, st.just("in"), st.lists(st.integers(0, 42), max_size=5)),
)
CONDITIONS = st.builds(
    Conditions,
    st.lists(CONDITION, max_size=3),
    st.lists(CONDITION, max_size=3),
    st.lists(st.tuples(NUMBERS, st.lists(st.integers(0, 42) | st.just(70_000), max_size=6)), max_size=2),
)


async def test_random_conditions_find_what_a_list_finds(stand: Stand) -> None:
    import asyncio

    rows = await fill(stand)
    loop = asyncio.get_running_loop()

    @settings(max_examples=rounds(60, 600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        conditions=CONDITIONS,
        order=st.sampled_from(
            [None, ("keep_alive", True), ("id", True), ("uid", False), ("activated", True), ("activated", False)]
        ),
        index=st.integers(1, 4),
        size=st.integers(1, 15),
    )
    def check(conditions: Conditions, order: tuple[str, bool] | None, index: int, size: int) -> None:
        page = stand.entities.terminals.page(
            ROOT, conditions=conditions, order_by=order, page_index=index, page_size=size
        )
        found = asyncio.run_coroutine_threadsafe(page, loop).result(30)
        wanted = expected(rows, conditions)
        column, descending = order or ("id", False)
        wanted.sort(key=lambda row: (row[column] is not None, row[column] or 0, row["id"]), reverse=descending)
        assert found.total == len(wanted)
        assert [row["uid"] for row in found.rows] == [row["uid"] for row in wanted[(index - 1) * size : index * size]]

    await asyncio.to_thread(check)


async def test_values_come_as_text_too(stand: Stand) -> None:
    await fill(stand)
    config = await stand.entities.configurations.item(ROOT, stand.config)
    terminals = stand.entities.terminals

    async def total(*all_of: tuple[str, str, Any], within: Any = ()) -> int:
        return (await terminals.page(ROOT, conditions=Conditions(all_of=all_of, within=within))).total

    assert await total(("keep_alive", "=", "3")) == await total(("keep_alive", "=", 3)) == 6
    assert await total(("id", "in", "1, 2,3")) == 3
    assert await total(within=[("uid", ["G01", " G02", "G77"])]) == 2
    assert await total(("activated", ">", "1970-01-01 00:00:30")) == 3
    assert await total(("activated", ">", "1970-01-01T01:00:30+01:00")) == 3
    assert await total(("config_id", "=", config["uid"])) == await total(("config_id", "=", str(config["id"]))) == 30
    assert await total(("config_id", "<>", config["uid"])) == 10
    assert await total(("config_id", "=", "nothing")) == 0
    assert await total(("config_id", "<>", "nothing")) == 40
    assert await total(within=[("config_id", [config["uid"], 999])]) == 30
    assert await total(("reference", "=", 7)) == 0


async def test_unknown_uid_does_not_match_records_without_a_reference(stand: Stand) -> None:
    await stand.entities.objects.create(stand.first, {"name": "o"})
    for operator, total in (("=", 0), ("<>", 1)):
        conditions = Conditions(all_of=[("mapping_id", operator, "nothing")])
        assert (await stand.entities.objects.page(ROOT, conditions=conditions)).total == total


async def test_empty_text_finds_what_was_never_written(stand: Stand) -> None:
    await stand.entities.objects.create(stand.first, {"name": "bare"})
    mapping = await stand.entities.mappings.create(stand.first, {"name": "m", "script": []})
    written = {"mapping_id": mapping["id"], "file_id": 7, "addition": [{"title": "t", "data": []}]}
    await stand.entities.objects.create(stand.first, {"name": "full", **written})

    async def names(*all_of: tuple[str, str, Any], within: Any = ()) -> list[str]:
        found = await stand.entities.objects.page(ROOT, conditions=Conditions(all_of=all_of, within=within))
        return [row["name"] for row in found.rows]

    for field in ("mapping_id", "file_id", "addition"):
        assert await names((field, "=", "")) == ["bare"], field
        assert await names((field, "<>", "")) == await names((field, "!=", "")) == ["full"], field
        assert await names(within=[(field, ["", " "])]) == ["bare"], field
    assert await names(("customer_id", "=", "")) == ["bare", "full"]
    assert await names(("description", "=", "")) == ["bare", "full"], "no null there"
    assert await names(("addition", "=", "[]")) == ["bare"], "as it reads"
    assert await names(("addition", "<>", "[]")) == ["full"]
    with pytest.raises(BadParameter, match="created: '' is not a time"):
        await names(("created", "=", ""))


async def test_structures_are_not_searched_as_text(stand: Stand) -> None:
    for field in ("terminal_list", "addition"):
        with pytest.raises(BadParameter, match=f"{field}: like: is a structure, not a text"):
            await stand.entities.objects.page(ROOT, conditions=Conditions(all_of=[(field, "like", "%G2%")]))


REFUSED: list[tuple[Conditions, str]] = [
    (Conditions(all_of=[("pin", "=", "x")]), "where_and: condition 1: pin: no such field"),
    (Conditions(all_of=[("rsa_privatekey", "like", "%")]), "where_and: condition 1: rsa_privatekey: no such field"),
    (Conditions(all_of=[("1=1; --", "=", "x")]), "where_and: condition 1: 1=1; --: no such field"),
    (Conditions(any_of=[("nothing", "=", "x")]), "where_or: condition 1: nothing: no such field"),
    (Conditions(within=[("nothing", ["x"])]), "where_in: condition 1: nothing: no such field"),
    (Conditions(all_of=[("name", "= 1 OR 1", "x")]), "where_and: condition 1: name: unknown operator '= 1 or 1'"),
    (Conditions(all_of=[("name", "regexp", "x")]), "where_and: condition 1: name: unknown operator"),
    (
        Conditions(all_of=[("keep_alive", "=", "many")]),
        "where_and: condition 1: keep_alive: expected an integer, got 'many'",
    ),
    (Conditions(all_of=[("keep_alive", "=", 1.5)]), "where_and: condition 1: keep_alive: expected an integer, got 1.5"),
    (Conditions(all_of=[("keep_alive", "=", 2**70)]), "where_and: condition 1: keep_alive: expected an integer"),
    (Conditions(all_of=[("keep_alive", "=", "9" * 50)]), "where_and: condition 1: keep_alive: expected an integer"),
    (Conditions(all_of=[("keep_alive", "=", [1])]), "where_and: condition 1: keep_alive: expected an integer"),
    (Conditions(all_of=[("name", "=", ["x"])]), "where_and: condition 1: name: expected text, got an array"),
    (Conditions(all_of=[("name", "=", "a\0")]), "where_and: condition 1: name: contains a NUL character"),
    (
        Conditions(all_of=[("name", "like", "%" * 257)]),
        "where_and: condition 1: name: like: a pattern of 257 characters",
    ),
    (Conditions(all_of=[("name", "like", 7)]), "where_and: condition 1: name: like: expected text"),
    (Conditions(all_of=[("name", "in", {"a": 1})]), "where_and: condition 1: name: expected a list of values"),
    (Conditions(all_of=[("created", ">", "yesterday")]), "where_and: condition 1: created: 'yesterday' is not a time"),
    (Conditions(all_of=[("config_id", ">", "abc")]), "where_and: condition 1: config_id: >: expected an id"),
    (Conditions(within=[("name", ["x"] * 1_001)]), "where_in: condition 1: name: more than 1000 values"),
    (
        Conditions(within=[("name", ["x"] * 1_000)] * 10, any_of=[("name", "in", "x")]),
        "where_or: more than 10000 values in all conditions together",
    ),
    (
        Conditions(all_of=[("name", "in", "x," * 999 + "x")] * 10 + [("name", "IN", ["x"])]),
        "where_and: more than 10000 values in all conditions together",
    ),
    (Conditions(all_of=[("name", "=", "x")] * 101), "where_and: more than 100 conditions"),
    (Conditions(any_of=[("name", "=", "x"), ("x", "=", "x")]), "where_or: condition 2: x: no such field"),
    (Conditions(within=[("name", ["x"]), ("id", ["x"])]), "where_in: condition 2: id: expected an integer, got 'x'"),
]


async def test_bad_conditions_are_refused_by_field(stand: Stand) -> None:
    for conditions, message in REFUSED:
        with pytest.raises(BadParameter) as refused:
            await stand.entities.terminals.page(ROOT, conditions=conditions)
        assert str(refused.value).startswith(message)
    for field in ("password_hash", "token_epoch"):
        with pytest.raises(BadParameter, match=f"{field}: no such field"):
            await stand.entities.users.page(ROOT, conditions=Conditions(all_of=[(field, "like", "%")]))
        with pytest.raises(BadParameter, match=f"{field}: no such field"):
            await stand.entities.users.page(ROOT, order_by=(field, True))


async def test_pages(stand: Stand) -> None:
    await fill(stand)
    page = stand.entities.terminals.page
    for index, size, message in (
        (0, 20, "page_index: expected 1 or more, got 0"),
        (1, 0, "page_size: expected 1..1000, got 0"),
        (1, 1_001, "page_size: expected 1..1000, got 1001"),
    ):
        with pytest.raises(BadParameter, match=message):
            await page(ROOT, page_index=index, page_size=size)
    assert await page(ROOT, page_index=3) == ([], 40)
    assert await page(ROOT, page_index=2**62, page_size=1_000) == ([], 40)
    own = await page(stand.second, page_size=1_000, order_by=("name", True))
    assert own.total == len(own.rows) == 10
    assert [row["uid"] for row in own.rows] == [f"G{number:02}" for number in range(36, -1, -4)]
