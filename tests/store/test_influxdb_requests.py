"""How many requests a question to InfluxDB takes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from store_locations import InfluxLocation

from influx_gate import Gate
from influx_server import InfluxServer
from terrazzo.ports.store import Record

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
            assert await requests(store.page(["m/1"], T0, end, offset=20, limit=10, keys=["A"])) == 1
            assert await requests(store.latest_each("m/1", KEYS)) == 1
        finally:
            await store.close()


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
