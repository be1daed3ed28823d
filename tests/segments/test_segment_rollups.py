"""Rollups by hour: exact where there is one, and none where it would not say all or is not worth its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_bodies import T0, in_order, spaced
from test_segment import check_points, sealed

from terrazzo_adapters.columns.rollup import HOUR_US, in_one_bucket, outline
from terrazzo_adapters.segments import Packing, Segment, rollups

_numbers = st.one_of(
    st.integers(-100, 100),
    st.integers(-10_000, 10_000).map(lambda number: number / 100),
    st.floats(width=64),
    st.sampled_from([-0.0, 0.0, 0, float("inf"), float("nan"), 1e308, -1e308, 5e-324, 2**63, -(2**63)]),
)
_values = st.one_of(
    st.lists(_numbers, min_size=1, max_size=60),
    st.lists(st.one_of(_numbers, st.none()), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=1, max_size=30),
    st.lists(st.one_of(_numbers, st.booleans(), st.text(max_size=2)), min_size=1, max_size=30),
)
_gaps_us = st.sampled_from([1, 1, 1_000_000, 60_000_000, 999_999_937, HOUR_US - 1, HOUR_US, 5 * HOUR_US])


@pytest.fixture(autouse=True, scope="module")
def _every_hour_is_worth_it() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollups, "LEAST_POINTS", 1)
        yield


@given(values=_values, gaps_us=st.lists(st.one_of(_gaps_us, st.just(0)), min_size=1, max_size=9), data=st.data())
@settings(max_examples=150, deadline=None)
def test_an_hour_says_what_its_points_do(values: list[object], gaps_us: list[int], data: st.DataObject) -> None:
    times_us = (T0 + np.cumsum(np.resize(gaps_us, len(values)))).tolist()
    bodies = [msgspec.msgpack.encode({"a": value, "n": place}) for place, value in enumerate(values)]
    found = in_order({(time_us, place): bodies[place] for place, time_us in enumerate(times_us)})
    segment = sealed(found, packing=data.draw(st.sampled_from(Packing)))
    check_points(segment, found)
    column = segment.column("a")
    is_plain = len(column.numbers) and len(set(column.kinds.tolist())) == 1 and column.kinds[0] < 2
    with np.errstate(over="ignore"):
        hours = column.times_us // HOUR_US
        is_finite = all(np.isfinite(np.abs(column.numbers[hours == hour]).sum()) for hour in set(hours.tolist()))
    is_single = len(set(column.times_us.tolist())) == len(column.times_us)
    if segment.rollup("a") is None:
        assert not (is_plain and is_single and is_finite)
    else:
        assert is_plain
        assert is_single


def of(values: Sequence[object], period_us: int = 60_000_000) -> Segment:
    return sealed(spaced([msgspec.msgpack.encode({"a": each}) for each in values], period_us=period_us))


def test_sums_of_decimals_are_what_their_digits_say() -> None:
    rollup = of([0.1, 0.2, 0.3] * 20).rollup("a")
    assert rollup is not None
    assert float(rollup.sums.sum()) == 12.0


def test_the_first_lowest_highest_and_last_point_come_once_each() -> None:
    rollup = of([1, 5, -2, 5, 1], period_us=1).rollup("a")
    assert rollup is not None
    found = outline(rollup)
    assert found.numbers.tolist() == [1.0, 5.0, -2.0, 1.0]
    assert found.times_us.tolist() == [T0, T0 + 1, T0 + 2, T0 + 4]


def test_a_sparse_name_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "LEAST_POINTS", 50)
    assert of(range(200), 65_000_000).rollup("a") is not None
    assert of(range(200), 90_000_000).rollup("a") is None
    assert of(range(200)).rollup("absent") is None


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_of_hours_say_what_hours_do(parts: int) -> None:
    segment = of([place * 37 % 101 / 100 for place in range(200)], 50_000_000)
    hours, shorter = segment.rollup("a"), segment.made_rollup("a", HOUR_US // parts)
    assert hours is not None
    assert shorter is not None
    assert len(shorter.starts_us) > (parts - 1) * len(hours.starts_us)
    assert not (shorter.starts_us % (HOUR_US // parts)).any()
    assert shorter.counts.sum() == hours.counts.sum() == 200
    assert shorter.values[1].min() == hours.values[1].min()
    assert shorter.sums.sum() == pytest.approx(hours.sums.sum(), rel=1e-12)
    assert segment.made_rollup("absent", HOUR_US // parts) is None


@pytest.mark.parametrize(
    ("bucket_us", "origin_us", "divided"),
    [
        (HOUR_US, 0, []),
        (24 * HOUR_US, -7 * HOUR_US, []),
        (HOUR_US // 2, 0, [12, 13, 14, 15, 16, 17, 18, 19, 20]),
        (24 * HOUR_US, HOUR_US // 2, []),
        (24 * HOUR_US, 20 * HOUR_US + 1, [20]),
        (24 * HOUR_US, 12 * HOUR_US + 1, [12]),
        (24 * HOUR_US, 13 * HOUR_US, []),
        (6 * HOUR_US, HOUR_US // 2, [12, 18]),
        (7 * HOUR_US + 1, 0, [14]),
    ],
)
def test_which_hours_buckets_divide(bucket_us: int, origin_us: int, divided: list[int]) -> None:
    hours = np.arange(12, 21)
    kept = in_one_bucket(hours * HOUR_US, HOUR_US, bucket_us=bucket_us, origin_us=origin_us)
    assert hours[~kept].tolist() == divided
