"""Any statistic equals the one that is computed from all records at once, whatever came when."""

from __future__ import annotations

import asyncio
import math
import tempfile
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from analysis_stand import HOUR_US, AnalysisStand, analysis_stand, at, plainly, starts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from open_stores import seal
from terrazzo.analysis.periods import PeriodType
from terrazzo.analysis.scripts import ScriptKind
from terrazzo_adapters.rocksdb import RocksStore

FUNCTIONS = ["avg", "sum", "min", "max", "count", "delta", "first", "last", "duration(A==1)", "duration(B==2.5)"]
SCRIPT = [[f"{code}_{fn}", fn, code] for code in "AB" for fn in FUNCTIONS if "(" not in fn or f"({code}" in fn]
MEASURES = {name: (fn, code) for name, fn, code in SCRIPT}
OF_POINTS = [row for row in SCRIPT if "(" not in row[1]]  # which digests are enough for
BEGIN_US = at("2025-12-30 00:00:00")
SPAN_H = 60 * 24

values = st.sampled_from([0, 1, 2.5, -3, "on", True, False, None, 1e6])
bodies = st.dictionaries(st.sampled_from("AB"), values, min_size=1, max_size=2)
minutes = st.integers(0, SPAN_H * 60 - 1) | st.integers(0, 600)
reports = st.lists(st.tuples(minutes, bodies), max_size=12)
steps = st.lists(st.tuples(reports, st.integers(1, SPAN_H // 3)), min_size=1, max_size=4)
zones = st.sampled_from([UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Shanghai")])


def same(got: Any, wanted: Any) -> bool:
    if isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, int | float) and isinstance(wanted, int | float):
        return math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9)
    return bool(got == wanted)


async def check(
    stand: AnalysisStand, script: int, rows: list[list[str]], history: list[tuple[int, dict[str, Any]]], zone: tzinfo
) -> None:
    """Everything that the analysis has, against the slow way."""
    history = sorted(history, key=lambda each: each[0])
    closed_us = (stand.now_us - 10_000_000) // HOUR_US * HOUR_US
    for kind in (1, 2, 3, 4):
        wanted = {}
        first_us = history[0][0] if history else closed_us
        for start_us, end_us in starts(kind, first_us, closed_us, zone):
            named = {name: plainly(*row, history, start_us, end_us) for name, *row in rows}
            if any(value not in (None, 0) or value is False for value in named.values()):
                wanted[start_us] = named
        got = await stand.periods(script, kind)
        assert got.keys() == wanted.keys(), kind
        for start_us, named in wanted.items():
            for name, value in named.items():
                assert same(got[start_us][name], value), (kind, start_us, name, got[start_us][name], value)


async def check_running(stand: AnalysisStand, script: int, object_id: int, history: Any, zone: tzinfo) -> None:
    history = sorted(history, key=lambda each: each[0])
    known = stand.analysis.script(ScriptKind.STATISTICS, script)
    assert known is not None
    for kind in (5, 6, 7, 8):
        found = await stand.analysis.running.compute(known, object_id, PeriodType(kind))
        assert found is not None
        start_us = found.period.start_us
        assert found.period.end_us == stand.now_us
        if kind == 8:
            assert not history or start_us <= min(history[0][0], stand.now_us)
        for name, row in MEASURES.items():
            wanted = plainly(*row, history, start_us, stand.now_us)
            assert same(found.values[name], wanted), (kind, name, found.values[name], wanted)


async def play(folder: Path, plan: Any, zone: tzinfo, influx: str) -> None:
    """Reports arrive in portions, many of them late; time passes; the platform is started again in between."""
    async with analysis_stand(folder, zone, influx) as stand:
        object_id = await stand.new_object()
        script = await stand.start("statistics", [object_id], SCRIPT)
        of_points = await stand.start("statistics", [object_id], OF_POINTS)
        stand.now_us = BEGIN_US + HOUR_US
        history: list[tuple[int, dict[str, Any]]] = []
        for portion, hours in plan:
            stand.now_us += hours * HOUR_US
            possible = [(BEGIN_US + minute * 60_000_000, body) for minute, body in portion]
            arrived = [each for each in possible if each[0] < stand.now_us]
            await stand.report(object_id, arrived)
            history += arrived
            if hours % 2 and isinstance(stand.store, RocksStore):
                await seal(stand.store, block=5)
            if hours % 3 == 0:
                await stand.open_analysis()
            await stand.analysis.work()
            await check(stand, script, SCRIPT, history, zone)
            await check(stand, of_points, OF_POINTS, history, zone)
            await check_running(stand, script, object_id, history, zone)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(plan=steps, zone=zones)
def test_statistics_equal_those_of_the_records(influx: str, plan: Any, zone: tzinfo) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), plan, zone, influx))
