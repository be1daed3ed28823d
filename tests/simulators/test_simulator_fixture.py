"""The installed fixture ``terrazzo_fleet``, used as a plain test of someone's platform would."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mosquitto_peer import Mosquitto, Observer

from support import free_port
from terrazzo_simulators.live_fleet import NotConnected, PublishRefused
from terrazzo_simulators.pytest_plugin import FleetFactory

PUMP = {"uid": "pump", "username": "sim-00001", "pin": "pin-00001"}
HALL = {"uid": "hall", "username": "sim-00002", "pin": "pin-00002", "protocol": "3.1.1", "format": "msgpack"}


def test_it_connects_publishes_and_receives(
    terrazzo_fleet: FleetFactory, mosquitto: Mosquitto, watching: Observer
) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP, HALL])
    fleet.publish("pump", "r", {"TEMP": 21.5})
    fleet.publish("hall", "a", {"ALARM": 1}, qos=2)
    watching.wait_for(lambda messages: {m.topic for m in messages} >= {"g/pump/r", "g/hall/a"})
    assert watching.on("g/pump/r")[0].points == {"TEMP": 21.5}
    watching.command("pump", {"Act": "Control", "VALVE": 1}, correlation=b"c")
    watching.command("pump", {"Act": "Diag"})
    first, second = fleet.wait_command("pump"), fleet.wait_command("pump")
    assert (first.act, first.values, first.correlation) == ("Control", {"VALVE": 1}, b"c")
    assert second.act == "Diag"
    assert [command.act for command in fleet.commands("pump")] == ["Control", "Diag"]
    assert fleet.commands("hall") == []
    answers = watching.wait_for(lambda messages: [m for m in messages if m.topic == "g/pump/n"])
    assert answers[0].points["VALVE"] == 1
    assert fleet.statistics.acknowledged >= 2


def test_terminals_are_quiet_unless_told_otherwise(
    terrazzo_fleet: FleetFactory, mosquitto: Mosquitto, watching: Observer
) -> None:
    terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[HALL], interval_s=0.1)
    watching.wait_for(lambda messages: sum(m.topic == "g/hall/r" for m in messages) > 3)
    assert not [m for m in watching.seen if m.topic.startswith("g/pump/")]


def test_a_cut_terminal_comes_back(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    fleet.cut("pump")
    fleet.publish("pump", "r", {"AFTER": 1})
    assert fleet.statistics.connects == 2


def test_not_connected_in_time_says_who_and_why(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto) -> None:
    started_s = time.monotonic()
    with pytest.raises(NotConnected, match=r"within 1 s: bad: login refused: 0x87"):
        terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[{**PUMP, "uid": "bad", "pin": "no"}, HALL], timeout_s=1)
    with pytest.raises(NotConnected, match="refused"):
        terrazzo_fleet("127.0.0.1", free_port(), terminals=[PUMP], timeout_s=0.5)
    assert time.monotonic() - started_s < 10


def test_waiting_for_a_command_that_does_not_come_ends(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    with pytest.raises(TimeoutError, match=r"pump: no command within 0\.2 s"):
        fleet.wait_command("pump", timeout_s=0.2)


def test_a_message_that_cannot_be_sent_is_said(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    with pytest.raises(ValueError, match="no terminal 'other'"):
        fleet.publish("other", "r", {})
    mosquitto.stop()
    with pytest.raises(TimeoutError):
        fleet.publish("pump", "r", {"A": 1}, timeout_s=0.5)
    with pytest.raises(PublishRefused, match="was not sent"):
        fleet.publish("pump", "r", {"A": 1}, qos=0)
    mosquitto.start()


def test_bytes_go_out_as_they_are(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto, watching: Observer) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    fleet.publish_payload("pump", "g/pump/r", b"\xc1")
    watching.wait_for(lambda messages: [m for m in messages if m.payload == b"\xc1"])


def test_bad_terminals_are_named(terrazzo_fleet: FleetFactory) -> None:
    with pytest.raises(ValueError, match=r"terminals\[1\]: pin is missing"):
        terrazzo_fleet("127.0.0.1", 1, terminals=[PUMP, {"uid": "x", "username": "x"}])


def test_stop_may_be_called_early_and_twice(terrazzo_fleet: FleetFactory, mosquitto: Mosquitto) -> None:
    fleet = terrazzo_fleet("127.0.0.1", mosquitto.port, terminals=[PUMP])
    fleet.stop()
    fleet.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        fleet.publish("pump", "r", {"A": 1})


def test_a_project_of_its_own_finds_the_fixture(mosquitto: Mosquitto, tmp_path: Path) -> None:
    (tmp_path / "test_platform.py").write_text(
        f"""
def test_platform(terrazzo_fleet):
    fleet = terrazzo_fleet("127.0.0.1", {mosquitto.port}, terminals=[{json.dumps(PUMP)}])
    fleet.publish("pump", "r", {{"TEMP": 20}})
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "-W", "error", "test_platform.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout
