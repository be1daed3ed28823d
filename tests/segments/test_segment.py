"""A segment gives back what was put in: bodies byte for byte, and of their points what bodies themselves say."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_bodies import LATEST_US, ODD, T0, Records, bodies, flat_maps, json_texts, records, spaced

from terrazzo_adapters.columns.column import PointColumn, build_columns
from terrazzo_adapters.columns.name_tally import make_tally
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.columns.rollup import HOUR_US
from terrazzo_adapters.segments import MOST_RECORDS, Packing, Segment, encode, named_records

packings = st.sampled_from(Packing)


def sealed(found: Records, *, mosaic: bool = True, packing: Packing = Packing.CHEAP) -> Segment:
    return Segment(encode(found, mosaic=mosaic, packing=packing).get)


def listed(column: PointColumn) -> list[tuple[int, int, object]]:
    texts = [
        column.texts[int(number)] if kind == 2 else number
        for kind, number in zip(column.kinds, column.numbers, strict=True)
    ]
    return list(zip(column.times_us.tolist(), column.kinds.tolist(), texts, strict=True))


def check_points(segment: Segment, found: Records) -> None:
    points = [(time_us, parse_points(body)) for time_us, _, body in found]
    names = sorted({name for _, each in points for name in each})
    assert list(segment.names) == names
    tally = make_tally(each for _, each in points)
    for keys in ({name} for name in names):
        assert segment.tally.carrying(keys) == tally.carrying(keys)
    assert segment.tally.carrying({"a", "b"}) == tally.carrying({"a", "b"})
    assert segment.tally.count == len(found)
    plain = [(time_us, {name: floated(value) for name, value in each.items()}) for time_us, each in points]
    wanted = build_columns(plain, names)
    for name in names:
        column = segment.column(name)
        assert listed(column) == (listed(wanted[name]) if name in wanted else [])
        check_rollup(segment, name, column)
        check_summary(segment, name, column, [name in each for _, each in points])
    assert not len(segment.column("absent").times_us)
    assert segment.summary("absent") is None


def floated(value: object) -> object:
    """As charts have integers."""
    try:
        return float(value) if type(value) is int else value
    except OverflowError:
        return None


def check_rollup(segment: Segment, name: str, column: PointColumn) -> None:
    """If there is one it says what the points do, each hour taken alone."""
    rollup = segment.rollup(name)
    if rollup is None:
        return
    hours = column.times_us // HOUR_US
    assert (rollup.starts_us // HOUR_US).tolist() == np.unique(hours).tolist()
    for place, hour in enumerate((rollup.starts_us // HOUR_US).tolist()):
        times_us, numbers = column.times_us[hours == hour].tolist(), column.numbers[hours == hour].tolist()
        assert set(column.kinds.tolist()) == {rollup.kind}
        assert rollup.counts[place] == len(numbers)
        exact = list(map(Fraction, numbers))
        assert abs(Fraction(float(rollup.sums[place])) - sum(exact)) <= Fraction(1, 10**12) * sum(map(abs, exact))
        found = zip(rollup.times_us[:, place].tolist(), rollup.values[:, place].tolist(), strict=True)
        places = (0, numbers.index(min(numbers)), numbers.index(max(numbers)), len(numbers) - 1)
        assert repr(list(found)) == repr([(times_us[each], numbers[each]) for each in places])


def check_summary(segment: Segment, name: str, column: PointColumn, carried: list[bool]) -> None:
    summary = segment.summary(name)
    assert summary is not None
    assert summary.carried == sum(carried)
    assert summary.last_place == max(place for place, carries in enumerate(carried) if carries)
    numeric = column.numeric()
    assert (summary.count, summary.texts) == (len(numeric.numbers), len(column.numbers) - len(numeric.numbers))
    if summary.count:
        numbers, times_us = numeric.numbers.tolist(), numeric.times_us.tolist()
        assert (summary.first, summary.first_us) == (numbers[0], times_us[0])
        assert (summary.last, summary.last_us) == (numbers[-1], times_us[-1])
        assert (summary.min, summary.min_us) == (min(numbers), times_us[numbers.index(min(numbers))])
        assert (summary.max, summary.max_us) == (max(numbers), times_us[numbers.index(max(numbers))])


@given(found=records(bodies), mosaic=st.booleans(), packing=packings, few=st.sampled_from([0, named_records._FEW]))
@settings(max_examples=80, deadline=None)
def test_everything_comes_back(found: Records, mosaic: bool, packing: Packing, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_records, "_FEW", few)
        check_all(found, mosaic=mosaic, packing=packing)


def check_all(found: Records, *, mosaic: bool, packing: Packing) -> None:
    segment = sealed(found, mosaic=mosaic, packing=packing)
    assert segment.count == len(found)
    assert (segment.first_us, segment.first_arrival) == found[0][:2]
    assert (segment.last_us, segment.last_arrival) == found[-1][:2]
    assert (
        list(zip(segment.times_us.tolist(), segment.arrivals.tolist(), segment.bodies(0, len(found)), strict=True))
        == found
    )
    check_points(segment, found)


def test_the_last_hour_that_a_time_can_have() -> None:
    found = [(LATEST_US - 60 + number, number, msgspec.msgpack.encode({"a": number / 2})) for number in range(60)]
    segment = sealed(found)
    assert segment.rollup("a") is not None
    check_points(segment, found)


@given(found=records(st.one_of(flat_maps, json_texts)), packing=packings, data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_stretch_of_bodies(found: Records, packing: Packing, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_records, "_FEW", data.draw(st.sampled_from([0, named_records._FEW])))
        check_stretch(sealed(found, packing=packing), found, data)


def check_stretch(segment: Segment, found: Records, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(found)))
    stop = data.draw(st.integers(start, len(found) + 3))
    assert segment.bodies(start, stop) == [body for _, _, body in found[start:stop]]
    keys = data.draw(st.sets(st.sampled_from("abcx")))
    carrying = [body for _, _, body in found[start:stop] if not keys.isdisjoint(parse_points(body))]
    assert segment.count_carrying(keys, start, stop) == len(carrying)
    check_parts(segment, [body for _, _, body in found], keys, start)


def check_parts(segment: Segment, bodies: list[bytes], keys: set[str], start: int) -> None:
    """Bodies of which some names are asked for say the same about these; those that lack others are maps of them."""
    places = np.arange(start, len(bodies), 2)
    parts = segment.bodies_at(places, keys)
    for body, part in zip((bodies[place] for place in places), parts, strict=True):
        if part == body:
            continue
        whole = msgspec.msgpack.decode(body)
        assert repr(msgspec.msgpack.decode(part)) == repr({name: whole[name] for name in sorted(keys & whole.keys())})


@pytest.mark.parametrize("mosaic", [False, True])
@pytest.mark.parametrize("packing", Packing)
def test_odd_bodies_many_times(mosaic: bool, packing: Packing) -> None:
    found = spaced(ODD * 30)
    segment = sealed(found, mosaic=mosaic, packing=packing)
    assert segment.bodies(0, segment.count) == [body for _, _, body in found]
    check_points(segment, found)


def test_times_at_both_ends_and_equal_ones() -> None:
    found = [(0, 0, b"a"), (0, 1, b"b"), (LATEST_US, 0, b"c"), (LATEST_US, 2**64 - 1, b"d")]
    segment = sealed(found, mosaic=False)
    assert segment.times_us.tolist() == [0, 0, LATEST_US, LATEST_US]
    assert segment.arrivals.tolist() == [0, 1, 0, 2**64 - 1]
    assert segment.bodies(1, 3) == [b"b", b"c"]


def test_bodies_of_ten_megabytes() -> None:
    noise = np.random.default_rng(1).bytes(10_000_000)
    found = spaced(
        [b"small", noise, b"\x81\xa1a\xdb" + (8_000_000).to_bytes(4, "big") + b"x" * 8_000_000, b"\x81\xa1a\x01"]
    )
    parts = encode(found, mosaic=True, packing=Packing.CHEAP)
    assert Segment(parts.get).bodies(0, 4) == [body for _, _, body in found]
    assert sum(map(len, parts.values())) < 10_100_000


def test_a_hundred_thousand_names_take_no_columns() -> None:
    found = spaced(
        [msgspec.msgpack.encode({f"n{first + n}": n for n in range(1_000)}) for first in range(0, 100_000, 1_000)]
    )
    parts = encode(found, mosaic=True, packing=Packing.CHEAP)
    segment = Segment(parts.get)
    assert len(parts) < 100
    assert segment.bodies(0, 100) == [body for _, _, body in found]
    assert len(segment.names) == 100_000
    assert segment.tally.carrying({"n5", "n99999"}) == 2
    assert listed(segment.column("n1003")) == [(found[1][0], 0, 3.0)]


def test_what_is_no_segment_is_refused() -> None:
    for found in (
        [],
        [(T0, 1, b""), (T0, 1, b"")],
        [(T0 + 1, 1, b""), (T0, 2, b"")],
        spaced([b""] * (MOST_RECORDS + 1)),
    ):
        with pytest.raises(ValueError):
            encode(found, mosaic=False, packing=Packing.CHEAP)


def test_only_the_parts_that_are_needed_are_read() -> None:
    parts = encode(
        spaced([msgspec.msgpack.encode({"a": n / 100, "b": n, "c": "x"}) for n in range(500)]),
        mosaic=True,
        packing=Packing.CHEAP,
    )
    asked: list[bytes] = []

    def read(name: bytes) -> bytes | None:
        asked.append(name)
        return parts.get(name)

    segment = Segment(read)
    assert segment.tally.carrying({"a"}) == 500
    assert segment.names == ["a", "b", "c"]
    assert asked == [b""]
    summary = segment.summary("b")
    assert summary is not None
    assert (summary.sum, asked) == (sum(range(500)), [b"", b"vb"])
    assert segment.column("a").numbers[-1] == 4.99
    assert not {b"vc", b"b0"} & set(asked)
