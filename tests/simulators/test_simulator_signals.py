"""The machines' signals: a function of seed, uid and time, and such as a machine could give."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from length import rounds
from terrazzo_simulators.equipment import MACHINES, machine_of
from terrazzo_simulators.equipment.machine import Alarm, SettingError, daily
from terrazzo_simulators.noise import Noise

START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DAY_S = 86_400
TYPES = sorted(MACHINES)


def run(terminal_type: str, *, uid: str = "sim-1", seed: int = 1, step_s: float = 300, steps: int = 288) -> list[Any]:
    machine = machine_of(terminal_type, seed=seed, uid=uid)
    records = []
    for index in range(steps):
        machine.advance(START_S + index * step_s)
        records.append(machine.points())
    return records


@pytest.mark.parametrize("terminal_type", TYPES)
def test_same_seed_and_uid_give_the_same_signals(terminal_type: str) -> None:
    assert run(terminal_type, steps=96) == run(terminal_type, steps=96)


@pytest.mark.parametrize("terminal_type", TYPES)
def test_another_seed_or_uid_gives_other_signals(terminal_type: str) -> None:
    (one, *_, last) = run(terminal_type, steps=24)
    for other in (run(terminal_type, seed=2, steps=24), run(terminal_type, uid="sim-2", steps=24)):
        assert (other[0] != one, other[-1] != last) == (True, True)


@pytest.mark.parametrize("terminal_type", TYPES)
def test_a_report_has_about_ten_values(terminal_type: str) -> None:
    (record,) = run(terminal_type, steps=1)
    values = sum(len(value) if isinstance(value, dict) else 1 for value in record.values())
    assert 9 <= values <= 13


@pytest.mark.parametrize("terminal_type", TYPES)
def test_energy_is_the_integral_of_the_power(terminal_type: str) -> None:
    records = run(terminal_type, step_s=10, steps=8_640)
    gained = records[-1]["ENERGY"] - records[0]["ENERGY"]
    summed = sum((a["POWER"] + b["POWER"]) / 2 * 10 / 3600 for a, b in itertools.pairwise(records))
    assert gained == pytest.approx(summed, rel=1e-3)


@settings(max_examples=rounds(20, 200), deadline=None)
@given(
    terminal_type=st.sampled_from(TYPES),
    seed=st.integers(0, 2**63),
    moves_s=st.lists(st.floats(-100_000, 400_000), min_size=2, max_size=12),
)
def test_no_counter_ever_falls_not_even_with_a_clock_set_back(
    terminal_type: str, seed: int, moves_s: list[float]
) -> None:
    machine = machine_of(terminal_type, seed=seed, uid="x")
    now_s, before = START_S, {"ENERGY": 0.0, "HOURS": 0.0, "COOLING_ENERGY": 0.0}
    for move_s in moves_s:
        now_s += move_s
        machine.advance(now_s)
        points = machine.points()
        for name in before.keys() & points.keys():
            assert points[name] >= before[name]
            before[name] = points[name]


@pytest.mark.parametrize("terminal_type", TYPES)
def test_afternoons_draw_more_power_than_nights(terminal_type: str) -> None:
    records = run(terminal_type, step_s=3_600, steps=24 * 10)
    nights = [record["POWER"] for hour, record in enumerate(records) if hour % 24 in (2, 3, 4)]
    afternoons = [record["POWER"] for hour, record in enumerate(records) if hour % 24 in (14, 15, 16)]
    assert sum(afternoons) / len(afternoons) > 1.5 * sum(nights) / len(nights)


def test_the_day_is_coldest_at_three_and_warmest_at_fifteen() -> None:
    assert daily(START_S + 3 * 3_600) == pytest.approx(-1)
    assert daily(START_S + 15 * 3_600) == pytest.approx(1)


def test_a_motor_under_load_is_warmer_than_the_air_and_cools_down_when_stopped() -> None:
    machine = machine_of("Adapter-II", seed=1, uid="x")
    machine.advance(START_S)
    running = machine.points()
    assert running["TEMP_MOTOR"] > running["TEMP_AMBIENT"] + 10
    machine.set("BOOT", 0)
    machine.advance(START_S + 2 * 3_600)
    stopped = machine.points()
    assert stopped["POWER"] == 0
    assert stopped["STATE"] == "stop"
    assert stopped["TEMP_MOTOR"] == pytest.approx(stopped["TEMP_AMBIENT"], abs=1)
    assert stopped["PRESSURE"] == pytest.approx(0, abs=0.1)


def test_a_chiller_follows_its_setpoint_and_its_heat_is_flow_times_warming() -> None:
    machine = machine_of("Adapter-III", seed=3, uid="x")
    machine.advance(START_S)
    machine.set("SETPOINT", 12)
    machine.advance(START_S + 1_800)
    points = machine.points()
    assert points["TEMP_SUPPLY"] == pytest.approx(12, abs=0.5)
    heat_kw = points["FLOW"] * 1.163 * (points["TEMP_RETURN"] - points["TEMP_SUPPLY"])
    assert points["COOLING"] == pytest.approx(heat_kw, rel=0.02)


def test_a_meters_power_is_that_of_its_phases() -> None:
    for record in run("Adapter-X", steps=50):
        kw = sum(record["U"][phase] * record["I"][phase] for phase in ("L1", "L2", "L3")) * record["PF"] / 1000
        assert record["POWER"] == pytest.approx(kw, rel=0.01)


@pytest.mark.parametrize("terminal_type", TYPES)
def test_alarms_come_from_the_signals_and_clear_again(terminal_type: str) -> None:
    raised, cleared = 0, 0
    for unit in range(8):
        machine = machine_of(terminal_type, seed=5, uid=f"unit-{unit}")
        before: dict[str, bool] = {}
        for index in range(2 * DAY_S // 120):
            machine.advance(START_S + index * 120)
            now = {name: alarm.active for name, alarm in machine.alarms.items()}
            raised += sum(now[name] and not before.get(name, False) for name in now)
            cleared += sum(before.get(name, False) and not now[name] for name in now)
            before = now
        if raised >= 2 and cleared >= 1:
            return
    raise AssertionError(f"{raised} raised, {cleared} cleared, of eight machines in two days")


@given(
    limits=st.tuples(st.floats(-100, 100), st.floats(-100, 100)).filter(lambda pair: pair[0] != pair[1]),
    values=st.lists(st.floats(-200, 200), min_size=1, max_size=20),
)
def test_an_alarm_changes_only_beyond_its_thresholds(limits: tuple[float, float], values: list[float]) -> None:
    low, high = sorted(limits)
    upward, downward = Alarm(high, low), Alarm(low, high)
    for value in values:
        for alarm, sign in ((upward, 1), (downward, -1)):
            was = alarm.active
            alarm.judge(value)
            if alarm.active and not was:
                assert sign * value > sign * (high if sign > 0 else low)
            if was and not alarm.active:
                assert sign * value <= sign * (low if sign > 0 else high)


@pytest.mark.parametrize("value", ["warm", None, float("nan"), 1e9, -1])
def test_a_setting_out_of_bounds_is_refused_and_named(value: Any) -> None:
    machine = machine_of("Adapter-II", seed=1, uid="x")
    with pytest.raises(SettingError, match="SETPOINT"):
        machine.set("SETPOINT", value)
    assert machine.settings["SETPOINT"] == 7.5


@given(seed=st.integers(0, 2**64), index=st.integers(-(2**70), 2**70))
def test_noise_stays_in_its_range_and_repeats(seed: int, index: int) -> None:
    noise = Noise(seed, "a", "b")
    assert 0 <= noise.uniform(index) < 1
    assert noise.uniform(index) == Noise(seed, "a", "b").uniform(index)


def test_smooth_noise_has_no_jumps() -> None:
    noise = Noise(7, "x")
    values = [noise.smooth(step * 0.1, 10) for step in range(5_000)]
    assert max(abs(b - a) for a, b in itertools.pairwise(values)) < 0.05
    assert max(values) > 0.5
    assert min(values) < -0.5
