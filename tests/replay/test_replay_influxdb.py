"""InfluxDB 3 has no DELETE: a replay there is refused, and a dry run counts. What the server no longer keeps, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from replay_stand import PLAIN, SECOND, T0, Stand

from influx_front import Front
from influx_server import InfluxServer
from terrazzo.errors import Conflict
from terrazzo.ports.store import Record

REPORTS = [Record("g/t1/r", T0 + at_s * SECOND, json.dumps({"T": 50 + at_s * 20}).encode()) for at_s in range(3)]


async def test_on_3_it_is_refused_and_a_dry_run_counts(influxd: InfluxServer, tmp_path: Path) -> None:
    async with Front(influxd.url, "3.0.1") as front:
        stand = Stand(tmp_path / "stand", front.url)
        influxd.query(f'CREATE DATABASE "{stand.database_name}"')
        await stand.start(PLAIN)
        try:
            await stand.store.append(REPORTS)
            with pytest.raises(Conflict, match="InfluxDB 3 has no DELETE"):
                await stand.submit(-10, 10)
            row = await stand.replay(-10, 10, dry_run=True)
            assert (row["records_done"], row["mosaic_before"], row["mosaic_after"]) == (3, 0, 3)
            assert (row["events_after"], row["labels_after"]) == (1, 1)
        finally:
            await stand.stop()


async def test_what_the_server_no_longer_keeps_is_not_replayed(influxd: InfluxServer, tmp_path: Path) -> None:
    stand = await Stand(tmp_path / "stand", influxd.url).start(PLAIN)
    try:
        await stand.store.append(REPORTS)
        name = stand.database_name
        influxd.query(f'ALTER RETENTION POLICY "autogen" ON "{name}" DURATION 1h SHARD DURATION 1h')
        row = await stand.ended(await stand.submit(-10, 10))
        assert row["state"] == "failed"
        assert "InfluxDB would never take the new records: " in row["info"]
        assert "beyond retention policy" in row["info"]
        assert await stand.mosaic() == []
    finally:
        await stand.stop()
