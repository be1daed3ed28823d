"""Random sparse, late and simultaneous mosaic records: filtered reads, buckets and extremes beside a plain oracle."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mosaic_oracle import MosaicOracle, as_points, curves_as_points, points, same_buckets, same_points

import open_stores
from length import rounds
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.columns import decoded
from terrazzo_adapters.rocksdb import RocksStore, batch, counts

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
NAMES = ["m/17", "m/1"]
KEYS = ["A", "B", "FAN|text", "time", "溫 度"]

times = st.builds(
    lambda hour, edge: T0 + hour * HOUR + edge,
    st.integers(0, 3),
    st.sampled_from([0, 1, 250_000, 250_001, 999_999, 60_000_000, HOUR // 2, HOUR - 2, HOUR - 1]),
)
values = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(-100, 100, allow_subnormal=False, width=32),
    st.floats(-1e9, 1e9, allow_subnormal=False),
    st.sampled_from(["", "on", "off", "x" * 1500, "\n", "\0", "ein\nzwei"]),
    st.booleans(),
    st.none(),
)
bodies = st.builds(msgspec.msgpack.encode, st.dictionaries(st.sampled_from(KEYS), values, max_size=3))
records = st.builds(Record, st.sampled_from(NAMES), times, bodies)
batches = st.lists(records, min_size=1, max_size=10)
keys = st.lists(st.sampled_from([*KEYS, "NONE"]), min_size=1, max_size=3, unique=True)
name = st.sampled_from([*NAMES, "m/0"])
buckets = st.sampled_from([1, 1_000_000, 60_000_000, HOUR, 7_000_000_000, 2 * HOUR, 24 * HOUR])
origins = st.sampled_from([0, 1, -HOUR // 2, T0, T0 + HOUR])
questions = st.one_of(
    st.tuples(st.just("latest"), name, keys, st.integers(1, 9)),
    st.tuples(st.just("latest_each"), name, keys, times),
    st.tuples(st.just("first_after"), name, keys, times),
    st.tuples(st.just("page"), name, keys, times, times, st.integers(0, 9), st.integers(1, 9)),
    st.tuples(st.just("scan"), name, st.one_of(st.just([]), keys), times, times),
    st.tuples(st.just("names"), name, times, times),
    st.tuples(
        st.just("resample"),
        name,
        keys,
        times,
        times,
        buckets,
        st.sampled_from([None, "mean", "min", "max", "sum", "last"]),
        origins,
        st.integers(0, 4),
        st.integers(1, 9),
    ),
    st.tuples(st.just("extremes"), name, keys, times, times, buckets, origins),
    st.tuples(st.just("columns"), name, keys, times, times),
)
steps = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("append"), batches),
    questions,
    questions,
    questions,
    st.tuples(st.just("make_columns")),
    st.tuples(
        st.just("seal"),
        st.sampled_from([1, 2, 4, 9]),
        st.sampled_from([1, 2, 5]),
        st.one_of(st.just(2**62), times),
        st.sampled_from([1, 3]),
    ),
    st.tuples(st.just("seal"), st.just(4), st.just(1), st.just(2**62), st.just(1)),
    st.tuples(st.just("drop_before"), times),
    st.tuples(st.just("replace"), name, times, times, batches),
    st.tuples(st.just("restart")),
)


# Of what is sealed at once each edge is met here, too, as sealing is a step of a life.
@pytest.mark.parametrize("new_location", ["rocksdb", "influxdb"], indirect=True)
@settings(max_examples=rounds(30, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=st.lists(steps, max_size=20))
def test_a_random_life_answers_as_sqlite_does(new_location, life):
    asyncio.run(live(new_location(), life))


@pytest.mark.parametrize("new_location", ["rocksdb"], indirect=True)
@settings(max_examples=rounds(60, 800), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=st.lists(steps, max_size=20))
def test_so_it_does_of_what_is_in_memory_and_decoded_together(new_location, life):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "MANY", 1)
        patch.setattr(counts, "_FEW", 1)
        patch.setattr(decoded, "_LEAST_WALKED", 1)
        asyncio.run(live(new_location(), life))


async def live(location, life) -> None:
    oracle = MosaicOracle()
    store = await location.open()
    try:
        for action, *arguments in life:
            if action == "restart":
                await store.close()
                store = await location.open()
            elif action == "make_columns":
                if isinstance(store, RocksStore):
                    await open_stores.make_columns(store)
            elif action == "seal":
                if isinstance(store, RocksStore):
                    block, least, cutoff_us, points = arguments
                    await open_stores.seal(store, block=block, least=least, cutoff_us=cutoff_us, hour_points=points)
            elif action in ("append", "drop_before"):
                getattr(oracle, action)(*arguments)
                await getattr(store, action)(*arguments)
            elif action == "replace":
                await replace(store, oracle, *arguments)
            else:
                await QUESTIONS[action](store, oracle, *arguments)
    finally:
        await store.close()


async def replace(store, oracle, name, start_us, end_us, batch) -> None:
    start_us, end_us = sorted((start_us, end_us))
    new = [Record(name, each.time_us, each.body) for each in batch if start_us <= each.time_us <= end_us]
    given = Seen([name], oracle.page([name], start_us, end_us, offset=0, limit=0).total)
    assert await store.replace(name, start_us, end_us, new, given=given)
    oracle.replace(name, start_us, end_us, new)


async def ask_latest(store, oracle, name, keys, limit) -> None:
    assert await store.latest([name], limit, keys=keys) == oracle.latest_with([name], limit, keys)


async def ask_latest_each(store, oracle, name, keys, until_us) -> None:
    assert await store.latest_each(name, keys) == oracle.latest_each(name, keys)
    before = await store.latest_each(name, keys, until_us=until_us)
    assert before == oracle.latest_each(name, keys, until_us)


async def ask_first_after(store, oracle, name, keys, time_us) -> None:
    assert await store.first_after([name], time_us, keys=keys) == oracle.first_after_with([name], time_us, keys)


async def ask_page(store, oracle, name, keys, start_us, end_us, offset, limit) -> None:
    found = await store.page([name], start_us, end_us, offset=offset, limit=limit, keys=keys)
    assert found == oracle.page_with([name], start_us, end_us, keys, offset, limit)
    parts = await store.page([name], start_us, end_us, offset=offset, limit=limit, keys=keys, whole=False)
    assert parts.total == found.total
    assert list(map(partial(asked_for, keys), parts.records)) == list(map(partial(asked_for, keys), found.records))


def asked_for(keys, record) -> tuple[str, int, object]:
    """A record and what it says about some names, if there are any."""
    told = points(record)
    return record.series, record.time_us, repr([told.get(key) for key in keys]) if keys else record.body


async def ask_scan(store, oracle, name, keys, start_us, end_us) -> None:
    pieces = [piece async for piece in store.scan([name, "m/1"], start_us, end_us, keys=keys)]
    assert all(pieces)
    assert [record for piece in pieces for record in piece] == oracle.scan([name, "m/1"], start_us, end_us, keys)


async def ask_names(store, oracle, name, start_us, end_us) -> None:
    assert await store.names(name, start_us, end_us) == oracle.names(name, start_us, end_us)


async def ask_resample(store, oracle, name, keys, start_us, end_us, bucket_us, fn, origin_us, offset, limit) -> None:
    how = {"fn": fn, "origin_us": origin_us, "offset": offset, "limit": limit, "bucket_us": bucket_us}
    found = await store.resample(name, keys, start_us, end_us, **how)
    expected = oracle.resample(name, keys, start_us, end_us, **how)
    assert same_buckets(found, expected), (found, expected)


async def ask_extremes(store, oracle, name, keys, start_us, end_us, bucket_us, origin_us) -> None:
    found = await store.extremes(name, keys, start_us, end_us, bucket_us=bucket_us, origin_us=origin_us)
    assert curves_as_points(found) == oracle.extremes(name, keys, start_us, end_us, bucket_us, origin_us)


async def ask_columns(store, oracle, name, keys, start_us, end_us) -> None:
    found = {}
    async for piece in store.columns(name, keys, start_us, end_us):
        assert piece
        for key, column in piece.items():
            assert len(column.times_us) == len(column.kinds) == len(column.numbers) > 0
            found.setdefault(key, []).extend(as_points(column))
    assert same_points(found, oracle.columns(name, keys, start_us, end_us))


QUESTIONS = {
    "columns": ask_columns,
    "latest": ask_latest,
    "latest_each": ask_latest_each,
    "first_after": ask_first_after,
    "page": ask_page,
    "scan": ask_scan,
    "names": ask_names,
    "resample": ask_resample,
    "extremes": ask_extremes,
}
