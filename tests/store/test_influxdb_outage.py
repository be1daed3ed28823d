"""InfluxDB goes away and comes back: everything that was appended is there, in order, and nothing twice."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import astuple
from store_locations import InfluxLocation

from terrazzo.ports.store import Page, Record, StoreUnavailable
from terrazzo_adapters.influxdb.lines import LinePoint
from terrazzo_adapters.influxdb.spool import RecordSpool
from waiting import until

T0 = 1_700_000_000_000_000
NAMES = ["g/T1/r", "g/T2/r"]


def batch(number: int) -> list[Record]:
    """Ten records; every other batch repeats the times of the one before, so that ties span the outage."""
    start_us = T0 + number // 2 * 100
    return [Record(NAMES[n % 2], start_us + n // 4, b'{"n":%d}' % (number * 10 + n)) for n in range(10)]


async def assert_stored(store, batches: int) -> None:
    records = [record for number in range(batches) for record in batch(number)]
    newest_first = sorted(records, key=lambda record: record.time_us)[::-1]
    found = await store.page(NAMES, 0, T0 * 2, offset=0, limit=len(records) + 10)
    assert found == Page(newest_first, len(records))


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_an_outage_loses_and_doubles_nothing(own_influxd, tmp_path, end):
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool")
    store = await location.open()
    appended = 0

    async def append_until(stop: asyncio.Event) -> None:
        nonlocal appended
        while not stop.is_set():
            await store.append(batch(appended))
            appended += 1
            await asyncio.sleep(0)

    enough = asyncio.Event()
    appending = asyncio.create_task(append_until(enough), name="appends")
    await until(lambda: appended >= 20)
    await asyncio.to_thread(getattr(own_influxd, end))
    away_since = appended
    await until(lambda: appended >= away_since + 20)
    assert store.stats().spool_batches > 0
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.latest(NAMES, 1)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.check()
    await asyncio.to_thread(own_influxd.start)
    back_since = appended
    await until(lambda: appended >= back_since + 20)
    enough.set()
    await appending
    await until(lambda: not store.stats().spool_batches)
    await store.check()
    await assert_stored(store, appended)
    await store.close()


async def test_the_spool_survives_this_process(own_influxd, tmp_path):
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool")
    store = await location.open()
    await store.append(batch(0))
    await asyncio.to_thread(own_influxd.stop)
    await store.append(batch(1))
    await store.append(batch(2))
    await store.close()
    store = await location.open()
    assert store.stats().spool_batches == 2
    await store.append(batch(3))
    await asyncio.to_thread(own_influxd.start)
    await until(lambda: not store.stats().spool_batches)
    await assert_stored(store, 4)
    await store.close()


async def test_a_full_spool_makes_append_wait(own_influxd, tmp_path):
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool", spool_bytes=2000)
    store = await location.open()
    await asyncio.to_thread(own_influxd.stop)
    appended = 0

    async def append_many() -> None:
        nonlocal appended
        for number in range(30):
            await store.append(batch(number))
            appended += 1

    appending = asyncio.create_task(append_many(), name="appends")
    done, _ = await asyncio.wait([appending], timeout=1)
    assert not done
    assert 1 < appended < 30
    waits_at = appended
    await asyncio.to_thread(own_influxd.start)
    async with asyncio.timeout(60):
        await appending
    assert appended > waits_at
    await until(lambda: not store.stats().spool_batches)
    await assert_stored(store, 30)
    await store.close()


async def test_closing_ends_the_wait_and_keeps_the_spool(own_influxd, tmp_path):
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool", spool_bytes=1)
    store = await location.open()
    await asyncio.to_thread(own_influxd.stop)
    await store.append(batch(0))
    waiting = [asyncio.create_task(store.append(batch(n)), name="waits") for n in (1, 2)]
    done, _ = await asyncio.wait(waiting, timeout=0.3)
    assert not done
    await store.close()
    for task in waiting:
        with pytest.raises(StoreUnavailable, match="closed"):
            await task
    await asyncio.to_thread(own_influxd.start)
    store = await location.open()
    await until(lambda: not store.stats().spool_batches)
    await assert_stored(store, 1)
    await store.close()


async def test_a_batch_sent_twice_is_there_once(own_influxd, tmp_path):
    """The server took it and died before it answered, or we died before we noted it."""
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool")
    store = await location.open()
    await store.append(batch(0))
    points = [LinePoint(*astuple(record), 10**18 + n) for n, record in enumerate(batch(1))]
    await store._writer.delivery.prepare(points)
    await store._writer.delivery.deliver(points)
    await store.close()
    spool = RecordSpool(tmp_path / "spool")
    spool.open()
    spool.put(points)
    spool.close()
    store = await location.open()
    await until(lambda: not store.stats().spool_batches)
    found = await store.page(NAMES, 0, T0 * 2, offset=0, limit=99)
    assert found.total == 20
    await store.close()


async def test_a_server_that_never_was_there_delays_nothing(tmp_path):
    location = InfluxLocation("http://127.0.0.1:9", "db", tmp_path / "spool")
    store = await location.open()
    async with asyncio.timeout(5):
        await store.append(batch(0))
    assert store.stats().spool_batches == 1
    await store.close()


async def test_a_spool_in_use_is_said(tmp_path):
    location = InfluxLocation("http://127.0.0.1:9", "db", tmp_path / "spool")
    store = await location.open()
    with pytest.raises(StoreUnavailable, match="in use by another process"):
        await location.open()
    await store.close()
