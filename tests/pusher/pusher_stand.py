"""A platform with a control table, its doors, and paho clients that note what reaches them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp
import paho.mqtt.client as paho

from running import Platform, wait_for
from support import free_port

DOORS = ("http", "websocket", "websocket port", "tcp", "component")
FTP = "ftp://up:s%40cret@files.example:2121/lua-2.bin"
HTTP = "http://files.example/mcu-9.bin?a=1"
ROWS = [
    ["SP", "Set point", "设定", "OBJ", "$AdapterID-1.SP1", "21.5"],
    ["MODE", "Mode", "模式", "OBJ", "$AdapterID-2.mode.kind", "auto"],
    ["NAMED", "By uid", "按号", "OBJ", "push-5.Valve", "1"],
    ["OTHER", "Of no object", "外", "OBJ", "push-x.Out", "0"],
    ["SEALED", "Sealed", "密", "OBJ", "push-s.SP", "1"],
    ["RAW", "Custom to the terminal", "自定义", "APR", "$AdapterID-1.Buzz", ""],
    ["Reboot", "Restart", "重启", "APR", "$AdapterID-1", ""],
    ["Diag", "Self-check", "自检", "APR", "push-4", ""],
    ["AXUpgrade", "Upgrade", "升级", "APR", "$AdapterID-2", "LUA"],
    ["AWAY", "Of one that is away", "离", "OBJ", "push-away.P", "1"],
]
TERMINALS = {"push-5": paho.MQTTv5, "push-4": paho.MQTTv311, "push-x": paho.MQTTv5, "push-s": paho.MQTTv5}


def with_tcp(folder: Path) -> Platform:
    """A platform whose TCP door is open."""
    return Platform(folder, env={"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(free_port())})


class Listener:
    """A terminal that acknowledges, and keeps what it gets."""

    def __init__(self, uid: str, protocol: int, port: int) -> None:
        self.messages: list[Any] = []
        self._subscribed = threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=protocol)
        self.client.username_pw_set(f"u-{uid}", f"pin-{uid}"[:16])
        self.client.on_connect = lambda client, *_: client.subscribe(f"p2p/{uid}", 1)
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_message = lambda _client, _data, message: self.messages.append(message)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert self._subscribed.wait(10), uid

    def next(self, count: int) -> Any:
        """Message number ``count``, from 1."""
        wait_for(lambda: len(self.messages) >= count, f"message {count}")
        return self.messages[count - 1]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class Stand:
    """A started platform, filled."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform.login()
        self.tcp = int(platform.environment["TERRAZZO_TCP__PORT"])
        call = self.platform.call
        made = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        files = {"lua_file": FTP, "mcu_file": HTTP}
        config = call("create_terminal_config", name="c", **files, **made)["uid"]
        for uid in (*TERMINALS, "push-away"):
            self.platform.add_terminal(uid, config, encryption=int(uid == "push-s"))
        control = call("create_control", name="k", script=ROWS, **made)["uid"]
        mapping = call("create_mapping", name="m", script=[["T", "T", "T", "STA", "push-5.T", "x"]], **made)["uid"]
        given = {"mapping_id": mapping, "terminal_list": ["push-5", "push-4", "push-s"], **made}
        self.object_id = int(call("create_object", name="o", control_id=control, **given)["id"])
        self.bare_id = int(call("create_object", name="bare", **given)["id"])
        self.listeners = {uid: Listener(uid, protocol, self.platform.mqtt) for uid, protocol in TERMINALS.items()}

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()

    def push(self, door: str, **request: Any) -> dict[str, Any]:
        """Sends a command for an object in by one of the doors; the envelope."""
        if door == "component":
            return self.post_to_path({"project_id": 1, **request})
        message = {"action": "publish_object_command", "value": "", **request}
        match door:
            case "http":
                return self._post("/apiproxy/api", message)
            case "websocket":
                return asyncio.run(self._over_websocket(self.platform.http, message))
            case "websocket port":
                return asyncio.run(self._over_websocket(self.platform.websocket, message))
        return self._over_tcp(message)

    def post_to_path(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the pusher's path answers to exactly this body."""
        return self._post("/pusher/api/v1/publish", request)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.platform.token}"}
        request = urllib.request.Request(self.platform.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    async def _over_websocket(self, port: int, message: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.platform.token}"}
        url = f"ws://127.0.0.1:{port}/apiproxy/api"
        async with aiohttp.ClientSession(headers=headers) as http, http.ws_connect(url) as connection:
            await connection.send_json(message)
            return dict(await connection.receive_json(timeout=10))

    def _over_tcp(self, message: dict[str, Any]) -> dict[str, Any]:
        with socket.create_connection(("127.0.0.1", self.tcp), timeout=10) as connection:
            line = {"Authorization": f"Bearer {self.platform.token}", **message}
            connection.sendall(json.dumps(line).encode() + b"\n")
            with connection.makefile("rb") as answers:
                return dict(json.loads(answers.readline()))
