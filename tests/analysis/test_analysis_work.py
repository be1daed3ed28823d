"""Scripts that start, change, stop and go; calculations and balances; late records; downtime."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from analysis_stand import DAY_US, HOUR_US, AnalysisStand, analysis_stand, at

from influx_gate import Gate
from influx_server import InfluxServer
from terrazzo.database.tables.analysis import ANALYSIS, CALCULATE_RESULT, STATISTICS_RESULT
from terrazzo.domain.actor import SYSTEM
from terrazzo.ports.store import Record, StoreUnavailable
from waiting import until

BEGIN_US = at("2026-03-01 00:00:00")
COUNT = [["N", "count", "A"], ["AVG", "avg", "A"]]


@pytest.fixture
async def stand(tmp_path: Path, influx: str) -> AsyncIterator[AnalysisStand]:
    async with analysis_stand(tmp_path, influx=influx) as opened:
        yield opened


async def reporting(stand: AnalysisStand, hours: int) -> int:
    """An object with a record each half hour: 0, 1, 2, ...; the clock stands after the last hour."""
    object_id = await stand.new_object()
    await stand.report(object_id, [(BEGIN_US + n * HOUR_US // 2, {"A": n}) for n in range(2 * hours)])
    stand.now_us = BEGIN_US + hours * HOUR_US + 10_000_000
    return object_id


async def test_a_script_that_starts_computes_what_was_before(stand: AnalysisStand) -> None:
    script = await stand.start("statistics", [await reporting(stand, 50)], COUNT)
    await stand.analysis.work()
    hours, days = await stand.periods(script, 1), await stand.periods(script, 2)
    assert [each["N"] for each in hours.values()] == [2] * 50
    assert hours[BEGIN_US + HOUR_US] == {"N": 2, "AVG": 2.5}
    assert days == {BEGIN_US: {"N": 48, "AVG": 23.5}, BEGIN_US + DAY_US: {"N": 48, "AVG": 71.5}}


async def test_a_period_is_computed_when_it_is_over_and_not_before(stand: AnalysisStand) -> None:
    script = await stand.start("statistics", [await reporting(stand, 2)], COUNT)
    stand.now_us -= 1
    await stand.analysis.work()
    assert list(await stand.periods(script, 1)) == [BEGIN_US]
    stand.now_us += 1
    await stand.analysis.work()
    assert list(await stand.periods(script, 1)) == [BEGIN_US, BEGIN_US + HOUR_US]
    assert await stand.analysis.work() == 0, "nothing is due"


async def test_downtime_is_caught_up_with(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 1)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    stand.now_us = at("2027-01-01 01:00:00")
    await stand.report(object_id, [(at("2026-07-01 12:00:00"), {"A": 7})])
    await stand.open_analysis()
    await stand.analysis.work()
    assert await stand.periods(script, 3) == {
        BEGIN_US: {"N": 2, "AVG": 0.5},
        at("2026-07-01 00:00:00"): {"N": 1, "AVG": 7},
    }
    assert await stand.periods(script, 4) == {at("2026-01-01 00:00:00"): {"N": 3, "AVG": 8 / 3}}


async def test_a_late_record_changes_its_periods_and_no_others(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 30)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    before = await stand.results(script, 1, STATISTICS_RESULT)
    await stand.report(object_id, [(BEGIN_US + 5 * HOUR_US + 1, {"A": 1_000})])
    await stand.analysis.work()
    after = await stand.results(script, 1, STATISTICS_RESULT)
    assert after == {**before, (BEGIN_US + 5 * HOUR_US, "N"): "3", (BEGIN_US + 5 * HOUR_US, "AVG"): "340.3333333333333"}
    assert (await stand.periods(script, 2))[BEGIN_US]["N"] == 49


async def test_a_late_record_ends_a_value_that_was_held(stand: AnalysisStand) -> None:
    object_id = await stand.new_object()
    await stand.report(object_id, [(BEGIN_US, {"RUN": 1})])
    stand.now_us = BEGIN_US + 10 * HOUR_US + 10_000_000
    script = await stand.start("statistics", [object_id], [["S", "duration(RUN == 1)", ""]])
    await stand.analysis.work()
    assert [each["S"] for each in (await stand.periods(script, 1)).values()] == [3600] * 10
    await stand.report(object_id, [(BEGIN_US + HOUR_US * 5 // 2, {"RUN": 0})])
    await stand.analysis.work()
    assert [each["S"] for each in (await stand.periods(script, 1)).values()] == [3600, 3600, 1800]


async def test_marks_of_an_earlier_run_are_worked_off(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 3)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    await stand.report(object_id, [(BEGIN_US, {"A": 9})])
    await stand.open_analysis()  # before it was worked off
    await stand.analysis.work()
    assert (await stand.periods(script, 1))[BEGIN_US]["N"] == 3


async def test_a_changed_script_is_computed_again(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 3)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    await stand.entities.statistics.update(SYSTEM, script, {"script": [["MAX", "max", "A"]]})
    await stand.analysis.work()
    assert await stand.results(script, 1, STATISTICS_RESULT) == {
        (BEGIN_US + n * HOUR_US, "MAX"): f"{2 * n + 1}" for n in range(3)
    }


async def test_a_stopped_script_goes_on_where_it_was(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 1)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    await stand.entities.statistics.set_active(SYSTEM, script, False)
    stand.now_us += 5 * HOUR_US
    await stand.report(object_id, [(BEGIN_US, {"A": 3}), (BEGIN_US + 2 * HOUR_US, {"A": 3})])
    assert await stand.analysis.work() == 0
    await stand.entities.statistics.set_active(SYSTEM, script, True)
    await stand.analysis.work()
    assert {at_us: each["N"] for at_us, each in (await stand.periods(script, 1)).items()} == {
        BEGIN_US: 3,
        BEGIN_US + 2 * HOUR_US: 1,
    }


async def test_nothing_is_left_of_deleted_scripts(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 30)
    await stand.start("statistics", [object_id], COUNT)
    await stand.start("calculates", [], [["X", "AVG"]])
    await stand.start("balances", [object_id], target_code="A", input_codes=["A"], window=3600)
    await stand.analysis.work()
    for repository in (stand.entities.statistics, stand.entities.calculates, stand.entities.balances):
        (row,) = (await repository.page(SYSTEM)).rows
        await repository.delete(SYSTEM, row["id"])
    await stand.analysis.work()
    async with stand.database.reading() as connection:
        counts = [
            (await connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one() for table in ANALYSIS
        ]
    assert counts == [0] * len(ANALYSIS)


async def test_results_outlive_the_records(stand: AnalysisStand) -> None:
    """What retention has dropped isn't computed again from nothing."""
    object_id = await reporting(stand, 30)
    script = await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    before = await stand.periods(script, 1)
    await stand.open_analysis(retention_us=lambda _: 2 * HOUR_US)
    await stand.store.drop_before(stand.now_us - 2 * HOUR_US)
    await stand.analysis.recompute(SYSTEM, script, [object_id], BEGIN_US, stand.now_us)
    await stand.analysis.work()
    assert await stand.periods(script, 1) == before


async def test_calculations_follow_statistics(stand: AnalysisStand) -> None:
    object_id = await reporting(stand, 26)
    script = await stand.start(
        "calculates", [], [["TWICE", "AVG * 2"], ["BAD", "MISSING + 1"], ["ZERO", "1 / (AVG - AVG)"]]
    )
    await stand.start("statistics", [object_id], COUNT)
    await stand.analysis.work()
    hours = await stand.results(script, 1, CALCULATE_RESULT)
    assert len(hours) == 3 * 26
    assert [hours[BEGIN_US, name] for name in ("TWICE", "BAD", "ZERO")] == ["1", "", ""]
    assert (await stand.results(script, 2, CALCULATE_RESULT))[BEGIN_US, "TWICE"] == "47"
    await stand.report(object_id, [(BEGIN_US + 1, {"A": 2})])
    await stand.analysis.work()
    assert (await stand.results(script, 1, CALCULATE_RESULT))[BEGIN_US, "TWICE"] == "2"


async def test_a_balance_for_each_window_that_has_records(stand: AnalysisStand) -> None:
    object_id = await stand.new_object()
    minutes = [BEGIN_US + n * 60_000_000 for n in range(30)]
    await stand.report(object_id, [(at_us, {"X": n % 7, "T": 1 + 3 * (n % 7)}) for n, at_us in enumerate(minutes)])
    await stand.report(object_id, [(BEGIN_US + DAY_US, {"T": 1})])
    stand.now_us = BEGIN_US + 3 * DAY_US
    script = await stand.start("balances", [object_id], target_code="T", input_codes=["X"], window=3600)
    await stand.analysis.work()
    first, second = await stand.balances(script)
    assert json.loads(first.parameters) == {"intercept": 1, "coefficients": {"X": 3}, "points": 30}
    assert (first.correlation, first.start_time, first.end_time) == ("1.000000", BEGIN_US, BEGIN_US + HOUR_US)
    assert json.loads(second.parameters)["reason"] == "points in common: 0, needed: 3"
    await stand.report(object_id, [(at_us, {"X": n, "T": -n}) for n, at_us in enumerate(minutes)])
    await stand.analysis.work()
    again, _ = await stand.balances(script)
    assert (again.id, again.parameters != first.parameters) == (first.id, True)


async def test_records_that_a_commit_under_way_holds_are_waited_for(stand: AnalysisStand) -> None:
    """A record that is sealed before the period's end and stored after it must not be missed."""
    object_id = await reporting(stand, 1)
    script = await stand.start("statistics", [object_id], COUNT)
    late = [(BEGIN_US + 5, {"A": 1})]
    rows = [Record(f"m/{object_id}", at_us, msgspec.msgpack.encode(body)) for at_us, body in late]
    notes = stand.marks.on_sealed(rows)
    assert notes == {}, "nothing was computed yet"
    work = asyncio.create_task(stand.analysis.work())
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert await stand.periods(script, 1) == {}
    await stand.store.append(rows, notes=notes)
    stand.marks.on_committed()
    await work
    assert (await stand.periods(script, 1))[BEGIN_US]["N"] == 3


async def test_records_that_wait_for_the_server_are_waited_for(tmp_path: Path, influxd: InfluxServer) -> None:
    """While it can be read already, but hasn't got all: what is computed then would lack them for ever."""
    async with Gate(influxd.url) as gate, analysis_stand(tmp_path, influx=gate.url) as stand:
        object_id = await reporting(stand, 3)
        script = await stand.start("statistics", [object_id], COUNT)
        await stand.analysis.work()
        gate.is_writable = False
        await stand.report(object_id, [(BEGIN_US + 5, {"A": 1}), (BEGIN_US + 3 * HOUR_US, {"A": 1})])
        stand.now_us += HOUR_US
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="records are on their way"):
                await stand.analysis.work()
        assert (await stand.periods(script, 1))[BEGIN_US]["N"] == 2
        gate.is_writable = True
        await until(lambda: stand.store.is_whole)
        await stand.analysis.work()
        hours = await stand.periods(script, 1)
        assert (hours[BEGIN_US]["N"], hours[BEGIN_US + 3 * HOUR_US]["N"]) == (3, 1)


async def test_a_job_that_fails_rests_and_the_others_go_on(stand: AnalysisStand) -> None:
    broken, sound = await reporting(stand, 2), await reporting(stand, 2)
    advance = stand.analysis._statistics.advance

    async def fail(script, job, progress):
        if job.object_id == broken:
            raise ZeroDivisionError("nobody knows why")
        return await advance(script, job, progress)

    stand.analysis._statistics.advance = fail
    script = await stand.start("statistics", [broken, sound], COUNT)
    await stand.analysis.work()
    assert [each["N"] for each in (await stand.periods(script, 1)).values()] == [2, 2], "of the sound one"
    assert stand.analysis.stats.failures == 1
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 1, "it rests"
    await stand.report(sound, [(BEGIN_US + 7, {"A": 1})])
    await stand.analysis.work()
    assert [each["N"] for each in (await stand.periods(script, 1)).values()] == [3, 2]
    stand.now_us += 61_000_000
    await stand.analysis.work()
    assert stand.analysis.stats.failures == 2, "and is tried again"
