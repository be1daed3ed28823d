"""Campaigns on a running platform with a few simulated terminals: each action, each way to end, kill -9."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign_stand import SHA256, add_firmware, add_terminals, create, fares, item, reaches, terminals, upload

from open_stores import open_rocks
from running import Platform, wait_for
from terrazzo.client.errors import ActionError
from terrazzo.ports.store import Record
from terrazzo.times import now_us
from terrazzo_simulators.faults import Faults
from terrazzo_simulators.pytest_plugin import FleetFactory

QUICK: dict[str, Any] = {"download_bytes": 16_384, "upgrade_s": 0.05, "reboot_s": 0.05}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, each_database_of_module: str) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("campaigns") / "data") as running:
        yield running.login()


def only_command(platform: Platform, terminal: str) -> dict[str, Any]:
    (command,) = platform.call("get_command_list", terminal_id=terminal)["data"]
    return dict(command)


def test_each_terminal_fetches_the_file_and_reports_the_version(
    platform: Platform, terrazzo_fleet: FleetFactory
) -> None:
    config = add_firmware(platform)
    specs = add_terminals(platform, config, ["a1", "a2"])
    uid = create(platform, config)
    assert item(platform, uid)["progress"] == {"pending": 2, "sent": 0, "downloading": 0, "done": 0, "failed": 0}
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, **QUICK)
    platform.call("start_campaign", uid=uid)
    record = reaches(platform, uid, "done")
    assert (record["progress"]["done"], record["version"], record["wave"]) == (2, "3.0.0", 1)
    assert record["started"] <= record["ended"]
    command = fleet.wait_command("a1")
    assert (command.act, command.values["Unit"]) == ("AXUpgrade", "LUA")
    assert command.values["URL"].startswith(f"{platform.url}/firmware/1/")
    one = terminals(platform, uid)["a1"]
    assert (one["state"], one["attempts"], one["version"]) == ("done", 1, "3.0.0")
    assert one["sent"] <= one["ended"]
    assert fleet._fleet.devices["a1"]._download.sha256 == SHA256
    with pytest.raises(ActionError, match="is done and can't become running"):
        platform.call("start_campaign", uid=uid)


def test_who_has_the_version_is_not_told(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform, "2.1.0")  # what simulated terminals begin with
    specs = add_terminals(platform, config, ["b1"])
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, **QUICK)
    wait_for(lambda: platform.call("get_last_grid", terminal_id="b1", topic="v")["data"], "b1 has said its version")
    uid = create(platform, config)
    platform.call("start_campaign", uid=uid)
    reaches(platform, uid, "done")
    one = terminals(platform, uid)["b1"]
    assert (one["state"], one["attempts"], one["reason"]) == ("done", 0, "had the version already")
    assert fleet.commands("b1") == []


def test_pause_keeps_commands_back_and_resume_gives_them(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform)
    specs = add_terminals(platform, config, ["c1"])
    uid = create(platform, config)
    with pytest.raises(ActionError, match="is created and can't become paused"):
        platform.call("pause_campaign", uid=uid)
    platform.call("start_campaign", uid=uid)
    wait_for(lambda: terminals(platform, uid)["c1"]["command_uid"], "a command waits for c1")
    assert terminals(platform, uid)["c1"]["state"] == "pending"
    platform.call("pause_campaign", uid=uid)
    wait_for(lambda: not terminals(platform, uid)["c1"]["command_uid"], "it is taken back")
    assert terminals(platform, uid)["c1"]["reason"] == "the campaign was paused"
    wait_for(lambda: only_command(platform, "c1")["state"] == "failed", "the journal of commands says so too")
    command = only_command(platform, "c1")
    assert (command["reason"], command["sent"]) == ("the campaign was paused", None)
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, **QUICK)
    wait_for(lambda: platform.call("get_last_grid", terminal_id="c1", topic="v")["data"], "c1 is there")
    assert fleet.commands("c1") == []
    platform.call("resume_campaign", uid=uid)
    reaches(platform, uid, "done")
    assert terminals(platform, uid)["c1"]["failures"] == 0


def test_failures_abort_and_the_next_wave_is_spared(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform)
    specs = add_terminals(platform, config, [f"d{number}" for number in range(4)])
    uid = create(platform, config, waves=[50, 50], failure_percent=50, failure_minimum=1, retries=0)
    faults = Faults(upgrade_defect=1.0)
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, faults=faults, **QUICK)
    platform.call("start_campaign", uid=uid)
    record = reaches(platform, uid, "aborted")
    assert "have failed" in record["reason"]
    fares(platform, uid, "d0", "failed")
    fares(platform, uid, "d1", "failed")
    assert terminals(platform, uid)["d0"]["reason"] == "the new program does not start"
    second = [each for each in terminals(platform, uid).values() if each["wave"] == 2]
    assert [(each["state"], each["attempts"]) for each in second] == [("pending", 0)] * 2
    assert fleet.commands("d2") == fleet.commands("d3") == []
    assert platform.call("get_campaign_terminal_list", uid=uid, state="failed")["total_records"] == 2


def test_a_power_cut_is_followed_by_another_attempt(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform)
    specs = add_terminals(platform, config, ["e1"])
    uid = create(platform, config, retries=0)
    platform.call("update_campaign", uid=uid, retries=50)
    faults, small = Faults(upgrade_power_cut=1.0), QUICK | {"download_bytes": 8_192}  # five pieces
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, faults=faults, **small)
    platform.call("start_campaign", uid=uid)
    reaches(platform, uid, "done")
    one = terminals(platform, uid)["e1"]
    assert one["attempts"] == one["failures"] + 1 == fleet.statistics.power_cuts + 1
    assert fleet.statistics.power_cuts >= 1
    assert fleet._fleet.devices["e1"]._download.sha256 == SHA256


def test_an_attempt_has_its_time(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform)
    specs = add_terminals(platform, config, ["f1"])
    uid = create(platform, config, retries=0, timeout_s=1)
    terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, download_bytes=16_384, upgrade_s=30)
    platform.call("start_campaign", uid=uid)
    one = fares(platform, uid, "f1", "failed")
    assert one["reason"] == "did not report version 3.0.0 within 1 s"
    assert reaches(platform, uid, "done")["progress"]["failed"] == 1


def test_abort_spares_who_was_not_told(platform: Platform) -> None:
    config = add_firmware(platform)
    add_terminals(platform, config, ["g1", "g2"])
    uid = create(platform, config, terminal_list=["g2"])
    assert list(terminals(platform, uid)) == ["g2"]
    platform.call("start_campaign", uid=uid)
    wait_for(lambda: terminals(platform, uid)["g2"]["command_uid"], "a command waits")
    with pytest.raises(ActionError, match="is running; abort it first"):
        platform.call("delete_campaign", uid=uid)
    platform.call("abort_campaign", uid=uid)
    wait_for(lambda: not terminals(platform, uid)["g2"]["command_uid"], "it is taken back")
    assert terminals(platform, uid)["g2"]["state"] == "pending"
    wait_for(lambda: only_command(platform, "g2")["state"] == "failed", "the journal of commands says so too")
    platform.call("delete_campaign", uid=uid)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"unit": "EEPROM"}, "unit: "),
        ({"unit": "MCU"}, "config_id: the configuration names no mcu_file"),
        ({"waves": [50, 40]}, "waves: the per cents add up to 90"),
        ({"terminal_list": ["nobody"]}, "terminal_list: no terminal 'nobody'"),
        ({"terminal_list": []}, "terminal_list: there is no terminal with this configuration"),
        ({"failure_percent": 101}, "failure_percent"),
        ({"config_id": "nowhere"}, "config_id"),
    ],
)
def test_campaigns_that_can_not_be(platform: Platform, fields: dict[str, Any], reason: str) -> None:
    config = add_firmware(platform)
    with pytest.raises(ActionError, match=reason):
        create(platform, config, **fields)


def test_what_was_settled_stays(platform: Platform) -> None:
    config = add_firmware(platform)
    add_terminals(platform, config, ["h1"])
    uid = create(platform, config)
    platform.call("update_campaign", **item(platform, uid))
    with pytest.raises(ActionError, match="version: was settled when the campaign was created"):
        platform.call("update_campaign", uid=uid, version="9")


def test_a_stored_file_serves_single_commands_too(platform: Platform, terrazzo_fleet: FleetFactory) -> None:
    config = add_firmware(platform, "4.0.0", mcu_file=upload(platform, "mcu-9.0.0.bin"))
    specs = add_terminals(platform, config, ["i1"])
    fleet = terrazzo_fleet("127.0.0.1", platform.mqtt, terminals=specs, **QUICK)
    platform.call("publish_terminal_command", terminal_id="i1", command="AXUpgrade", value="MCU")
    assert "/mcu-9.0.0.bin?terminal=i1&" in fleet.wait_command("i1").values["URL"]
    version = {"mcu_version": "9.0.0"}
    wait_for(lambda: _reports(platform, "i1", version), "the new version")


def _reports(platform: Platform, uid: str, points: dict[str, str]) -> bool:
    records = platform.call("get_last_grid", terminal_id=uid, topic="v")["data"]
    return any(points.items() <= record["payload"].items() for record in records)


def test_a_campaign_goes_on_after_a_kill(
    tmp_path: Path, each_database_of_module: str, terrazzo_fleet: FleetFactory
) -> None:
    with Platform(tmp_path / "data") as first:
        first.login()
        config = add_firmware(first)
        specs = add_terminals(first, config, [f"k{number}" for number in range(12)])
        uid = create(first, config, waves=[50, 50])
        slow = {"download_bytes": 4_096, "upgrade_s": 0.5, "reboot_s": 0.05}
        fleet = terrazzo_fleet("127.0.0.1", first.mqtt, terminals=specs, **slow)
        first.call("start_campaign", uid=uid)
        wait_for(lambda: any(each["state"] != "pending" for each in terminals(first, uid).values()), "under way")
        first.kill()
        with first.again() as second:
            second.login()
            reaches(second, uid, "done", timeout_s=60)
            assert item(second, uid)["progress"]["done"] == 12
            assert all(each["attempts"] <= 2 for each in terminals(second, uid).values())
        assert fleet.statistics.downloads == 12


def test_what_a_terminal_said_just_before_a_kill_counts(tmp_path: Path, terrazzo_fleet: FleetFactory) -> None:
    """Its notice is stored, and nobody has looked at it."""
    with Platform(tmp_path / "data") as first:
        first.login()
        config = add_firmware(first)
        specs = add_terminals(first, config, ["l1"])
        uid = create(first, config, retries=0)
        fleet = terrazzo_fleet("127.0.0.1", first.mqtt, terminals=specs, download_bytes=16_384, upgrade_s=60)
        first.call("start_campaign", uid=uid)
        fares(first, uid, "l1", "downloading")
        fleet.stop()
        first.kill()
        notice = {"Act": "AXUpgrade", "Unit": "LUA", "Result": "failed", "Reason": "no room"}
        asyncio.run(_store(first.data, Record("g/l1/n", now_us(), json.dumps(notice).encode())))
        with first.again() as second:
            second.login()
            assert fares(second, uid, "l1", "failed")["reason"] == "no room"


async def _store(data: Path, record: Record) -> None:
    store = await open_rocks(data / "series")
    await store.append([record])
    await store.close()
