"""InfluxDB away: since when and how much waits is said at once, then seldom, and its return too."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from support import free_port, new_tasks
from terrazzo.cli import running
from terrazzo.cli.checks import check_outage
from terrazzo.cli.finding import Level
from terrazzo.config.sections import load_config
from terrazzo.ports.store import Record, StoreUnavailable
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore
from terrazzo_adapters.influxdb.outage import Outage
from waiting import until


class Clock:
    now_s = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now_s


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [each.getMessage() for each in caplog.records if "InfluxDB is" in each.getMessage()]
    caplog.clear()
    return lines


def test_it_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock, waiting = Clock(), [0, 0]
    outage = Outage(lambda: (waiting[0], waiting[1]), clock_s=clock)
    outage.end()
    assert (said(caplog), outage.since_s) == ([], 0)
    for _ in range(120):
        waiting[0] += 1
        waiting[1] += 100
        outage.begin("refused")
        clock.now_s += 1
    lines = said(caplog)
    assert len(lines) == 2
    assert lines[0].startswith("InfluxDB is away since 2026-09-21T14:13:20+00:00; 1 batches of records (100 bytes)")
    assert "; 61 batches of records (6100 bytes) wait on disk until it is back: refused" in lines[1]
    outage.end()
    assert said(caplog) == ["InfluxDB is back after 120 s; 120 batches (12000 bytes) are left to send"]
    outage.begin("refused")
    assert len(said(caplog)) == 1


async def test_a_server_that_is_away_at_the_start_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tasks = new_tasks()
    settings = InfluxSettings(url=f"http://127.0.0.1:{free_port()}", database="d")
    with caplog.at_level(logging.WARNING):
        store = await InfluxStore.open(settings, spool=tmp_path / "spool", tasks=tasks)
        try:
            await until(lambda: store.stats().away_since_seconds, "it is noticed without a record")
            assert len(said(caplog)) == 1
            await store.append([Record("g/a/r", 1, b'{"v":1}')])
            assert store.stats().spool_batches == 1
            with pytest.raises(StoreUnavailable):
                await store.check()
        finally:
            await store.close()
            await tasks.close()
    assert said(caplog) == []


def test_doctor_says_it_of_the_running_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = (
        "# TYPE terrazzo_store_away_since_seconds gauge\nterrazzo_store_away_since_seconds %d\n"
        "# TYPE terrazzo_store_spool_batches gauge\nterrazzo_store_spool_batches 3\n"
        "# TYPE terrazzo_store_spool_bytes gauge\nterrazzo_store_spool_bytes 1.048576e+06\n"
    )
    config = load_config(None, {"TERRAZZO_STORE__KIND": "influxdb", "TERRAZZO_STORE__URL": "http://localhost:8086"})
    for since in (0, 1_790_000_000):
        monkeypatch.setattr(running, "ask", lambda *_, since=since: (figures % since).encode())
        findings = list(check_outage(config))
        assert [each.level for each in findings] == [Level.WARN] * bool(since)
    assert findings[0].found == (
        "the running platform is without InfluxDB since 2026-09-21T14:13:20+00:00; "
        "3 batches (1.0 MiB) of records wait on disk"
    )
    assert list(check_outage(load_config(None, {}))) == []
