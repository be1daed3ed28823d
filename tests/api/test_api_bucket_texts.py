"""Buckets and times that are told many at once say what each says for itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.api.kernel.long_answers.lists import encode_long
from terrazzo.api.kernel.paging import Paged
from terrazzo.api.operations.history import mosaic
from terrazzo.ports.store import Buckets, Value
from terrazzo.times import format_spaced, format_spaced_each

SECOND, QUARTER = 1_000_000, 900_000_000
ZONES: Sequence[tzinfo] = (
    UTC,
    *map(ZoneInfo, ("Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia")),
    timezone(timedelta(minutes=7)),
    timezone(timedelta(seconds=-17)),
)
AROUND = (0, -QUARTER, 1_761_440_400 * SECOND, 1_743_260_400 * SECOND, 1_759_588_200 * SECOND)  # clocks change

zones = st.sampled_from(ZONES)
times = st.one_of(
    st.integers(-(2**52), 2**52),
    st.builds(
        lambda at, quarters, edge: at + quarters * QUARTER + edge,
        st.sampled_from(AROUND),
        st.integers(-9, 9),
        st.sampled_from([-1, 0, 1, SECOND - 1]),
    ),
)
values: st.SearchStrategy[Value] = st.one_of(
    st.floats(),
    st.integers(-(2**63), 2**63),
    st.booleans(),
    st.none(),
    st.sampled_from([2.0**53, -(2.0**53), 2.0**54, 3.0]),
)
texts = st.sampled_from(["", "a,b", '"', "\\", "\n", "溫 度", "null", "]"])
columns = st.one_of(st.lists(values, min_size=24, max_size=24), st.lists(values | texts, min_size=24, max_size=24))
names = st.sampled_from(["A", "B,", '"', "溫 度", "time", "}", "x" * 900])


@given(zone=zones, found=st.lists(times, max_size=40))
def test_times_in_any_order(zone: tzinfo, found: list[int]) -> None:
    told = [
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each)).astimezone(zone).isoformat(" ")[:19]
        for each in found
    ]
    assert format_spaced_each(found, zone) == told
    assert [format_spaced(each, zone) for each in found] == told


@given(zone=zones, start_us=times, found=st.dictionaries(names, columns, min_size=1, max_size=4))
def test_buckets_together_are_those_one_by_one(zone: tzinfo, start_us: int, found: dict[str, list[Value]]) -> None:
    starts_us = [start_us + number * 60 * SECOND for number in range(24)]
    buckets = Buckets(starts_us, found, 24)
    data = mosaic._present_buckets(buckets, list(found), zone)
    one_by_one = json.loads(msgspec.json.encode(list(data)))
    page = asyncio.run(encode_long(Paged(data, 1, 24, 1, 24), most_bytes=2**30, grow=lambda _: None))
    together = json.loads(msgspec.json.encode(page.data))
    assert repr(together) == repr(one_by_one), "numbers of the same kinds, names in the same order"
    assert len(together) == 24
