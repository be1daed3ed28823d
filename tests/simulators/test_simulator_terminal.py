"""What a terminal says and how it obeys, without any connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from terrazzo_simulators.command import Command, CommandError, parse_command
from terrazzo_simulators.spec import TerminalSpec
from terrazzo_simulators.terminal import Reaction, Terminal

NOW_S = 1_767_225_600.0


def terminal(terminal_type: str = "Adapter-II", **options: Any) -> Terminal:
    return Terminal(TerminalSpec(uid="sim-1", username="u", pin="p", type=terminal_type), seed=1, **options)


def tell(one: Terminal, values: dict[str, Any], correlation: bytes | None = None) -> Reaction:
    command = parse_command(values, correlation=correlation, response_topic="g/sim-1/n" if correlation else None)
    return one.obey(command, NOW_S)


def values_of(one: Terminal, at_s: float = NOW_S + 5) -> dict[str, Any]:
    return one.report(at_s)[0].points


def test_it_starts_with_information_versions_and_parameters() -> None:
    channels = {message.channel: message.points for message in terminal().start(NOW_S)}
    assert list(channels) == ["i", "v", "p"]
    assert channels["i"]["Type"] == "Adapter-II"
    assert channels["v"] == {"mcu_version": "1.4.0", "lua_version": "2.1.0", "Time": "2026-01-01T00:00:00.000Z"}
    assert channels["p"]["SETPOINT"] == 7.5


def test_control_of_a_setting_drives_the_machine() -> None:
    one = terminal()
    reaction = tell(one, {"Act": "Control", "BOOT": 0})
    assert reaction.messages[0].points["Result"] == "ok"
    assert reaction.messages[0].channel == "n"
    assert reaction.messages[1].channel == "p"
    points = values_of(one)
    assert (points["BOOT"], points["STATE"], points["POWER"]) == (0, "stop", 0)


@pytest.mark.parametrize("value", [3, 2.5, "open", True, None])
def test_control_of_any_other_point_shows_in_later_reports(value: Any) -> None:
    one = terminal()
    tell(one, {"Act": "Control", "VALVE": value})
    assert values_of(one)["VALVE"] == value


def test_control_reaches_into_nested_points() -> None:
    one = terminal("Adapter-X")
    tell(one, {"Act": "Control", "U.L2": 0})
    points = values_of(one)
    assert points["U"]["L2"] == 0
    assert points["U"]["L1"] > 0


def test_a_command_is_carried_out_once_per_correlation() -> None:
    one = terminal()
    first = tell(one, {"Act": "Control", "SETPOINT": 8}, correlation=b"c1")
    tell(one, {"Act": "Control", "SETPOINT": 9}, correlation=b"c2")
    again = tell(one, {"Act": "Control", "SETPOINT": 8}, correlation=b"c1")
    assert again.repeated
    assert not first.repeated
    assert again.messages == first.messages[:1]
    assert values_of(one)["SETPOINT"] == 9


def test_the_answer_goes_where_the_command_asked_with_its_mark() -> None:
    (answer, *_) = tell(terminal(), {"Act": "Diag"}, correlation=b"\x00\x01").messages
    assert (answer.topic, answer.correlation) == ("g/sim-1/n", b"\x00\x01")


def test_diag_answers_a_self_check() -> None:
    one = terminal()
    one.start(NOW_S - 60)
    points = tell(one, {"Act": "Diag"}).messages[0].points
    assert points["Result"] == "ok"
    assert points["Uptime"] == 60
    assert points["mcu_version"] == "1.4.0"
    assert -90 < points["Signal"] < -50


def test_reboot_keeps_counters_and_settings() -> None:
    one = terminal()
    before = values_of(one)
    assert tell(one, {"Act": "Reboot"}).reboots
    one.start(NOW_S + 10)
    after = values_of(one, NOW_S + 15)
    assert after["ENERGY"] >= before["ENERGY"]
    assert after["HOURS"] >= before["HOURS"]


@pytest.mark.parametrize(
    ("unit", "url", "version"),
    [
        ("LUA", "http://host/files/lua-2.2.0.bin", "2.2.0"),
        ("MCU", "ftp://10.0.0.1/mcu_3.0.1.hex", "3.0.1"),
        ("MCU", "http://10.0.0.1/firmware.bin", "1.4.1"),
    ],
)
def test_an_upgrade_reports_the_new_version_when_it_is_done(unit: str, url: str, version: str) -> None:
    one = terminal()
    reaction = tell(one, {"Act": "AXUpgrade", "Unit": unit, "URL": url, "User": "", "Pwd": ""})
    assert reaction.upgrades
    assert one.versions == {"mcu_version": "1.4.0", "lua_version": "2.1.0"}
    (message,) = one.finish_upgrade(NOW_S + 3)
    assert message.channel == "v"
    assert message.points[f"{unit.lower()}_version"] == version
    assert one.finish_upgrade(NOW_S + 6) == []


def test_an_upgrade_can_fail_on_purpose() -> None:
    one = terminal(upgrade_failure=1.0)
    tell(one, {"Act": "AXUpgrade", "Unit": "LUA", "URL": "http://h/lua-9.9.9.bin"})
    (message,) = one.finish_upgrade(NOW_S)
    assert (message.channel, message.points["Result"]) == ("n", "failed")
    assert one.versions["lua_version"] == "2.1.0"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"Act": "Control"}, "names no point"),
        ({"Act": "Control", "SETPOINT": "high"}, "SETPOINT takes a number"),
        ({"Act": "Control", "SETPOINT": 1000}, "SETPOINT must be from 2 to 12"),
        ({"Act": "Control", "X": [1]}, "X must be a number, a string"),
        ({"Act": "Control", "X": float("nan")}, "X must be a finite number"),
        ({"Act": "Control", "X": 2**70}, "X must fit into 64 bits"),
        ({"Act": "Control", "X": "\ud800"}, "not Unicode"),
        ({"Act": "AXUpgrade", "Unit": "FPGA", "URL": "http://h/x"}, "Unit must be LUA or MCU"),
        ({"Act": "AXUpgrade", "Unit": "LUA"}, "URL must be an http or ftp address"),
    ],
)
def test_a_command_that_cannot_be_carried_out_is_answered_with_the_reason(values: dict[str, Any], reason: str) -> None:
    one = terminal()
    before = dict(one.machine.settings)
    (answer,) = tell(one, values).messages
    assert answer.points["Result"] == "error"
    assert reason in answer.points["Reason"]
    assert one.machine.settings == before
    json.dumps(values_of(one), allow_nan=False).encode()


def test_of_several_settings_all_are_set_or_none() -> None:
    one = terminal()
    (answer,) = tell(one, {"Act": "Control", "SETPOINT": 9, "BOOT": 7}).messages
    assert answer.points["Result"] == "error"
    assert one.machine.settings == {"BOOT": 1.0, "SETPOINT": 7.5}


@pytest.mark.parametrize("act", [None, 5, "", "reboot", ["Reboot"], {"a": "b" * 5_000}])
def test_an_unknown_act_is_refused_shortly(act: Any) -> None:
    with pytest.raises(CommandError, match="Act must be one of") as caught:
        parse_command({"Act": act})
    assert len(str(caught.value)) < 200


def test_answers_are_remembered_in_bounded_memory() -> None:
    one = terminal()
    for index in range(400):
        one.obey(Command(act="Diag", correlation=str(index).encode()), NOW_S)
    assert one.obey(Command(act="Diag", correlation=b"399"), NOW_S).repeated
    assert not one.obey(Command(act="Diag", correlation=b"0"), NOW_S).repeated


def test_alarms_are_published_when_one_changes_and_only_then() -> None:
    one = terminal("Adapter-X")
    tell(one, {"Act": "Control", "LIMIT": 500})
    assert [message.channel for message in one.report(NOW_S)] == ["r"]
    tell(one, {"Act": "Control", "LIMIT": 1})
    report, alarm = one.report(NOW_S + 5)
    assert alarm.channel == "a"
    assert alarm.points["ALARM_OVERLOAD"] == 1
    assert report.points["POWER"] > 1
    assert [message.channel for message in one.report(NOW_S + 10)] == ["r"]
    tell(one, {"Act": "Control", "LIMIT": 500})
    assert one.report(NOW_S + 15)[1].points["ALARM_OVERLOAD"] == 0


def test_a_configuration_is_taken_reported_with_its_version_and_kept() -> None:
    one = terminal()
    config = {"a": {"b": 1, "c": [1, 2]}, "SETPOINT": 8.5}
    answer, report = tell(one, {"Act": "Config", "Version": "v1", "Config": config}).messages
    assert (answer.points["Result"], answer.points["Version"]) == ("ok", "v1")
    assert report.channel == "p"
    assert (report.points["a.b"], report.points["SETPOINT"], report.points["Version"]) == (1, 8.5, "v1")
    assert "a.c" not in report.points
    (parameters,) = [each for each in one.start(NOW_S) if each.channel == "p"]
    assert parameters.points["Version"] == "v1"


def test_older_firmware_knows_no_configuration() -> None:
    one = Terminal(TerminalSpec(uid="sim-1", username="u", pin="p", configurable=False), seed=1)
    (answer,) = tell(one, {"Act": "Config", "Version": "v1", "Config": {}}).messages
    assert answer.points["Result"] == "error"
    assert "Version" not in next(each for each in one.start(NOW_S) if each.channel == "p").points


def test_a_configuration_that_is_none_is_refused() -> None:
    for values in ({}, {"Version": 1, "Config": {}}, {"Version": "v1", "Config": "x"}):
        (answer,) = tell(terminal(), {"Act": "Config", **values}).messages
        assert answer.points["Reason"] == "Config needs a Version and a Config"
