"""Maps that are walked together have the points that each of them has when it is decoded by itself."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo_adapters.columns import decoded
from terrazzo_adapters.columns.bodies import Bodies
from terrazzo_adapters.columns.column import TEXT, PointColumn, build_column
from terrazzo_adapters.columns.decoded import decode_columns, which_carry
from terrazzo_adapters.columns.flat_maps import find_values
from terrazzo_adapters.columns.points import parse_points

numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, 127, 128, 255, 256, -1, -32, -33, -129, 2**16, 2**32, 2**53 + 1, 2**63, -(2**31) - 1]),
    st.floats(),
)
texts = st.one_of(st.text(max_size=3), st.sampled_from(["x" * 31, "x" * 32, "é" * 100, "x" * 255]))
values = st.one_of(st.none(), st.booleans(), numbers, texts)
names = st.sampled_from(["A", "B", "C.D", "seven77", "eight888", "a name of 16 let", "n" * 31, "n" * 32, "溫度", ""])
flat = st.dictionaries(names, values, max_size=20)
nested = st.dictionaries(
    names, st.one_of(values, st.just("x" * 256), st.dictionaries(st.sampled_from("AD"), values), st.lists(values))
)
singles = st.builds(lambda value: b"\x81\xa1A\xca" + np.array(value, ">f4").tobytes(), st.floats(width=32))
encoded = st.builds(msgspec.msgpack.encode, values)
repeated = st.builds(lambda first, last: b"\x82\xa1A" + first + b"\xa1A" + last, encoded, encoded)
bodies = st.one_of(st.builds(msgspec.msgpack.encode, flat), singles, repeated)
foreign = st.one_of(  # texts that are none are not among them: nobody's report is stored with such
    bodies,
    st.builds(msgspec.msgpack.encode, nested),
    st.builds(msgspec.json.encode, nested),
    st.binary(max_size=4),
    st.builds(lambda body, length: body[:length], bodies, st.integers(0, 30)),
    st.builds(bytes.__add__, bodies, st.binary(min_size=1, max_size=2)),
)
asked = st.lists(names, min_size=1, max_size=4, unique=True)


def told(column: PointColumn | None) -> Any:
    """What a column says, in values that can be compared."""
    if column is None or not len(column.times_us):
        return None
    each = zip(column.kinds.tolist(), column.numbers.tolist(), strict=True)
    shown = [column.texts[int(number)] if kind == TEXT else number for kind, number in each]
    return column.times_us.tolist(), column.kinds.tolist(), shown


def expected(found: list[bytes], key: str) -> Any:
    times_us = np.arange(len(found), dtype=np.int64)
    return told(build_column(times_us, [parse_points(body).get(key) for body in found]))


@given(st.lists(bodies, min_size=1, max_size=8), asked)
def test_flat_maps_are_columns(found: list[bytes], keys: list[str]) -> None:
    maps = find_values(Bodies.of(found), keys)
    assert maps is not None
    times_us = np.arange(len(found), dtype=np.int64)
    for number, key in enumerate(keys):
        assert told(maps.column(number, times_us)) == expected(found, key)
    assert maps.carrying().tolist() == [not parse_points(body).keys().isdisjoint(keys) for body in found]


@given(st.lists(foreign, max_size=8), asked, st.integers(1, 8))
def test_whatever_bodies_are_they_say_what_each_says(found: list[bytes], keys: list[str], together: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoded, "_LEAST_WALKED", 1)
        patch.setattr(decoded, "_WALKED", together)
        columns = decode_columns(np.arange(len(found), dtype=np.int64), Bodies.of(found), keys)
        carry = which_carry(Bodies.of(found), keys).tolist()
    assert columns.keys() <= set(keys)
    for key in keys:
        assert told(columns.get(key)) == expected(found, key)
    assert carry == [not parse_points(body).keys().isdisjoint(keys) for body in found]


def test_one_map_of_many_names_is_not_walked_with_others() -> None:
    small = [msgspec.msgpack.encode({"A": 1.5})] * 500
    large = msgspec.msgpack.encode({f"n{number}": number for number in range(5_000)})
    assert find_values(Bodies.of([*small, large]), ["A"], least=400) is None
    assert find_values(Bodies.of(small), ["A"], least=400) is not None
    assert find_values(Bodies.of([*small, large]), ["n4999"]) is not None


def test_whole_numbers_that_no_float_holds_are_no_points() -> None:
    found = [b'{"A":1}', b'{"A":1' + b"0" * 400 + b"}", b'{"A":true}', b'{"A":-1' + b"0" * 400 + b"}"]
    column = decode_columns(np.arange(4, dtype=np.int64), Bodies.of(found), ["A"])["A"]
    assert (column.times_us.tolist(), column.numbers.tolist()) == ([0, 2], [1.0, 1.0])


@given(st.lists(bodies, min_size=1, max_size=8), st.lists(bodies, max_size=3), asked, st.randoms())
def test_maps_say_the_same_in_whatever_order_they_lie(
    found: list[bytes], more: list[bytes], keys: list[str], random: Random
) -> None:
    every = Bodies.of([*more, *found, *more])
    places = list(range(len(more), len(more) + len(found)))
    random.shuffle(places)
    some = every.part(np.array(places))
    chosen = [found[place - len(more)] for place in places]
    assert some.each() == chosen
    maps = find_values(some, keys)
    assert maps is not None
    times_us = np.arange(len(found), dtype=np.int64)
    assert [told(maps.column(number, times_us)) for number in range(len(keys))] == [
        expected(chosen, key) for key in keys
    ]


@given(st.lists(foreign, max_size=30), st.integers(1, 10), st.integers(1, 60))
def test_bodies_in_parts_are_those_bodies(found: list[bytes], most: int, most_bytes: int) -> None:
    every = Bodies.of(found)
    parts = [every.part(part) for part in every.parts(most, most_bytes)]
    assert [body for part in parts for body in part.each()] == found
    assert all(part.count <= most and (part.count == 1 or part.sizes.sum() <= most_bytes) for part in parts)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_map_that_ends_in_the_next_one_is_not_whole(cut: int) -> None:
    """Whose missing part the bytes behind it seem to be."""
    body = msgspec.msgpack.encode({"A": 1.5, "B": 2.5})
    assert find_values(Bodies.of([body, body[:-cut], body]), ["A"]) is None
    assert find_values(Bodies.of([body, body, body[:-cut]]), ["A"]) is None
