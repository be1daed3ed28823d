"""Columns follow the records: made when an hour is quiet, made anew after late records, restarts and retention."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from mosaic_child import BUCKET_US, SERIES, record

from loaded_process import LoadedChild
from open_stores import make_columns, open_rocks
from terrazzo.ports.store import MOST_BUCKETS, Record, TooManyBuckets
from terrazzo_adapters.rocksdb import RocksStore
from waiting import until

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000 // HOUR * HOUR
EVER = (0, T0 + 99 * HOUR)


def mosaic(time_us: int, series: str = "m/1", **values: object) -> Record:
    return Record(series, time_us, msgspec.msgpack.encode(values))


async def means(store, *, bucket_us: int = HOUR) -> list[tuple[int, object]]:
    found = await store.resample("m/1", ["T"], *EVER, bucket_us=bucket_us, origin_us=T0)
    numbers = [(start_us - T0) // bucket_us for start_us in found.starts_us]
    return list(zip(numbers, found.columns["T"], strict=True))


def made(store: RocksStore) -> int:
    """How many hours have columns."""
    return keys_with(store, b"k")


def marked(store: RocksStore) -> int:
    """How many hours wait for theirs."""
    return keys_with(store, b"d")


def keys_with(store: RocksStore, letter: bytes) -> int:
    return store._engine.database.read(lambda view: sum(key[:1] == letter for key, _ in view.items()))


async def test_late_records_are_seen_at_once_and_go_into_the_columns_later(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0, T=1), mosaic(T0 + HOUR, T=5)])
    await make_columns(store)
    assert (made(store), marked(store)) == (2, 0)
    await store.append([mosaic(T0 + 1, T=3)])
    assert marked(store) == 1
    assert await means(store) == [(1, 5.0), (0, 2.0)]
    await make_columns(store)
    assert marked(store) == 0
    assert await means(store) == [(1, 5.0), (0, 2.0)]
    await store.close()


async def test_columns_answer_without_a_look_at_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0 + n * HOUR // 10, T=n, S="x") for n in range(100)])
    await make_columns(store)
    monkeypatch.setattr("terrazzo_adapters.rocksdb.charts.parse_points", refuse)
    monkeypatch.setattr("terrazzo_adapters.rocksdb.merge.parse_points", refuse)
    assert await means(store, bucket_us=5 * HOUR) == [(1, 74.5), (0, 24.5)]
    page = await store.page(["m/1"], T0, T0 + 10 * HOUR - 1, offset=200, limit=1, keys=["S"])
    assert page.total == 100
    await store.close()


def refuse(body: bytes) -> None:
    raise AssertionError("a record was decoded")


async def test_retention_takes_columns_with_it(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0, T=1), mosaic(T0 + 2, T=3), mosaic(T0 + HOUR, T=5), mosaic(T0, "m/2", T=9)])
    await make_columns(store)
    await store.drop_before(T0 + 1)
    assert (made(store), marked(store)) == (1, 1)
    await store.append([mosaic(T0 + 3, T=7)])  # as many records as when the columns were made
    assert await means(store) == [(1, 5.0), (0, 5.0)]
    await make_columns(store)
    assert await means(store) == [(1, 5.0), (0, 5.0)]
    await store.drop_before(T0 + 99 * HOUR)
    assert (made(store), marked(store)) == (0, 0)
    await store.close()


async def test_hours_that_are_over_are_made_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_S", "_QUIET_S"):
        monkeypatch.setattr(f"terrazzo_adapters.rocksdb.store.{name}", 0.01)
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0, T=1), mosaic(2**62, T=2), Record("g/t1/r", T0, b'{"T":1}')])
    await until(lambda: made(store) == 1, "the hour that is over has columns")
    assert marked(store) == 1, "the other one isn't over"
    await store.close()
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0 + 1, T=1)])
    await store.close()
    store = await open_rocks(tmp_path)
    await until(lambda: marked(store) == 1, "marks are found after a restart")
    await store.close()


async def test_too_many_buckets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_BUCKETS == 1_000_000
    monkeypatch.setattr("terrazzo_adapters.columns.resample.MOST_BUCKETS", 10)
    monkeypatch.setattr("terrazzo_adapters.columns.extremes.MOST_BUCKETS", 10)
    store = await open_rocks(tmp_path)
    await store.append([mosaic(T0 + n * HOUR, T=n) for n in range(60)])
    with pytest.raises(TooManyBuckets, match="choose longer ones"):
        await means(store)
    with pytest.raises(TooManyBuckets):
        await store.extremes("m/1", ["T"], *EVER, bucket_us=HOUR)
    assert len(await means(store, bucket_us=8 * HOUR)) == 8
    await store.close()


async def test_columns_are_right_after_kill_9_again_and_again(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(4):
        acknowledged = await write_and_be_killed(tmp_path, acknowledged + 8)
        store = await open_rocks(tmp_path)
        for _ in range(2):  # as it was found, and with all columns made
            page = await store.page([SERIES], 0, 2**62, offset=0, limit=1)
            assert page.total >= acknowledged * 20
            expected = [record(number) for number in range(page.total)]
            await check(store, expected)
            await make_columns(store)
        acknowledged = page.total // 20
        await store.close()


async def check(store: RocksStore, expected: list[Record]) -> None:
    sums: dict[int, float] = {}
    for each in expected:
        start_us = each.time_us // BUCKET_US * BUCKET_US
        sums[start_us] = sums.get(start_us, 0) + msgspec.msgpack.decode(each.body)["T"]
    found = await store.resample(SERIES, ["T"], 0, 2**62, bucket_us=BUCKET_US, fn="sum")
    assert dict(zip(found.starts_us, found.columns["T"], strict=True)) == sums
    rare = await store.page([SERIES], 0, 2**62, offset=0, limit=1, keys=["RARE"])
    assert rare.total == sum(b"RARE" in each.body for each in expected)


async def write_and_be_killed(folder: Path, until_batch: int) -> int:
    child = await LoadedChild.start(Path(__file__).with_name("mosaic_child.py"), str(folder))
    acknowledged = 0
    try:
        async with asyncio.timeout(60):
            while acknowledged < until_batch:
                acknowledged = int(await child.stdout.readline())
    finally:
        child.kill()
        await child.stdout.read()
        await child.wait()
    return acknowledged


async def test_odd_bodies_and_names_make_no_difference(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    bodies = [
        msgspec.msgpack.encode({"T": 1, 'q"': 2, "o": {"p": 3}}),
        msgspec.msgpack.encode({"T": float("nan"), 'q"': [4]}),
        msgspec.msgpack.encode({"T": {"nested": 1}, "S": "x", "T2": float("inf")}),
        b'{"T": 3}',
        b"\xc1 nothing that can be read",
        msgspec.msgpack.encode({"T": True}),
    ]
    await store.append([Record("m/1", T0 + n, body) for n, body in enumerate(bodies)])
    keys = ["T", 'q"', "S", "T2"]
    before = [await store.resample("m/1", keys, *EVER, bucket_us=HOUR, fn=fn) for fn in ("sum", "last")]
    assert before[0].columns == {"T": [5.0], 'q"': [2.0], "S": [None], "T2": [None]}
    assert before[1].columns == {"T": [True], 'q"': [2.0], "S": ["x"], "T2": [None]}
    await make_columns(store)
    assert [await store.resample("m/1", keys, *EVER, bucket_us=HOUR, fn=fn) for fn in ("sum", "last")] == before
    assert (await store.resample("m/1", ["T"], *EVER, bucket_us=HOUR, fn="sum")).columns == {"T": [5.0]}
    await store.close()
