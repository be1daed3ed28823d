"""Replay as operators use it: a served platform, a terminal over MQTT, the action and the command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from paho.mqtt import publish

from influx_server import InfluxServer
from loaded_process import run_loaded_text
from running import PASSWORD, Platform, wait_for

BEFORE = [["T", "T", "T", "STA", "$AdapterID-1.T", "", ""]]
AFTER = [
    ["T", "T", "T", "STA", "$AdapterID-1.T", "x + 273", ""],
    ["HOT", "", "", "EVNT", "$AdapterID-1.T", "", "x > 2"],
]


_numbers = count(1)


@pytest.fixture(scope="module")
def platform(
    tmp_path_factory: pytest.TempPathFactory, each_database_of_module: str, request: pytest.FixtureRequest
) -> Iterator[Platform]:
    """SQLite with the embedded store, and PostgreSQL with InfluxDB."""
    folder = tmp_path_factory.mktemp("replay")
    settings = {"TERRAZZO_STORE__KIND": "embedded"}
    if each_database_of_module == "postgresql":
        server: InfluxServer = request.getfixturevalue("influxd")
        settings = {
            "TERRAZZO_STORE__KIND": "influxdb",
            "TERRAZZO_STORE__URL": server.url,
            "TERRAZZO_STORE__DATABASE": folder.name,
        }
    with Platform(folder / "data", env=settings) as running:
        running.login()
        yield running


@pytest.fixture
def object_id(platform: Platform) -> str:
    """An object of one test, whose terminal has reported four times, and whose mapping was changed then."""
    call = platform.client.call
    uid = f"r{next(_numbers)}"
    authors = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    login = {"mode": "pwd", "access": "all", "username": uid, "pin": "p"}
    call(
        "create_terminal",
        uid=uid,
        name="r",
        type="Other",
        config_id=platform.client.call("create_terminal_config", name="c", **authors)["uid"],
        **login,
        **authors,
    )
    mapping = call("create_mapping", **authors, name="m", script=BEFORE)["uid"]
    made = str(call("create_object", **authors, name="o", mapping_id=mapping, terminal_list=[uid])["id"])
    client: Any = {"auth": {"username": uid, "password": "p"}, "hostname": "127.0.0.1", "port": platform.mqtt}
    for value in (1, 2, 3, 4):
        report = json.dumps({"T": value, "Time": f"2026-01-0{value}T00:00:00Z"})
        publish.single(f"g/{uid}/r", report, qos=1, client_id=uid, **client)
    call("update_mapping", **authors, uid=mapping, name="m", script=AFTER)
    return made


def terrazzo(platform: Platform, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TERRAZZO_PASSWORD": PASSWORD, "COLUMNS": "160"}
    return run_loaded_text(["-m", "terrazzo", *arguments, "--url", platform.url], env=env)


def values(platform: Platform, object_id: str) -> list[Any]:
    """Of all days, the oldest first."""
    days = {"start_time": "2026-01-01 00:00:00", "end_time": "2026-02-01 00:00:00"}
    found = platform.client.call("get_mosaic_list", object_id=object_id, keys=["T"], **days)
    return [each["T"] for each in reversed(found["data"])]


def test_the_command_counts_and_then_does_it(platform: Platform, object_id: str) -> None:
    span = ("--from", "2026-01-02 00:00:00", "--to", "2026-01-03T00:00:00Z")
    dry = terrazzo(platform, "replay", object_id, *span, "--dry-run")
    counts = f"of object {object_id}: done: 3 reports; mosaic 2 -> 2, events 0 -> 1, labels 0 -> 0"
    assert (dry.returncode, dry.stdout.partition(" ")[0]) == (0, "replay"), dry.stderr
    assert dry.stdout.endswith(f"{counts}, nothing was changed\n")
    done = terrazzo(platform, "replay", object_id, *span)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"{counts}\n")
    assert values(platform, object_id) == [1, 275, 276, 4]
    found = platform.client.call("get_replay_list", object_id=object_id)["data"]
    assert [(each["dry_run"], each["state"], each["position"]) for each in found] == [
        (0, "done", "2026-01-03 00:00:00"),
        (1, "done", "2026-01-03 00:00:00"),
    ]


def test_the_action_up_to_now_and_the_audit_log(platform: Platform, object_id: str) -> None:
    call = platform.client.call
    replay_id = call("replay", object_id=object_id, start_time="2026-01-01 00:00:00")["id"]
    wait_for(lambda: call("get_replay_item", id=replay_id)["ended"], "the replay ends")
    item = call("get_replay_item", id=str(replay_id))
    assert (item["state"], item["end_time"], item["username"]) == ("done", None, "admin")
    assert (item["mosaic_after"], item["events_after"]) == (4, 1)
    assert values(platform, object_id) == [274, 275, 276, 277]
    assert [event["code"] for event in call("get_event_list", object_id=object_id)["data"]] == ["HOT"]
    told = call("get_audit_list", entity="object")["data"][0]
    assert (told["action"], told["uid"], told["after"]["dry_run"]) == ("replay", object_id, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("99999", "--from", "2026-01-02 00:00:00"), "object_id: no record '99999'"),
        (("1", "--from", "yesterday"), "start_time: 'yesterday' is not a time"),
        (("1", "--from", "2026-01-02 00:00:00", "--to", "2026-01-01 00:00:00"), "start_time: is after end_time"),
    ],
)
def test_the_command_says_what_is_wrong(
    platform: Platform, object_id: str, options: tuple[str, ...], said: str
) -> None:
    found = terrazzo(platform, "replay", *(object_id if each == "1" else each for each in options))
    assert found.returncode == 2
    assert said in found.stderr
    assert len(found.stderr.splitlines()) == 1
