"""What InfluxDB does with points behind one's back, each shown against a real server not to hurt."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest
from store_locations import InfluxLocation

from influx_server import InfluxServer
from terrazzo.ports.store import Page, Record, RecordsRefused, StoreUnavailable
from waiting import close, until

T0 = 1_700_000_000_000_000
NAME = "g/T1/r"


def record(time_us: int, points: object, series: str = NAME) -> Record:
    return Record(series, time_us, json.dumps(points).encode())


@pytest.fixture
async def influx_location(new_influx_location) -> InfluxLocation:
    return new_influx_location()


@pytest.fixture
async def influx(influx_location):
    store = await influx_location.open()
    yield store
    await store.close()


async def test_a_point_may_change_its_type(influx, influx_location, influxd):
    batch = [record(T0 + n, {"P": value}) for n, value in enumerate([1, "on", 1.5, True, None, "off", 2, False])]
    for each in batch:
        await influx.append([each])
    await influx.append([record(T0 + 100, {"P": "x"}), record(T0 + 101, {"P": 3})])
    assert await influx.latest([NAME], 99) == [
        record(T0 + 101, {"P": 3}),
        record(T0 + 100, {"P": "x"}),
        *batch[::-1],
    ]
    [numbers] = influxd.query('SELECT "P" FROM grid', influx_location.database)
    assert [value for _, value in numbers["values"]] == [1.0, 1.5, 2.0, 3.0]
    [texts] = influxd.query('SELECT "P|text", "P|flag" FROM grid', influx_location.database)
    assert [row[1:] for row in texts["values"]] == [
        ["on", None],
        [None, True],
        ["off", None],
        [None, False],
        ["x", None],
    ]


async def test_integers_and_floats_of_a_point_read_back_as_they_were(influx):
    batch = [
        Record(NAME, T0 + n, body) for n, body in enumerate([b'{"P":1}', b'{"P":1.5}', b'{"P":1.0}', b'{"P":1e2}'])
    ]
    await influx.append(batch[:1])
    await influx.append(batch[1:])
    assert await influx.latest([NAME], 9) == batch[::-1]


async def test_a_field_that_somebody_else_gave_another_type_costs_the_chart_not_the_record(
    influx, influx_location, influxd
):
    await influx.check()
    influxd.write(influx_location.database, f'grid,terminal=other P="text",Q=1 {T0 * 1000}')
    batch = [record(T0, {"P": 1, "Q": 2, "R": 3}), record(T0 + 1, {"P": 4})]
    await influx.append(batch)
    assert await influx.page([NAME], T0, T0 + 1, offset=0, limit=9) == Page(batch[::-1], 2)
    [rows] = influxd.query('SELECT "Q", "R" FROM grid WHERE terminal = \'T1\'', influx_location.database)
    assert [row[1:] for row in rows["values"]] == [[2, 3]]


async def test_a_taken_measurement_is_an_error_that_names_the_records(influx, influx_location, influxd):
    await influx.check()
    influxd.write(influx_location.database, f"grid,terminal=other body=1 {T0 * 1000}")
    with pytest.raises(RecordsRefused, match="field type conflict") as refusal:
        await influx.append([record(T0, {"P": 1}), record(T0, {"P": 2}, "m/1")])
    assert refusal.value.records == [record(T0, {"P": 1})]
    assert await influx.latest(["m/1"], 9) == [record(T0, {"P": 2}, "m/1")]


async def test_equal_series_and_time_overwrite_nothing(influx_location):
    """Across batches, late ones too, and across restarts."""
    expected = []
    for _ in range(3):
        store = await influx_location.open()
        for time_us in (T0, T0 + 5, T0, T0 + 10**9):
            batch = [record(time_us, {"n": len(expected) + n}) for n in range(3)]
            await store.append(batch)
            expected += batch
        await store.close()
    store = await influx_location.open()
    expected.sort(key=lambda each: each.time_us)  # stable: by time, then by arrival
    assert await store.latest([NAME], 99) == expected[::-1]
    await store.close()


async def test_two_processes_that_write_the_same_series_overwrite_nothing(influx_location):
    stores = []
    for writer in ("a", "b"):
        location = InfluxLocation(influx_location.url, influx_location.database, influx_location.spool / writer)
        stores.append(await location.open(writer=writer))
    for number in range(4):
        await stores[number % 2].append([record(T0, {"n": number})])
    assert (await stores[0].page([NAME], T0, T0, offset=0, limit=9)).total == 4
    for store in stores:
        await store.close()


async def test_microseconds_are_kept(influx):
    batch = [record(1_700_000_000_123_456 + n, {"n": n}) for n in range(3)]
    await influx.append(batch)
    assert await influx.first_after([NAME], 1_700_000_000_123_456) == batch[1]


async def test_a_record_older_than_the_retention_policy_is_a_clear_error(influx, influx_location, influxd):
    await influx.check()
    influxd.query(f'CREATE RETENTION POLICY "hour" ON "{influx_location.database}" DURATION 1h REPLICATION 1 DEFAULT')
    now_us = time.time_ns() // 1000
    batch = [record(now_us + n, {"n": n}) for n in range(3)]
    old = [record(T0, {"n": 7}), record(T0 + 1, {"n": 8})]
    with pytest.raises(RecordsRefused, match=r"2 of the records: .*beyond retention policy") as refusal:
        await influx.append([batch[0], old[0], batch[1], old[1], batch[2]])
    assert refusal.value.records == old
    assert await influx.latest([NAME], 99) == batch[::-1]


async def test_a_million_points_a_name_are_no_million_fields(influx, influx_location, influxd):
    wide = record(T0, {f"P{n}": n for n in range(1000)})
    await influx.append([wide])
    assert await influx.latest([NAME], 1) == [wide]
    [fields] = influxd.query("SHOW FIELD KEYS FROM grid", influx_location.database)
    assert len(fields["values"]) == 256 + 2


async def test_a_big_body_and_a_big_batch_are_stored(influx):
    big = [record(T0 + n, {"text": "x" * 1_000_000, "n": n}) for n in range(12)]
    await influx.append(big)
    assert await influx.latest([NAME], 3) == big[:-4:-1]
    many = [record(T0 + n, {"n": n}, f"g/T{n % 50}/a") for n in range(20_000)]
    await influx.append(many)
    page = await influx.page([f"g/T{n}/a" for n in range(50)], 0, T0 + 99_999, offset=19_999, limit=5)
    assert page == Page([many[0]], 20_000)


async def test_a_dropped_database_is_made_again(influx, influx_location, influxd):
    await influx.append([record(T0, {"n": 1})])
    influxd.query(f'DROP DATABASE "{influx_location.database}"')
    await influx.append([record(T0, {"n": 2})])
    await until(lambda: not influx.stats().spool_batches)
    assert await influx.latest([NAME], 9) == [record(T0, {"n": 2})]


@pytest.fixture
def own_influxd(tmp_path_factory) -> Iterator[InfluxServer]:
    """One that asks who is there."""
    with InfluxServer(tmp_path_factory.mktemp("auth"), auth=True) as server:
        yield server


async def test_wrong_credentials_are_said(own_influxd, tmp_path):
    own_influxd.query("CREATE USER \"adm\" WITH PASSWORD 'pass' WITH ALL PRIVILEGES")
    location = InfluxLocation(own_influxd.url, "db", tmp_path / "spool")
    store = await location.open(username="adm", password="wrong")
    with pytest.raises(StoreUnavailable, match=r"401.*authorization failed"):
        await store.check()
    await store.append([record(T0, {"n": 1})])
    assert store.stats().spool_batches == 1
    await store.close()
    store = await location.open(username="adm", password="pass")
    await until(lambda: not store.stats().spool_batches)
    assert await store.latest([NAME], 1) == [record(T0, {"n": 1})]
    await store.close()


async def test_what_is_no_influxdb_is_said(tmp_path):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        await close(writer)

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    store = await InfluxLocation(f"http://127.0.0.1:{port}", "db", tmp_path).open()
    with pytest.raises(StoreUnavailable, match="not as InfluxDB does: hello"):
        await store.check()
    await store.close()
    other.close()
    await other.wait_closed()


async def test_an_address_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="url: 'localhost:8086' is not an http or https address"):
        await InfluxLocation("localhost:8086", "db", tmp_path).open()


@pytest.mark.parametrize("count", [9_999, 10_000, 10_001, 20_000])
async def test_an_answer_of_exactly_ten_thousand_rows_is_whole(new_influx_location, count):
    """1.6.7 calls one partial, and what it cuts short too."""
    store = await new_influx_location().open()
    body = b'{"A":1}'
    await store.append([Record("m/1", T0 + second * 1_000_000, body) for second in range(count)])
    buckets = await store.resample("m/1", ["A"], T0, T0 + 10**12, bucket_us=1_000_000, fn="mean")
    assert len(buckets.starts_us) == count
    await store.close()


async def test_an_empty_text_has_a_bucket_as_any_text_has(new_influx_location):
    """InfluxDB's fields can't hold it; where it's the newest of a bucket without numbers, it's the bucket's value."""
    store = await new_influx_location().open()
    await store.append([Record("m/1", T0, b'{"A":""}'), Record("m/1", T0 + 1_000_000, b'{"A":2}')])
    buckets = await store.resample("m/1", ["A"], T0, T0 + 10**7, bucket_us=1_000_000)
    assert (buckets.starts_us, buckets.columns) == ([T0 + 1_000_000, T0], {"A": [2.0, ""]})
    await store.close()
