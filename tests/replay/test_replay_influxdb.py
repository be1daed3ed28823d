"""InfluxDB can't replace records: a replay there is refused, and a dry run counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from replay_stand import SECOND, T0, Stand

from influx_server import InfluxServer
from terrazzo.errors import Conflict
from terrazzo.replay.journal import Journal
from terrazzo.replay.live import Live
from terrazzo.replay.replays import Replays
from terrazzo.replay.run import Parts
from terrazzo.store import Record
from terrazzo.times import now_us
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore


async def test_it_is_refused_and_a_dry_run_counts(stand: Stand, tmp_path: Path) -> None:
    server = InfluxServer(tmp_path / "influxd")
    server.start()
    store = await InfluxStore.open(InfluxSettings(url=server.url, database="replay"), spool=tmp_path / "spool")
    reports = [Record("g/t1/r", T0 + at_s * SECOND, json.dumps({"T": 50 + at_s * 20}).encode()) for at_s in range(3)]
    await store.append(reports)
    await stand.replays.stop()
    live = Live(stand.shaper, stand.intake, stand)
    parts = Parts(store, stand.database, live, stand.analysis, now_us)
    stand.replays = Replays(Journal(stand.database, zone=None), parts)
    stand.replays.start()
    try:
        with pytest.raises(Conflict, match="replay needs the embedded store"):
            await stand.submit(-10, 10)
        row = await stand.replay(-10, 10, dry_run=True)
        assert (row["records_done"], row["mosaic_before"], row["mosaic_after"]) == (3, 0, 3)
        assert (row["events_after"], row["labels_after"]) == (1, 1)
    finally:
        await stand.replays.stop()
        await store.close()
        server.stop()
