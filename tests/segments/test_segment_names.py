"""Records whose sets of names differ: as fast to render and to count as those that are alike, and as exact."""

from __future__ import annotations

import random
import time

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segment_bodies import Records

from terrazzo_adapters.segments import Packing, Segment, encode, named_records, shapes
from terrazzo_adapters.segments.packing import Damaged

T0 = 1_700_000_000_000_000
NAMES = [f"V{number}" for number in range(20)]


def made(points: list[dict[str, object]]) -> Records:
    return [(T0 + place * 1_000_000, place, msgspec.msgpack.encode(each)) for place, each in enumerate(points)]


def segment_of(records: Records, *, mosaic: bool = True) -> Segment:
    return Segment(encode(records, mosaic=mosaic, packing=Packing.CHEAP).get)


def changes(count: int, chance: random.Random, *, missing: float) -> list[dict[str, object]]:
    """What an object's records have where a message changes some of ten variables of one of two terminals."""
    return [
        {name: round(chance.gauss(50, 5), 2) for name in NAMES[place % 2 :: 2] if chance.random() >= missing}
        for place in range(count)
    ]


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6, 0.97])
def test_all_bodies_follow_from_columns(missing: float) -> None:
    records = made(changes(600, random.Random(1), missing=missing))
    parts = encode(records, mosaic=True, packing=Packing.CHEAP)
    segment = Segment(parts.get)
    assert segment.bodies(0, segment.count) == [body for _, _, body in records]
    assert segment.bodies(123, 140) == [body for _, _, body in records[123:140]]
    assert not [name for name in parts if name.startswith(b"b")], "none is kept as it is"


VALUES: list[object] = [1.5, 7, -3, 2**40, None, True, False, "on", "off", "x" * 600, ""]


@given(
    st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=20), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from([0, 3, named_records._FEW]),
)
def test_sets_and_orders_of_any_kind(orders: list[list[str]], chance: random.Random, wide: bool, few: int) -> None:
    values = VALUES if wide else VALUES[:9]
    points: list[dict[str, object]] = [{name: chance.choice(values) for name in order} for order in orders]
    records = made([*points, *(dict.fromkeys(sorted(each), 1.0) for each in points)])
    parts = encode(records, mosaic=True, packing=Packing.CHEAP)
    segment = Segment(parts.get)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_records, "_FEW", few)
        assert segment.bodies(0, segment.count) == [body for _, _, body in records]
    assert not [name for name in parts if name.startswith(b"b")], "none is kept as it is"


@given(st.data(), st.booleans())
def test_records_that_carry_one_of_some_names_are_counted(data: st.DataObject, mosaic: bool) -> None:
    sets = data.draw(st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), min_size=1, max_size=20))
    segment = segment_of(made([dict.fromkeys(each, 1.25) for each in sets]), mosaic=mosaic)
    keys = set(data.draw(st.lists(st.sampled_from("abcdefg"), max_size=3)))
    start, stop = data.draw(st.integers(-1, 21)), data.draw(st.integers(-1, 21))
    expected = sum(1 for each in sets[max(0, start) : max(0, stop)] if keys & set(each))
    assert segment.count_carrying(keys, start, stop) == expected


def test_few_bodies_are_made_in_less_time_than_many() -> None:
    segment = segment_of(made(changes(2_000, random.Random(1), missing=0.1)))
    costs = []
    for few in (named_records._FEW, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(named_records, "_FEW", few)
            spent = []
            for _ in range(9):
                began = time.thread_time()
                segment.bodies(1_000, 1_050)
                spent.append(time.thread_time() - began)
        costs.append(min(spent))
    assert 2 * costs[0] < costs[1], "a page of 50 takes a fifth"


def test_a_shape_with_a_name_twice_is_damaged() -> None:
    twice = shapes.Shapes([shapes.Shape(True, (0, 1, 0))], np.zeros(3, np.int64)).encode(Packing.CHEAP)
    with pytest.raises(Damaged, match="a name twice"):
        shapes.decode_shapes(twice, 3, 2)


def test_many_sets_of_names_cost_little_more_than_one() -> None:
    alike, different = (made(changes(2_000, random.Random(1), missing=missing)) for missing in (0.0, 0.3))
    costs = []
    for records in (alike, different):
        spent = []
        for _ in range(3):
            began = time.thread_time()
            encode(records, mosaic=True, packing=Packing.CHEAP)
            spent.append(time.thread_time() - began)
        costs.append(min(spent))
    assert costs[1] < 5 * costs[0], "one set at a time takes twenty times as long"
