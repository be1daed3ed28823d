"""Records in the place of others: all of a range or nothing, and only of what was seen."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import open_stores
from terrazzo.ports.store import Record, Seen
from terrazzo_adapters.rocksdb import RocksStore

T0 = 1_700_000_000_000_000 // 3_600_000_000 * 3_600_000_000
MINUTE = 60_000_000
END = 2**62


def mosaic(minute: int, value: float, series: str = "m/17", name: str = "A") -> Record:
    return Record(series, T0 + minute * MINUTE, msgspec.msgpack.encode({name: value}))


def seen(count: int, series: str = "g/T1/r") -> Seen:
    return Seen([series], count)


async def everything(store, series: str = "m/17") -> list[Record]:
    return [each for piece in [p async for p in store.scan([series], 0, END)] for each in piece]


async def make_columns(store) -> None:
    """What RocksDB does in the background."""
    if isinstance(store, RocksStore):
        await open_stores.make_columns(store)


async def test_both_stores_replace(store):
    assert store.is_replaceable
    await store.append([mosaic(1, 1)])
    assert await store.replace("m/17", T0, END, [], given=seen(0))
    assert await everything(store) == []
    assert await store.names("m/17", 0, END) == []


async def test_exactly_the_range_of_the_series_is_replaced(store):
    others = [mosaic(2, 9, "m/18"), mosaic(3, 9, "g/T1/r")]
    await store.append([mosaic(minute, minute) for minute in (1, 2, 2, 3, 200)] + others)
    new = [mosaic(2, 20), mosaic(2, 21), mosaic(70, 22)]
    assert await store.replace("m/17", T0 + 2 * MINUTE, T0 + 100 * MINUTE, new, given=seen(1))
    assert await everything(store) == [mosaic(1, 1), *new, mosaic(200, 200)]
    assert await everything(store, "m/18") == others[:1]
    assert await store.latest(["m/17"], 1) == [mosaic(200, 200)]


async def test_nothing_changes_where_more_came_than_was_seen(store):
    await store.append([mosaic(1, 1), mosaic(1, 1, "g/T1/r")])
    assert not await store.replace("m/17", 0, END, [mosaic(2, 2)], given=seen(0))
    assert await everything(store) == [mosaic(1, 1)]
    assert await store.replace("m/17", 0, T0, [], given=seen(0))  # of the range only
    assert await store.replace("m/17", 0, END, [mosaic(2, 2)], given=seen(1))
    assert await everything(store) == [mosaic(2, 2)]


@pytest.mark.parametrize("wrong", [mosaic(1, 1, "m/18"), mosaic(9, 1)])
async def test_a_record_of_elsewhere_is_refused(store, wrong):
    await store.append([mosaic(1, 1)])
    with pytest.raises(ValueError, match=r"records\[1\]: not of m/17"):
        await store.replace("m/17", T0, T0 + 5 * MINUTE, [mosaic(2, 2), wrong], given=seen(0))
    assert await everything(store) == [mosaic(1, 1)]


async def test_columns_that_charts_were_made_of_go_with_their_records(store):
    await store.append([mosaic(1, 1), mosaic(2, 2)])
    await make_columns(store)
    new = [mosaic(1, 10, name="B"), mosaic(2, 20, name="B")]  # as many as before
    assert await store.replace("m/17", T0, T0 + 5 * MINUTE, new, given=seen(0))
    for _ in range(2):
        assert await store.names("m/17", 0, END) == ["B"]
        buckets = await store.resample("m/17", ["A", "B"], T0, T0 + 60 * MINUTE, bucket_us=MINUTE)
        assert buckets.columns["B"] == [20, 10]
        await make_columns(store)


async def test_it_is_there_after_a_restart(location):
    store = await location.open()
    await store.append([mosaic(1, 1), mosaic(90, 2)])
    assert await store.replace("m/17", 0, END, [mosaic(5, 5)], given=seen(0))
    assert await store.replace("m/99", 0, END, [], given=seen(0))
    await store.close()
    store = await location.open()
    assert await everything(store) == [mosaic(5, 5)]
    assert await store.replace("m/17", 0, END, [], given=seen(0))
    assert await store.series("m/") == []
    await store.append([mosaic(6, 6)])
    assert (await store.page(["m/17"], 0, END, offset=0, limit=9)).total == 1
    await store.close()


async def test_what_comes_afterwards_stands_beside_what_replaced(store):
    """Records of the same microseconds, in the range and behind it."""
    await store.append([mosaic(minute, minute) for minute in (1, 2, 2, 3)])
    new = [mosaic(2, 20), mosaic(2, 21), mosaic(4, 40)]
    assert await store.replace("m/17", T0, T0 + 10 * MINUTE, new, given=seen(0))
    later = [mosaic(2, 22), mosaic(4, 41), mosaic(1, 11), mosaic(20, 200)]
    await store.append(later)
    wanted = [later[2], *new[:2], later[0], new[2], later[1], later[3]]
    assert await everything(store) == wanted
    assert await store.replace("m/17", T0, T0 + 10 * MINUTE, wanted[:3], given=seen(0))
    assert await everything(store) == [*wanted[:3], later[3]]


minutes = st.integers(0, 200)
steps = st.lists(st.tuples(minutes, minutes, st.lists(minutes, max_size=8), st.booleans()), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.lists(minutes, max_size=20), steps=steps)
async def test_counts_and_records_stay_those_of_a_list(new_location, first, steps):
    store = await new_location().open()
    kept = [mosaic(minute, number) for number, minute in enumerate(first)]
    await store.append(kept)
    for number, (one, other, new, with_columns) in enumerate(steps):
        low, high = sorted((one, other))
        records = [mosaic(low + minute % (high - low + 1), 1000 + number) for minute in new]
        assert await store.replace("m/17", T0 + low * MINUTE, T0 + high * MINUTE, records, given=seen(0))
        outside = [each for each in kept if not low <= (each.time_us - T0) // MINUTE <= high]
        kept = outside + records
        if with_columns:
            await make_columns(store)
        elif isinstance(store, RocksStore):
            await open_stores.seal(store, block=number + 1)
        asked = T0 + low // 2 * MINUTE, T0 + high * MINUTE
        wanted = [each for each in kept if asked[0] <= each.time_us <= asked[1]]
        assert (await store.page(["m/17"], *asked, offset=0, limit=0)).total == len(wanted)
        assert (await store.page(["m/17"], *asked, offset=0, limit=0, keys=["A"])).total == len(wanted)
        assert sorted(await everything(store)) == sorted(kept)
    await store.close()
