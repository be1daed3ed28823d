"""Random lives of a store, compared with a plain SQLite table after each step."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_oracle import Oracle

import open_stores
from length import rounds
from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb import RocksStore

T0 = 1_700_000_000_000_000
HOUR = 3_600_000_000
NAMES = ["g/T1/r", "g/T1/a", "g/T2/r", "m/17", "x/T1"]

# Few times, around the edges of hours, so that records collide and ranges cut where it hurts.
times = st.builds(
    lambda hour, edge: (T0 // HOUR + hour) * HOUR + edge,
    st.integers(0, 4),
    st.sampled_from([0, 1, 2, 200_000, 250_000, 250_001, 400_000, HOUR // 2, HOUR - 2, HOUR - 1]),
)
values = st.one_of(
    st.integers(-5, 5), st.floats(-1, 1, allow_subnormal=False), st.text(max_size=3), st.booleans(), st.none()
)
bodies = st.builds(
    lambda encode, points: encode(points),
    st.sampled_from([msgspec.json.encode, msgspec.msgpack.encode]),
    st.dictionaries(st.sampled_from(["P", "Q", "body", "time"]), values, max_size=3),
)
records = st.builds(Record, st.sampled_from(NAMES), times, bodies)
some_names = st.lists(st.sampled_from([*NAMES, "g/none/r"]), min_size=1, unique=True)
steps = st.one_of(
    st.tuples(st.just("append"), st.lists(records, min_size=1, max_size=8)),
    st.tuples(st.just("append"), st.lists(records, min_size=1, max_size=8)),
    st.tuples(st.just("page"), some_names, times, times, st.integers(0, 12), st.integers(1, 12)),
    st.tuples(st.just("latest"), some_names, st.integers(1, 12)),
    st.tuples(st.just("first_after"), some_names, times),
    st.tuples(st.just("series"), st.sampled_from(["", "g/", "g/T1/", "g/T", "m/1", "y"])),
    st.tuples(st.just("drop_before"), times),
    st.tuples(st.just("seal"), st.sampled_from([1, 2, 4, 9]), st.sampled_from([1, 2, 5])),
    st.tuples(st.just("restart")),
)


# Of what is sealed at once each edge is met here, too, as sealing is a step of a life.
@pytest.mark.parametrize("new_location", ["rocksdb", "influxdb"], indirect=True)
@settings(max_examples=rounds(75, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=st.lists(steps, max_size=25))
def test_a_random_life_answers_as_sqlite_does(new_location, life):
    asyncio.run(live(new_location(), life))


async def live(location, life) -> None:
    oracle = Oracle()
    store = await location.open()
    try:
        for action, *arguments in life:
            if action == "restart":
                await store.close()
                store = await location.open()
                continue
            if action == "seal":
                if isinstance(store, RocksStore):
                    await open_stores.seal(store, block=arguments[0], least=arguments[1])
                continue
            await step(store, oracle, action, arguments)
        for name in NAMES:
            await step(store, oracle, "latest", [[name], 1000])
        await step(store, oracle, "page", [NAMES, 0, T0 + 99 * HOUR, 0, 1000])
        await step(store, oracle, "series", [""])
    finally:
        await store.close()


async def step(store, oracle, action, arguments) -> None:
    keywords = {}
    if action == "page":
        *arguments, keywords["offset"], keywords["limit"] = arguments
    expected = getattr(oracle, action)(*arguments, **keywords)
    assert await getattr(store, action)(*arguments, **keywords) == expected
