"""Statistics over sealed history come from figures of hours, and only what these don't say from records."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from analysis_stand import HOUR_US, AnalysisStand, analysis_stand, at, plainly

from open_stores import seal
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.segments import Segment

BEGIN_US = at("2026-03-27 22:00:00")  # in Berlin clocks are put forward on the 29th
HOURS = 72
ROWS = [
    [f"{code}_{fn}", fn, code] for code in ("A", "on") for fn in ("avg", "sum", "min", "max", "count", "delta", "last")
]


async def sealed(stand: AnalysisStand) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """An object with a record a minute, in segments."""
    object_id = await stand.new_object()
    history = [
        (BEGIN_US + place * 60_000_000, {"A": (place * 37 % 1009) / 4, "on": place % 7 == 0})
        for place in range(60 * HOURS)
    ]
    await stand.report(object_id, history)
    stand.now_us = BEGIN_US + HOURS * HOUR_US + 10_000_000
    assert isinstance(stand.store, RocksStore)
    await seal(stand.store, block=500)
    return object_id, history


def refuse(*_arguments: object, **_named: object) -> None:
    raise AssertionError("records or points were read")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
async def test_hours_and_days_read_neither_records_nor_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    async with analysis_stand(tmp_path, UTC if zone == "UTC" else ZoneInfo(zone)) as stand:
        object_id, history = await sealed(stand)
        monkeypatch.setattr(stand.store, "scan", refuse)
        monkeypatch.setattr(Segment, "column", refuse)
        script = await stand.start("statistics", [object_id], ROWS)
        await stand.analysis.work()
        hours, days = await stand.periods(script, 1), await stand.periods(script, 2)
        assert len(hours) == HOURS
        for start_us, values in hours.items():
            for name, fn, code in ROWS:
                wanted = plainly(fn, code, history, start_us, start_us + HOUR_US)
                assert values[name] == pytest.approx(wanted, rel=1e-12), (start_us, name)
        counts = [each["A_count"] for each in days.values()]
        assert counts == ([2 * 60, 24 * 60, 24 * 60] if zone == "UTC" else [60, 24 * 60, 23 * 60, 24 * 60])


async def test_how_long_a_value_held_is_told_by_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with analysis_stand(tmp_path) as stand:
        object_id, _ = await sealed(stand)
        monkeypatch.setattr(stand.store, "digests", refuse)
        script = await stand.start("statistics", [object_id], [["ON", "duration(on==true)", "on"]])
        await stand.analysis.work()
        hours = await stand.periods(script, 1)
        assert len(hours) == HOURS
        assert {each["ON"] for each in hours.values()} <= {480, 540}


async def test_numbers_beyond_floats_stay_exact(tmp_path: Path) -> None:
    large = 2**53 + 1
    async with analysis_stand(tmp_path) as stand:
        object_id = await stand.new_object()
        await stand.report(
            object_id, [(BEGIN_US + place * 60_000_000, {"A": large + 2 * place}) for place in range(120)]
        )
        stand.now_us = BEGIN_US + 2 * HOUR_US + 10_000_000
        assert isinstance(stand.store, RocksStore)
        await seal(stand.store, block=50)
        script = await stand.start("statistics", [object_id], [["MIN", "min", "A"], ["LAST", "last", "A"]])
        await stand.analysis.work()
        hours = await stand.periods(script, 1)
        assert [(each["MIN"], each["LAST"]) for each in hours.values()] == [
            (large, large + 118),
            (large + 120, large + 238),
        ]
