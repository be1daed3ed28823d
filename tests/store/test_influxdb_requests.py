"""How many requests a question to InfluxDB takes."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from store_locations import InfluxLocation

from influx_gate import Gate
from influx_server import InfluxServer
from terrazzo.ports.store import Record
from terrazzo_adapters.columns.extremes import Extremes
from terrazzo_adapters.influxdb import InfluxStore, field_points, queries

T0 = 1_700_000_000_000_000
MINUTE = 60_000_000
KEYS = ["A", "B", "C", "D", "E"]


async def test_questions_take_as_few_requests_as_they_can(influxd: InfluxServer, tmp_path: Path) -> None:
    async with Gate(influxd.url) as gate:
        store = await InfluxLocation(gate.url, "requests", tmp_path / "spool").open()
        try:
            values = [{key: n + place for place, key in enumerate(KEYS)} | {"ON": n % 2 == 0} for n in range(100)]
            packed = [msgspec.msgpack.encode(each) for each in values]
            await store.append([Record("m/1", T0 + n * MINUTE, body) for n, body in enumerate(packed)])
            end = T0 + 100 * MINUTE

            async def requests(question) -> int:
                gate.seen.clear()
                assert await question
                return len(gate.seen)

            five = store.resample("m/1", KEYS, T0, end, bucket_us=10 * MINUTE, fn="mean")
            assert await requests(five) == 1
            assert await requests(store.resample("m/1", KEYS, T0, end, bucket_us=10 * MINUTE)) == 1
            assert await requests(store.resample("m/1", [*KEYS, "ON"], T0, end, bucket_us=10 * MINUTE)) == 2
            assert await requests(store.page(["m/1"], T0, end, offset=0, limit=10)) == 1
            assert await requests(store.page(["m/1"], T0, end, offset=20, limit=10, keys=["A"])) <= 3  # two at a time
            assert await requests(store.latest_each("m/1", KEYS)) == 1
            assert await requests(store.latest_each("m/1", [*KEYS, "none"])) == 2
            assert await requests(store.extremes("m/1", KEYS, T0, end, bucket_us=10 * MINUTE)) == 2  # at once
        finally:
            await store.close()


@pytest.mark.parametrize("twice", [None, 0, 2, 4, 5, 9, 10], ids=str)
async def test_curves_from_fields_are_those_of_records(
    influxd: InfluxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: int | None
) -> None:
    """In answers of three rows, each edge of which is met; with two records of one time only records tell all."""
    values = [1, -0.5, True, None, "on", False, 2**60, 1e300, 2, "", 3.25]
    times = [T0 + number * MINUTE for number in range(len(values))]
    records = [
        Record("m/1", time_us, msgspec.msgpack.encode({"A": value, "B": number}))
        for number, (time_us, value) in enumerate(zip(times, values, strict=True))
    ]
    if twice is not None:
        records.append(Record("m/1", times[twice], msgspec.msgpack.encode({"A": 7.5})))
    monkeypatch.setattr(field_points, "_VALUES", 3)
    store = await InfluxLocation(influxd.url, f"fields{twice}", tmp_path / "spool").open()
    try:
        await store.append(records)
        asked = ("m/1", ["A", "B", "C"], T0, times[-1])
        found = await store.extremes(*asked, bucket_us=MINUTE, origin_us=T0)
        told = await store._from_fields(lambda: Extremes(["A"], bucket_us=1, origin_us=0), "m/1", ["A"], T0, times[-1])
        assert (told is not None) is (twice in (None, 4, 9)), "what is no number has no place among them"
        with monkeypatch.context() as patch:
            patch.setattr(InfluxStore, "_from_fields", _tells_nothing)
            assert found == await store.extremes(*asked, bucket_us=MINUTE, origin_us=T0)
        assert [*found] == ["A", "B"]
        assert len(found["A"].values) == 8 + (twice is not None)
    finally:
        await store.close()


async def _tells_nothing(*_arguments: object) -> None:
    return None


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
async def test_a_group_across_the_edge_of_a_page_is_read_whole(
    influxd: InfluxServer, tmp_path: Path, offset: int
) -> None:
    store = await InfluxLocation(influxd.url, f"groups{offset}", tmp_path / "spool").open()
    try:
        bodies = [msgspec.msgpack.encode({"A": n}) for n in range(4)]
        await store.append([Record("m/1", T0, body) for body in bodies])
        page = await store.page(["m/1"], T0, T0, offset=offset, limit=1)
        assert ([record.body for record in page.records], page.total) == ([bodies[3 - offset]], 4)
        assert (await store.latest_each("m/1", ["A"]))["A"].body == bodies[3]
    finally:
        await store.close()


async def test_pages_of_one_name_are_those_of_a_filter(influxd: InfluxServer, tmp_path: Path) -> None:
    """With a name that no record carries beside it the server filters, and looks at the whole range at once."""
    values = [1, -0.5, True, False, None, "on", "", 2**63, float("inf"), 0]
    bodies = [msgspec.msgpack.encode({"A": value} if n % 3 else {"B": value}) for n, value in enumerate(values * 4)]
    steps = [0 if n % 2 else MINUTE if n < 20 else MINUTE // 100 for n in range(len(bodies))]  # two of each time
    times = [T0 + after_us for after_us in itertools.accumulate(steps)]
    store = await InfluxLocation(influxd.url, "names", tmp_path / "spool").open()
    try:
        await store.append([Record("m/1", *each) for each in zip(times, bodies, strict=True)])
        for end_us in (times[-1], times[-1] + 1, times[12], T0, T0 - 1, times[-1] + 1_000 * MINUTE):
            for offset in range(0, 30, 3):
                asked = {"offset": offset, "limit": 4}
                found = await store.page(["m/1"], T0, end_us, keys=["A"], **asked)
                assert found == await store.page(["m/1"], T0, end_us, keys=["A", "none"], **asked)
        assert (await store.page(["m/1"], T0, times[-1], keys=["A"], offset=0, limit=1)).total == 26
    finally:
        await store.close()


async def test_the_newest_of_a_name_is_found_however_old(influxd: InfluxServer, tmp_path: Path) -> None:
    store = await InfluxLocation(influxd.url, "old", tmp_path / "spool").open()
    try:
        first, last = (msgspec.msgpack.encode(each) for each in ({"A": None, "C": 1}, {"A": 2}))
        others = [Record("m/1", T0 + n, msgspec.msgpack.encode({"B": n})) for n in range(1, queries._NEWEST + 5)]
        await store.append([Record("m/1", T0, first), *others])
        assert {key: each.body for key, each in (await store.latest_each("m/1", ["A", "C", "B", "D"])).items()} == {
            "A": first,
            "B": others[-1].body,
            "C": first,
        }
        await store.append([Record("m/1", others[-1].time_us, last)])
        assert (await store.latest_each("m/1", ["A"]))["A"].body == last
    finally:
        await store.close()
