"""Requests become Structs or errors that name every field at fault, for every operation of the table."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import GeneratorType
from typing import Any, Literal, get_args, get_origin
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from terrazzo.api.kernel.fields import Json, Moment, Parsed, Topics, schema_hook
from terrazzo.api.kernel.long_requests.values import LONG, separators, values_in
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.validation import Validator
from terrazzo.api.operations.table import TABLE
from terrazzo.bulk.rows import read_text
from terrazzo.database.field import JSON_DEPTH
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import at_once
from terrazzo.times import format_spaced, parse_time

VALIDATOR = Validator(UTC)
JSON_VALUES: dict[str, Any] = {
    "null": None,
    "bool": True,
    "int": 5,
    "float": 1.5,
    "str": "text",
    "array": [1],
    "object": {"a": 1},
}
SAMPLES: dict[str, Any] = {
    "kinds": ["grid"],
    "ids": [1],
    "publishes": [{"object_id": 1, "command": "SP", "value": "1"}],
}
"""Values of fields whose schema doesn't say enough."""

OPERATIONS = [pytest.param(operation, id=operation.name) for operation in TABLE]


def base_types(wanted: Any) -> set[str]:
    """Which of JSON's types a field takes."""
    if hasattr(wanted, "__metadata__"):
        return base_types(wanted.__origin__)
    if isinstance(wanted, type) and issubclass(wanted, Parsed):
        choices = wanted.schema.get("anyOf", [wanted.schema])
        names = {"string": {"str"}, "number": {"int", "float"}, "integer": {"int"}}
        return set().union(*(names.get(choice["type"], {choice["type"]}) for choice in choices))
    if get_origin(wanted) is Literal:
        return {"str"}
    if get_origin(wanted) in (list, tuple):
        return {"array"}
    if get_args(wanted):
        return set().union(*(base_types(part) for part in get_args(wanted)))
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return {"object"}
    names = {str: {"str"}, int: {"int"}, float: {"int", "float"}, bool: {"bool"}, type(None): {"null"}}
    return names.get(wanted, {"str"} if isinstance(wanted, type) and issubclass(wanted, Enum) else set())


def is_parsed(wanted: Any) -> bool:
    """Whether a field says in its own words what is wrong with its value."""
    parts = get_args(wanted) or (wanted,)
    return any(isinstance(part, type) and issubclass(part, Parsed) for part in parts)


def sample(wanted: Any) -> Any:
    """A value that a field takes."""
    schema = msgspec.json.schema(wanted, schema_hook=schema_hook)
    if wanted is Moment:
        return "2026-01-02 03:04:05"
    if isinstance(wanted, type) and issubclass(wanted, Json):
        return "[]"
    choices = schema.get("anyOf", [schema])
    if any(choice.get("type") == "string" for choice in choices):
        return "x" * max(1, choices[0].get("minLength", 1))
    if choices[0].get("type") == "array":
        return ["x" * max(1, choices[0]["items"].get("minLength", 1))] * choices[0].get("minItems", 0)
    return choices[0].get("minimum", 1)


def complete(operation: Operation) -> dict[str, Any]:
    """A request with every required field."""
    required = [field for field in msgspec.structs.fields(operation.request) if field.required]
    return {field.encode_name: SAMPLES.get(field.encode_name) or sample(field.type) for field in required}


def refuse(operation: Operation, values: dict[str, Any]) -> str:
    with pytest.raises(BadParameter) as caught:
        VALIDATOR.from_json(operation, msgspec.json.encode(values).decode())
    return str(caught.value)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_required_fields_suffice_and_others_are_ignored(operation: Operation) -> None:
    values = complete(operation) | {"action": operation.name, "actionid": 7, "no_such_field": [1]}
    assert isinstance(VALIDATOR.from_json(operation, msgspec.json.encode(values).decode()), operation.request)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_missing_fields_are_named_at_once(operation: Operation) -> None:
    required = list(complete(operation))
    if required:
        assert refuse(operation, {}) == "; ".join(f"{name}: is required" for name in required)
    for name in required:
        assert refuse(operation, {k: v for k, v in complete(operation).items() if k != name}) == f"{name}: is required"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_wrong_type_is_named_with_its_field(operation: Operation) -> None:
    for field in msgspec.structs.fields(operation.request):
        if field.encode_name == "actionid":  # goes back as it came
            continue
        wrong = set(JSON_VALUES) - base_types(field.type) - {"float" if base_types(field.type) >= {"float"} else ""}
        wrong -= set() if field.required else {"null"}  # which counts as not sent
        assert wrong, f"{field.encode_name} takes everything"
        for kind in wrong:
            info = refuse(operation, complete(operation) | {field.encode_name: JSON_VALUES[kind]})
            assert info.startswith(f"{field.encode_name}: "), info
            assert "expected " in info, info
            assert info.endswith(f"got {kind}") or is_parsed(field.type), info


def test_several_faults_stand_in_one_answer() -> None:
    operation = TABLE["get_grid_list"]
    values = {"terminal_id": 1.5, "page_index": "5", "page_size": 1001, "topic": ["r", 5], "start_time": "yesterday"}
    faults = dict(part.split(": ", 1) for part in refuse(operation, values).split("; "))
    assert faults == {
        "terminal_id": "expected int or str, got float",
        "page_index": "expected int, got str",
        "page_size": "expected int <= 1000",
        "topic": "entry 1: expected str, got int",
        "start_time": "'yesterday' is not a time: expected YYYY-MM-DD HH:MM:SS, or ISO 8601 with an offset or Z",
        "end_time": "is required",
    }


def test_query_strings_may_write_numbers_as_text() -> None:
    operation = TABLE["get_grid_list"]
    query = {"terminal_id": "17", "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-02T00:00:00Z"}
    request = VALIDATOR.from_query(operation, query | {"page_index": "3", "page_size": "7", "topic": '["r","a/+"]'})
    assert (request.terminal_id, request.page_index, request.page_size) == ("17", 3, 7)
    assert request.topic.names == ("r", "a/+")
    with pytest.raises(BadParameter, match=r"^page_index: expected int, got str$"):
        VALIDATOR.from_query(operation, query | {"page_index": "three"})


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("r", ("r",)),
        ("", ()),
        ([], ()),
        ("[]", ()),
        (["r", ""], ("r",)),
        ('["g/t/r", "g/t/#"]', ("g/t/r", "g/t/#")),
    ],
)
def test_topics_come_in_many_shapes(value: Any, names: tuple[str, ...]) -> None:
    assert Topics.parse(value, UTC).names == names


@pytest.mark.parametrize(
    "value", ["a/#/b", "a+", "#a", "a\0b", ["ok", "+x"], '["#b"]', "[1]", "[", {}, 5, ["x"] * 1001]
)
def test_what_is_no_topic_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Topics.parse(value, UTC)


def test_json_comes_as_text_or_as_it_is() -> None:
    assert Json.parse('{"a": [1]}', UTC).value == Json.parse({"a": [1]}, UTC).value == {"a": [1]}
    assert Json.parse("  ", UTC).value is None


@pytest.mark.parametrize("value", ["{", "5", '"text"', 5, True, "NaN", "[1e999]", "[" * 100_000, "\ud800"])
def test_what_is_no_json_object_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Json.parse(value, UTC)


@pytest.mark.parametrize("as_text", [True, False])
def test_json_is_as_deep_as_is_kept(as_text: bool) -> None:
    deepest: Any = []
    for _ in range(JSON_DEPTH - 1):
        deepest = [deepest]
    Json.parse(msgspec.json.encode(deepest).decode() if as_text else deepest, UTC)
    deeper = [deepest]
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        Json.parse(msgspec.json.encode(deeper).decode() if as_text else deeper, UTC)


@given(
    st.integers(0, 4 * 10**15),
    st.sampled_from(["UTC", "Asia/Kolkata", "Africa/Monrovia", "America/St_Johns", "Australia/Lord_Howe"]),
)
@example(63_593_069_999_999, "Africa/Monrovia")  # until 1972 its minutes began 30 s after UTC's
@example(63_593_070_000_000, "Africa/Monrovia")
def test_times_are_told_to_the_second_in_each_zone(time_us: int, name: str) -> None:
    zone = ZoneInfo(name)
    expected = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)).astimezone(zone)
    assert format_spaced(time_us, zone) == expected.strftime("%Y-%m-%d %H:%M:%S")


def test_a_time_without_offset_is_in_the_zone() -> None:
    shanghai = ZoneInfo("Asia/Shanghai")
    assert Moment.parse("2026-01-01 08:00:00", shanghai).time_us == parse_time("2026-01-01T00:00:00Z")
    assert Moment.parse("0001-01-01T00:00:00Z", UTC).time_us == 0


short = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | short,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operation=st.sampled_from(list(TABLE)), data=st.data())
def test_any_json_is_a_request_or_a_bad_parameter(operation: Operation, data: st.DataObject) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(operation.request)] or ["x"]
    values = data.draw(st.dictionaries(st.sampled_from(names), json_values, max_size=3))
    try:
        VALIDATOR.from_json(operation, msgspec.json.encode(values).decode())
    except BadParameter as error:
        assert error.field.split("[")[0] in names  # noqa: PT017


PADDING = " " * LONG
"""Makes a request long, and nothing else of it."""


def told(operation: Operation, body: str) -> str:
    """What is wrong with a request; empty: nothing."""
    try:
        read = VALIDATOR.steps_from_json if len(body) > LONG else VALIDATOR.from_json
        found = read(operation, body)
        found = at_once(found) if isinstance(found, GeneratorType) else found
    except BadParameter as error:
        return f"{error.field} {error}"
    assert isinstance(found, operation.request)
    return ""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_of_a_long_request_the_same_is_said_as_of_a_short_one(operation: Operation) -> None:
    wrong: list[dict[str, Any]] = [{}, complete(operation)]
    for field in msgspec.structs.fields(operation.request):
        wrong += [complete(operation) | {field.encode_name: value} for value in JSON_VALUES.values()]
    nulls = {field.encode_name: None for field in msgspec.structs.fields(operation.request) if not field.required}
    for values in [*wrong, complete(operation) | nulls, nulls]:
        body = msgspec.json.encode(values).decode()
        assert told(operation, body + PADDING) == told(operation, body), body


def test_a_long_request_is_what_the_short_one_is() -> None:
    body = (
        '{"object_id": 1, "terminal_id": 2, "page_size": 7, '
        '"end_time": "2026-01-02 04:00:00", "topic": ["g/a/r"], "start_time": "2026-01-02 03:04:05"}'
    )
    short = VALIDATOR.from_json(TABLE["get_grid_list"], body)
    long = at_once(VALIDATOR.steps_from_json(TABLE["get_grid_list"], body))
    for name in short.__struct_fields__:
        one, other = getattr(short, name), getattr(long, name)
        slots = getattr(one, "__slots__", ())
        assert [getattr(one, each) for each in slots] == [getattr(other, each) for each in slots], name
        assert isinstance(one, Parsed) or one == other, name


def test_rows_of_an_import_may_be_as_many_as_fit_into_a_request() -> None:
    rows = [{"uid": f"t{number}", "pin": "123456"} for number in range(20_000)]
    body = msgspec.json.encode({"rows": rows}).decode()
    for sent in (body, msgspec.json.encode({"rows": msgspec.json.encode(rows).decode()}).decode()):
        found = at_once(VALIDATOR.steps_from_json(TABLE["import_terminals"], sent))
        assert [row.values for row in read_text(found.rows).rows] == rows


def count(text: str, most: int = 10**9) -> int:
    return at_once(values_in(text.encode(), most))


def test_numbers_that_take_long_to_read_count_as_many() -> None:
    for number in ("1e300", "-1.5E-300", "0.e0000300", "1e+308"):
        assert count(json.dumps(list(range(140)))[:-1] + f", {number}" * 100 + "]", most=10_000) > 10_000
        assert count(f"[{', '.join([number] * 10_000)}]", most=30_000) > 30_000
    for harmless in ('"0a3e300"', "1e30", "1.5e-7", '"1e300"', "3000"):
        assert count(f"[{', '.join([harmless] * 1_000)}]") <= 1_001


@given(
    st.recursive(
        st.integers() | st.text(alphabet='a,[{"\\ü') | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b,[{"\\'), inner),
        max_leaves=30,
    ),
    st.integers(0, 40),
)
def test_values_are_counted_without_what_stands_in_texts(value: Any, most: int) -> None:
    def without_texts(each: Any) -> Any:
        if isinstance(each, dict):
            return {str(number): without_texts(one) for number, one in enumerate(each.values())}
        return [without_texts(one) for one in each] if isinstance(each, list) else 0

    def texts(each: Any) -> list[str]:
        if isinstance(each, dict):
            return [text for pair in each.items() for one in pair for text in texts(one)]
        return [text for one in each for text in texts(one)] if isinstance(each, list) else [each] if each else []

    inner = [text for text in map(str, texts(value)) if text.lstrip(" ")[:1] in tuple('[{"\\')]
    exact = count(json.dumps(without_texts(value))) + sum(
        text.count(",") + text.count("[") + text.count("{") for text in inner
    )
    body = json.dumps(value, ensure_ascii=False)
    assert exact <= most or count(body, most) > most
    assert count(body, most) in (exact, separators(body.encode())) or count(body, most) > most
    assert (count(body, most) > most) == (exact > most)


def test_counting_takes_time_that_grows_with_the_text_and_pauses() -> None:
    for text in (
        '"' + '\\"' * 400_000 + ',"',
        '"",' * 300_000,
        '"' + "\\\\" * 400_000 + '",',
        '"' + " " * 900_000 + ',"',
    ):
        longest = 0.0
        steps = values_in(f"[{text}0]".encode(), most=0)
        while True:
            began_s = time.thread_time()
            try:
                next(steps)
            except StopIteration:
                break
            longest = max(longest, time.thread_time() - began_s)
        assert longest < 0.02
