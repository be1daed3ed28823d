"""A whole platform told live: reports, presence, commands, an object's changing terminals, a restart."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import paho.mqtt.client as paho
import pytest

from running import Platform, wait_for
from support import free_port


class Listener:
    """A TCP connection to the gateway that keeps what it is told."""

    def __init__(self, platform: Platform) -> None:
        self._socket = socket.create_connection(("127.0.0.1", int(platform.environment["TERRAZZO_TCP__PORT"])))
        self._socket.settimeout(15)
        self._lines = self._socket.makefile("rb")
        assert self.ask("ping", Authorization=f"Bearer {platform.token}")["code"] == 200

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        self._socket.sendall(json.dumps({"action": action, **fields}).encode() + b"\n")
        return self.next()

    def next(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "closed"
        return dict(json.loads(line))

    def told(self, **expected: Any) -> dict[str, Any]:
        """The next frame, whose data has these fields."""
        frame = self.next()
        assert frame["resp"] == "live", frame
        assert expected.items() <= frame["data"].items(), frame
        return frame

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


class Device:
    """A terminal over MQTT."""

    def __init__(self, platform: Platform, uid: str) -> None:
        self.uid = uid
        self.commands: list[bytes] = []
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5)
        self.client.username_pw_set(f"u-{uid}", f"pin-{uid}")
        self.client.on_message = lambda _client, _data, message: self.commands.append(message.payload)
        self.client.connect("127.0.0.1", platform.mqtt)
        self.client.loop_start()
        wait_for(self.client.is_connected, f"{uid} connects")

    def report(self, **points: Any) -> None:
        self.client.publish(f"g/{self.uid}/r", json.dumps(points), 1).wait_for_publish(10)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    tcp = {"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(free_port())}
    with Platform(tmp_path_factory.mktemp("live") / "data", env=tcp) as running:
        running.login()
        config = running.add_config()
        for uid in ("a1", "a2"):
            running.add_terminal(uid, config)
        yield running


@pytest.fixture
def listener(platform: Platform) -> Iterator[Listener]:
    connection = Listener(platform)
    yield connection
    connection.close()


def test_reports_presence_and_the_terminals_of_an_object(platform: Platform, listener: Listener) -> None:
    made = platform.call("create_object", name="press", mapping_id="", terminal_list=["a1"])
    assert listener.ask("subscribe", kinds=["grid", "terminal"], object_id=made["id"])["code"] == 200
    one, two = Device(platform, "a1"), Device(platform, "a2")
    listener.told(terminal_id="a1", change="online", protocol="MQTT 5.0")
    two.report(x=0)  # not of the object
    one.report(x=1, y={"z": True})
    frame = listener.told(terminal_id="a1", topic="g/a1/r", payload={"x": 1, "y": {"z": True}})
    stored = platform.call("get_last_grid", terminal_id="a1")["data"][0]
    assert {**stored, "terminal_id": "a1"} == frame["data"]
    item = platform.call("get_object_item", uid=made["uid"])
    platform.call("update_object", **{**item, "terminal_list": ["a2"]})
    one.report(x=2)
    two.report(x=3)
    listener.told(terminal_id="a2", payload={"x": 3})
    two.close()
    listener.told(terminal_id="a2", change="offline")
    one.close()
    platform.call("delete_object", uid=made["uid"])


def test_each_step_of_a_command(platform: Platform, listener: Listener) -> None:
    assert listener.ask("subscribe", kinds=["command"], terminal_id="a1")["code"] == 200
    platform.call("publish_terminal_command", terminal_id="a1", command="SP1", value="5")
    queued = listener.told(terminal_id="a1", command="SP1", value="5", state="queued")
    device = Device(platform, "a1")
    device.client.subscribe("p2p/a1", 1)
    states = [listener.told(uid=queued["data"]["uid"])["data"]["state"] for _ in range(2)]
    assert states == ["sent", "delivered"]
    device.close()


def over_websocket(platform: Platform, port: int, request: dict[str, Any], act: Callable[[], None], frames: int) -> Any:
    """The data of the first live frames after a subscription and an act, over a WebSocket."""

    async def follow() -> list[Any]:
        headers = {"Authorization": f"Bearer {platform.token}"}
        url = f"ws://127.0.0.1:{port}/apiproxy/api"
        async with aiohttp.ClientSession() as http, http.ws_connect(url, headers=headers) as connection:
            await connection.send_json({"action": "subscribe", **request})
            assert (await connection.receive_json(timeout=10))["code"] == 200
            await asyncio.to_thread(act)
            return [(await connection.receive_json(timeout=10))["data"] for _ in range(frames)]

    return asyncio.run(follow())


def test_reports_reach_a_subscriber_over_the_http_port_too(platform: Platform) -> None:
    device = Device(platform, "a1")
    try:
        request = {"kinds": "grid", "terminal_id": "a1"}
        [data] = over_websocket(platform, platform.http, request, lambda: device.report(x=7), 1)
    finally:
        device.close()
    assert data["payload"] == {"x": 7}


def test_what_the_mapping_makes_of_reports_reaches_a_subscriber_of_the_object(platform: Platform) -> None:
    rows = [
        ["TEMP", "Temperature", "温度", "STA", "$AdapterID-1.t", "x / 10", ""],
        ["HOT", "Hot", "热", "STA", "$AdapterID-1.t", "1 if x > 500 else 0", ""],
        ["LOAD", "Load", "负载", "STA", "$AdapterID-1.l", "", ""],
    ]
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    mapping = platform.call("create_mapping", name="oven", script=json.dumps(rows), **by)["uid"]
    made = platform.call("create_object", name="oven", mapping_id=mapping, terminal_list=["a1"])
    device = Device(platform, "a1")

    def act() -> None:
        device.report(t=215, l=3)
        device.report(l=4)  # none of the keys
        device.report(t=612)

    request = {"kinds": ["mosaic"], "object_id": made["id"], "keys": ["TEMP", "HOT"]}
    try:
        frames = over_websocket(platform, platform.websocket, request, act, 2)
    finally:
        device.close()
    assert [frame["value"] for frame in frames] == [{"TEMP": 21.5, "HOT": 0}, {"TEMP": 61.2, "HOT": 1}]
    assert {frame["object_id"] for frame in frames} == {str(made["id"])}
    platform.call("delete_object", uid=made["uid"])


def test_a_number_from_before_a_restart_is_a_gap(tmp_path: Path) -> None:
    tcp = {"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(free_port())}
    with Platform(tmp_path / "data", env=tcp) as first:
        listener = Listener(first.login())
        seq = listener.ask("subscribe", kinds=["terminal"])["result"]["seq"]
        first.add_terminal("a1", first.add_config())
        seq = listener.told(terminal_id="a1", change="created")["seq"]
        listener.close()
        assert first.stop() == 0
        with first.again() as second:
            listener = Listener(second.login())
            assert listener.ask("subscribe", kinds=["terminal"], since=seq)["code"] == 200
            gap = listener.next()["gap"]
            assert (gap["since"], gap["lost"], gap["reason"]) == (seq, None, "restart")
            assert gap["seq"] > seq
            listener.close()
