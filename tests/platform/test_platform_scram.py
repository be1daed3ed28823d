"""SCRAM against the whole platform, by MQTT.js: the right pin, a wrong one, a plain password, 3.1.1."""

from __future__ import annotations

from typing import Any

import pytest

from mqttjs import run_mqttjs
from running import Platform, wait_for

UID = "scram-1"
NOT_AUTHORIZED = {4: {4, 5}, 5: {0x86, 0x87}}


@pytest.fixture(scope="module", autouse=True)
def terminal(platform: Platform, config_uid: str) -> None:
    platform.add_terminal(UID, config_uid, dixie=1)


def login(platform: Platform, **options: Any) -> dict[str, Any]:
    common = {"port": platform.mqtt, "clientId": UID, "username": f"u-{UID}", "password": f"pin-{UID}"}
    return run_mqttjs("login", **{**common, **options})


@pytest.mark.parametrize("method", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_the_right_pin_lets_in_and_the_platform_proves_that_it_knows_it(platform: Platform, method: str) -> None:
    outcome = login(platform, method=method, reauthenticate=True)
    assert (outcome["connected"], outcome["serverVerified"], outcome["reauthenticated"]) == (True, True, True)


def test_a_wrong_pin_is_refused(platform: Platform) -> None:
    outcome = login(platform, method="SCRAM-SHA-1", password="pin-scram-2")
    assert not outcome["connected"]
    assert outcome["reason"] in NOT_AUTHORIZED[5]


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_plain_password_is_refused_even_when_it_is_right(platform: Platform, protocol: int) -> None:
    outcome = login(platform, protocolVersion=protocol)
    assert not outcome["connected"]
    assert outcome["reason"] in NOT_AUTHORIZED[protocol]


def test_what_a_scram_terminal_reports_is_stored_and_commands_reach_it(platform: Platform) -> None:
    platform.call("publish_terminal_command", terminal_id=UID, command="Valve", value="1.5")
    outcome = run_mqttjs(
        "publish_subscribe",
        port=platform.mqtt,
        clientId=UID,
        username=f"u-{UID}",
        password=f"pin-{UID}",
        method="SCRAM-SHA-1",
        subscribe=f"p2p/{UID}",
        publish=[{"topic": "g/r", "payload": '{"Valve": 1}', "qos": 1}, {"topic": "g/r", "payload": "{", "qos": 1}],
        receive=1,
        answer='{"Result": "ok"}',
    )
    assert [published["reason"] for published in outcome["published"]] == [0, 0x99]
    assert [message["payload"] for message in outcome["received"]] == ['{"Act":"Control","Valve":1.5}']
    (record,) = platform.call("get_last_grid", terminal_id=UID, topic=["r"])["data"]
    assert (record["payload"], record["topic"]) == ({"Valve": 1}, f"g/{UID}/r")
    (reject,) = platform.call("get_reject_list", terminal_id=UID)["data"]
    assert reject["text"] == "{"
    # An answer is acknowledged when it is stored; the journal of commands follows.
    (command,) = wait_for(lambda: commands(platform, "answered"), "the journal has the answer")
    assert command["answer"] == {"Result": "ok"}


def commands(platform: Platform, state: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = platform.call("get_command_list", terminal_id=UID, state=state)["data"]
    return found
