"""The plant of the demo moved to servers and back, and served there: it answers alike, and a command is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from migration_stand import environment, in_store, migrate, rows_of

from demo_week import copy_demo
from running import Platform, wait_for

UIDS = ("demo-chiller-1", "demo-meter-main")
TO = "TERRAZZO_TO_"
PIN = "pin-drill"


def test_the_plant_moved(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, postgresql: Any, influxd: Any
) -> None:
    copy_demo(tmp_path_factory, tmp_path / "data")
    with Platform(tmp_path / "data") as running:
        log_in(running)
        running.add_terminal("drill", running.add_config("of the drill"), username="u-drill", pin=PIN)
        before = history(running)
        refused = migrate(tmp_path / "data", tmp_path / "there", **environment(TO, influx=(influxd.url, "plant")))
        assert refused.returncode == 2
        assert "a platform runs on" in refused.stderr
        assert not (tmp_path / "there").exists()
        running.stop(timeout_s=60)
    servers = {"database": postgresql.database(), "influx": (influxd.url, "plant")}
    there = migrate(tmp_path / "data", tmp_path / "there", "--json", **environment(TO, **servers))
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told["records"] > 10_000
    assert told["unreadable"] == 0
    back = migrate(tmp_path / "there", tmp_path / "back", **environment(**servers))
    assert back.returncode == 0, back.stderr
    assert rows_of(tmp_path / "back") == rows_of(tmp_path / "data")
    assert in_store(tmp_path / "back", {}) == in_store(tmp_path / "data", {})
    for folder, given in (("there", environment(**servers)), ("back", {})):
        drill(tmp_path / folder, given, before)


def drill(folder: Path, given: Mapping[str, str], before: Any) -> None:
    with Platform(folder, env=given) as running:
        log_in(running)
        assert history(running) == before
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, "drill", protocol=paho.MQTTv5)
        client.username_pw_set("u-drill", PIN)
        client.on_message = answer
        client.connect("127.0.0.1", running.mqtt)
        client.loop_start()
        try:
            wait_for(client.is_connected, "the terminal logs in")
            client.subscribe("p2p/drill", 1)
            running.call("publish_terminal_command", terminal_id="drill", command="Diag", value="")
            wait_for(lambda: states(running) == ["answered"], "the command is answered")
        finally:
            client.disconnect()
            client.loop_stop()
        running.stop(timeout_s=60)


def answer(client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
    properties = paho.Properties(paho.PacketTypes.PUBLISH)
    properties.CorrelationData = message.properties.CorrelationData
    client.publish("g/n", b'{"Result":"ok","Code":0}', 1, properties=properties)


def states(running: Platform) -> list[str]:
    found = running.call("get_command_list", terminal_id="drill")
    return [each["state"] for each in (found["data"] if isinstance(found, dict) else found)]


def log_in(running: Platform) -> None:
    lines = (running.data / "demo-passwords").read_text().splitlines()
    running.login("demo-admin", dict(line.split(" ") for line in lines)["demo-admin"])


def history(running: Platform) -> list[Any]:
    """Pages of what terminals reported, what was made of it, and what happened, in a range that is over."""
    span = {"start_time": "2020-01-01 00:00:00", "end_time": "2036-01-01 00:00:00", "page_index": 1}
    grid = [running.call("get_grid_list", terminal_id=uid, topic=["r"], page_size=500, **span) for uid in UIDS]
    objects = running.call("get_object_list", page_index=1)["data"]
    mosaic = [
        running.call("get_mosaic_list", object_id=each["uid"], keys="*", page_size=200, **span) for each in objects[:3]
    ]
    for each in objects:
        del each["is_boot"]  # without a variable BOOT it holds for minutes after the newest report
    return [grid, mosaic, objects]
