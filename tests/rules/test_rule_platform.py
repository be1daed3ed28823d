"""Rules on a running platform: from a terminal's report to a signed webhook and an SMS; storms, reminders, restarts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from rule_stand import SECRET, Receiver, add_rule, open_notices, report

from mqtt_bytes import login
from running import Platform, wait_for


def test_events_and_labels_are_told(platform: Platform, receiver: Receiver) -> None:
    add_rule(platform, kinds=["event", "opened", "closed"], window_s=0, **receiver.hook)
    add_rule(platform, kinds=["event"], codes=["HOT"], channel="sms", recipients=["+1"], window_s=0)
    add_rule(platform, kinds=["event"], codes=["ELSE"], channel="sms", recipients=["+1"])
    report(platform, {"t": 70, "run": 1}, {"t": 90}, {"t": 70, "run": 0})
    wait_for(lambda: receiver.told("hot") == 3, "three things are told")
    items = [item for hook in receiver.hooks for item in hook["items"]]
    assert sorted((item["kind"], item["code"], item["object"]) for item in items) == [
        ("closed", "RUN", "Boiler"),
        ("event", "HOT", "Boiler"),
        ("opened", "RUN", "Boiler"),
    ]
    assert receiver.faults == []
    wait_for(lambda: receiver.texts, "an SMS")
    assert [text.partition(" at ")[0] for text in receiver.texts] == ["Boiler: Too hot (HOT) = 90"]
    listed = platform.call("get_message_list")["data"]
    assert {each["created_by"] for each in listed} == {0}
    assert SECRET not in str(listed)


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_a_storm_is_folded(platform: Platform, receiver: Receiver) -> None:
    add_rule(platform, kinds=["event"], channel="sms", recipients=["+1"], window_s=2, template="{value} of {count}")
    report(platform, {"t": 90}, {"t": 70})
    wait_for(lambda: receiver.texts, "the first at once")
    report(platform, *({"t": value} for number in range(5) for value in (91 + number, 70)))
    wait_for(lambda: len(receiver.texts) >= 2, "the others after the window")
    assert receiver.texts == ["90 of 1", "91 of 5 (+4)"]


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_reminders_until_somebody_acknowledges_also_after_a_restart(platform: Platform, receiver: Receiver) -> None:
    uid = add_rule(
        platform,
        kinds=["event"],
        channel="sms",
        recipients=["+1"],
        window_s=0,
        repeat_s=1,
        repeat_times=100,
        template="hot",
    )
    report(platform, {"t": 90})
    wait_for(lambda: len(receiver.texts) >= 2, "a reminder")
    assert receiver.texts[:2] == ["hot", "Reminder 1: hot"]
    platform.kill()
    again = platform.again().login()
    try:
        before = len(receiver.texts)
        wait_for(lambda: len(receiver.texts) > before, "it goes on")
        event = again.call("get_event_list")["data"][0]
        again.call("acknowledge_event", id=event["id"])
        wait_for(lambda: open_notices(again) == [], "nothing is left to tell")
        count = len(receiver.texts)
        report(again, {"t": 70}, {"t": 95})
        wait_for(lambda: len(receiver.texts) > count, "the next event is told")
        assert receiver.texts.count("hot") == 2, "each event is told once"
        again.call("delete_rule", uid=uid)
    finally:
        again.stop()


@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"channel": "sms"}, "recipients: is required for sms"),
        ({"channel": "email", "recipients": ["a@x"]}, "project_id: project 1 sends no email"),
        ({"channel": "sms", "recipients": ["+1"], "project_id": 9}, "project_id: no messenger project 9"),
        ({"channel": "webhook", "secret": SECRET}, "url: is required for a webhook"),
        ({"channel": "webhook", "url": "http://x/", "secret": "short"}, "secret: expected at least 16 characters"),
        ({"channel": "webhook", "url": "file:///etc/passwd", "secret": SECRET}, "url: expected http://host/path"),
        ({"channel": "sms", "recipients": ["+1"], "template": "{x.__class__}"}, "template: {x.__class__}: unknown"),
        ({"channel": "sms", "recipients": ["+1"], "quiet_start": "25:00"}, "quiet_start: expected HH:MM"),
        ({"channel": "sms", "recipients": ["+1"], "quiet_start": "22:00"}, "quiet_end: quiet_start and quiet_end go"),
        ({"channel": "sms", "recipients": ["+1"], "repeat_s": 60}, "repeat_times: repeat_s and repeat_times go"),
        ({"channel": "pigeon", "recipients": ["+1"]}, "channel: expected one of email, sms"),
        ({"channel": "sms", "recipients": ["+1"], "kinds": ["rumour"]}, "kinds: expected an array of event, opened"),
    ],
)  # fmt: skip
def test_a_bad_rule_is_refused_by_name(shared: Platform, fields: dict[str, Any], info: str) -> None:
    answer = shared.ask("create_rule", **{"name": "r", "kinds": ["event"], **fields})
    assert answer["code"] == 10401
    assert answer["info"].startswith(info), answer["info"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("rules")
    config = folder / "terrazzo.toml"
    config.write_text('[[messenger.project]]\nid = 1\nname = "p"\nsms = { url = "http://x.example/", body = "{}" }\n')
    with Platform(folder / "data", arguments=("--config", str(config))) as started:
        yield started.login()


@pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)
def test_a_refused_terminal_is_told_of_and_an_event_gives_a_command(platform: Platform, receiver: Receiver) -> None:
    row = ["COOL", "Cool", "", "OBJ", "$AdapterID-1.cool", "1"]
    control = platform.call("create_control", name="c", script=[row])["uid"]
    item = platform.call("get_object_list")["data"][0]
    platform.call("update_object", uid=item["uid"], control_id=control)
    add_rule(platform, name="wrong", kinds=["refused"], window_s=0, **receiver.hook)
    add_rule(platform, name="cool", kinds=["event"], channel="none", command="COOL")
    add_rule(platform, name="fly", kinds=["event"], channel="none", command="FLY")
    for _ in range(3):  # a rule may be in force a moment after the answer that it is made
        with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
            client.sendall(login("m1", "u-m1", "not the pin"))
            assert client.recv(4) == b"\x20\x02\x00\x04"
        with suppress(AssertionError):
            wait_for(lambda: receiver.of("wrong"), "the refusal is told", timeout_s=10)
            break
    assert receiver.of("wrong")
    (told,) = receiver.of("wrong")[0]["items"]
    assert (told["terminal"], told["label"]) == ("m1", "refused")
    assert told["value"] == "the user name is right, the password is not the terminal's pin"
    report(platform, {"t": 90})
    wait_for(lambda: platform.call("get_command_list")["data"], "the command is in the journal")
    (command,) = platform.call("get_command_list")["data"]
    assert (command["command"], command["value"], command["created_by"]) == ("COOL", "1", 0)
    names = {each["id"]: each["name"] for each in platform.call("get_rule_list")["data"]}
    assert names[command["rule_id"]] == "cool"
    refused = wait_for(
        lambda: platform.call("get_rule_command_list", where_and=[["state", "=", "refused"]])["data"], "the other one"
    )
    assert [(names[each["rule_id"]], each["command"], each["sent"]) for each in refused] == [("fly", "FLY", None)]
    assert (refused[0]["object_id"], refused[0]["cause_id"]) == (str(item["id"]),) * 2
    assert "'FLY' is not in the object's control script" in refused[0]["reason"]
    assert receiver.faults == []
