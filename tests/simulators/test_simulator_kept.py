"""Reports that a terminal has kept: at whole steps, in order, first of all, over connections that break."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from mosquitto_peer import Mosquitto, Observer

from running import wait_for
from terrazzo_simulators.device import Habits
from terrazzo_simulators.equipment import MACHINES
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.kept import kept_messages
from terrazzo_simulators.link import LinkOptions
from terrazzo_simulators.spec import TerminalSpec, parse_spec
from terrazzo_simulators.terminal import Terminal

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z, a Thursday
DAY_S = 86_400.0


def spec(**fields: Any) -> TerminalSpec:
    return parse_spec({"uid": "sim-00001", "username": "sim-00001", "pin": "pin-00001", "kept_step_s": 600, **fields})


def iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


def reports(given: TerminalSpec) -> list[dict[str, Any]]:
    found = kept_messages(given, Terminal(given, seed=1), lambda: NOW_S)
    return [message.points for messages in found for message in messages if message.channel == "r"]


def test_kept_reports_are_at_whole_steps_up_to_now() -> None:
    found = reports(spec(kept_since=iso(NOW_S - 3_700)))
    times = [datetime.fromisoformat(points["Time"]).timestamp() for points in found]
    assert times == [NOW_S - 3_600 + 600 * number for number in range(7)]


def test_whoever_goes_on_makes_the_same_steps_and_no_counter_falls() -> None:
    whole = reports(spec(kept_since=iso(NOW_S - DAY_S)))
    first = reports(spec(kept_since=iso(NOW_S - DAY_S), kept_until=iso(NOW_S - DAY_S / 2)))
    last = {name: value for name, value in first[-1].items() if isinstance(value, int | float)}
    second = reports(spec(kept_since=iso(NOW_S - DAY_S / 2 + 1), last=last))
    assert [each["Time"] for each in first + second] == [each["Time"] for each in whole]
    energy = [each["ENERGY"] for each in first + second]
    assert energy == sorted(energy)
    assert energy[-1] == pytest.approx(whole[-1]["ENERGY"], rel=1e-3)


def test_without_a_beginning_nothing_was_kept() -> None:
    assert reports(spec()) == []


@pytest.mark.parametrize("terminal_type", sorted(MACHINES))
def test_a_machine_goes_on_from_what_it_showed(terminal_type: str) -> None:
    one = Terminal(spec(type=terminal_type), seed=1)
    points = one.report(NOW_S)[0].points
    last = {name: value for name, value in points.items() if name in one.machine.counters}
    assert "ENERGY" in last
    other = Terminal(spec(type=terminal_type, uid="sim-00002", last=last, rated=33), seed=1)
    assert other.machine.rated == 33
    assert other.report(NOW_S)[0].points.items() >= last.items()
    assert [message.channel for message in other.report(NOW_S)][:1] == ["r"]


def test_alarms_are_told_once_by_whoever_goes_on() -> None:
    """One that was there before the end may be gone."""
    assert [each.channel for each in Terminal(spec(last={"ENERGY": 1}), seed=1).report(NOW_S)] == ["r", "a"]
    assert [each.channel for each in Terminal(spec(), seed=1).report(NOW_S)] == ["r"]


def test_a_line_works_in_shifts() -> None:
    found = reports(spec(uid="demo-line-1", type="Other", kept_since=iso(NOW_S), kept_until=iso(NOW_S + 7 * DAY_S)))
    by_state: dict[str, list[dict[str, Any]]] = {}
    for points in found:
        by_state.setdefault(points["STATE"], []).append(points)
    assert {"run", "idle", "changeover", "jam"} <= set(by_state)
    assert all(6 <= datetime.fromisoformat(each["Time"]).hour < 22 for each in by_state["run"])
    assert not [each for each in by_state["run"] if datetime.fromisoformat(each["Time"]).weekday() == 6]
    count = [each["COUNT"] for each in found]
    assert count == sorted(count)
    assert count[-1] - count[0] > 500_000


async def test_what_was_kept_comes_before_what_is_live(mosquitto: Mosquitto, watching: Observer) -> None:
    since = iso(time.time() - 400 * 60)
    given = spec(kept_since=since, kept_step_s=60, interval_s=0.1)
    fleet = Fleet([given], FleetOptions(link=LinkOptions(port=mosquitto.port), habits=Habits(backoff_s=0.1)))

    def times(messages: list[Any]) -> list[str]:
        return [each.points["Time"] for each in messages if each.topic == "g/sim-00001/r"]

    async with fleet.running():
        await asyncio.to_thread(watching.wait_for, lambda messages: len(times(messages)) > 60)
        fleet.devices["sim-00001"].cut()
        found = await asyncio.to_thread(
            watching.wait_for, lambda messages: times(messages) if len(set(times(messages))) > 410 else None
        )
    kept = [each for each in dict.fromkeys(found) if each.endswith(":00.000Z")]
    assert kept[:400] == sorted(kept[:400]), "in order, over a connection that broke"
    assert len(kept) >= 400


def test_a_fleet_ends_with_whoever_began_it(mosquitto: Mosquitto) -> None:
    options = ["run", "--port", str(mosquitto.port), "--count", "1", "--ends-with-input", "--summary", "0.1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "terrazzo_simulators", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    lines = iter(process.stdout.readline, "")
    wait_for(lambda: "connected 1/1" in next(lines), "it is connected")
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    process.stdout.close()
