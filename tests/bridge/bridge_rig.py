"""A platform with a bridge, a gate that the link goes through, and clients of either broker."""

from __future__ import annotations

import json
import select
import socket
import threading
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from running import Platform, wait_for
from support import free_port

PROTOCOLS = {"3.1.1": mqtt.MQTTv311, "5.0": mqtt.MQTTv5}


class Gate:
    """A TCP relay on loopback that can be shut, which also cuts what goes through it."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._open = threading.Event()
        self._ended = threading.Event()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener: socket.socket | None = None
        self._threads: list[threading.Thread] = []

    def open(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._open.set()
        self._start(self._accept, self._listener)
        return self

    def shut(self) -> None:
        self._open.clear()
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for pair in list(self._pairs):
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._threads.clear()

    def _start(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while self._open.is_set():
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), 5)
            except OSError:
                near.close()
                continue
            self._pairs.add((near, far))
            self._start(self._relay, near, far)

    def _relay(self, near: socket.socket, far: socket.socket) -> None:
        others = {near: far, far: near}
        try:
            while True:
                for ready in select.select([near, far], [], [])[0]:
                    data = ready.recv(65_536)
                    if not data:
                        return
                    others[ready].sendall(data)
        except OSError:
            return
        finally:
            self._pairs.discard((near, far))
            near.close()
            far.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()


class Peer:
    """A paho client that remembers what it gets and waits for what it asks."""

    def __init__(
        self,
        port: int,
        client_id: str = "",
        *,
        username: str | None = None,
        password: str | None = None,
        protocol: str = "5.0",
        will: tuple[str, bytes] | None = None,
    ) -> None:
        self.messages: list[mqtt.MQTTMessage] = []
        self._connected, self._subscribed = threading.Event(), threading.Event()
        self._refusal = ""
        self._reasons: dict[int, int] = {}
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=PROTOCOLS[protocol])
        self.client.max_inflight_messages_set(0)
        if username is not None:
            self.client.username_pw_set(username, password)
        if will is not None:
            self.client.will_set(*will, qos=1)
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_message = lambda _client, _data, message: self.messages.append(message)
        self.client.on_publish = self._on_publish
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert self._connected.wait(10), "no CONNACK"
        assert not self._refusal, self._refusal

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._refusal = str(reason) if reason.is_failure else ""
        self._connected.set()

    def _on_publish(self, client: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        self._reasons[mid] = reason.value

    def subscribe(self, *filters: str, qos: int = 1) -> Self:
        self._subscribed.clear()
        self.client.subscribe([(each, qos) for each in filters])
        assert self._subscribed.wait(10), "no SUBACK"
        return self

    def publish(
        self, topic: str, payload: bytes | str, *, qos: int = 1, retain: bool = False, **properties: Any
    ) -> int:
        """Sends and waits for the acknowledgement; its reason code."""
        info = self.client.publish(topic, payload, qos=qos, retain=retain, properties=publish_properties(**properties))
        info.wait_for_publish(20)
        assert info.is_published(), f"{topic}: no acknowledgement"
        return self._reasons.get(info.mid, 0)

    def publish_all(self, topic: str, payloads: list[str], *, qos: int = 1) -> None:
        """Sends all, then waits for all acknowledgements."""
        infos = [self.client.publish(topic, each, qos=qos) for each in payloads]
        for info in infos:
            info.wait_for_publish(30)
            assert info.is_published(), "no acknowledgement"

    def payloads(self, topic: str | None = None) -> list[str]:
        return [each.payload.decode() for each in list(self.messages) if topic in (None, each.topic)]

    def wait_for(self, count: int, *, timeout_s: float = 20) -> list[str]:
        wait_for(
            lambda: len(self.messages) >= count, f"{count} messages, got {len(self.messages)}", timeout_s=timeout_s
        )
        return self.payloads()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def publish_properties(**values: Any) -> Properties | None:
    if not values:
        return None
    properties = Properties(PacketTypes.PUBLISH)
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


def bridge_toml(url: str, *, name: str = "hq", **keys: Any) -> str:
    """A configuration with one bridge; ``in_`` stands for ``in``."""
    lines = ["[[bridge]]", f'name = "{name}"', f'url = "{url}"', "retry_s = 1"]
    for key, value in keys.items():
        lines.append(f"{key.rstrip('_')} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def start_platform(folder: Path, toml: str, *, http: int = 0) -> Platform:
    """A platform with this configuration and, from its first start on, the terminals t1 and t2; ``http``: its port."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "terrazzo.toml"
    file.write_text(toml)
    ports = (http, free_port(), free_port(), free_port()) if http else ()
    platform = Platform(folder / "data", arguments=("--config", str(file)), ports=ports).login()
    config_uid = platform.add_config()
    for uid in ("t1", "t2"):
        platform.add_terminal(uid, config_uid, topic="pub:r,a,v,p,i,n;sub:#")
    return platform


def terminal(platform: Platform, uid: str = "t1", **options: Any) -> Peer:
    return Peer(platform.mqtt, uid, username=f"u-{uid}", password=f"pin-{uid}", **options)


def stored(platform: Platform, uid: str = "t1") -> list[Any]:
    """The payloads of a terminal's records, oldest first."""
    found: list[Any] = []
    page = 1
    while True:
        answer = platform.call(
            "get_grid_list", terminal_id=uid, page_index=page, page_size=1000,
            start_time="2020-01-01 00:00:00", end_time="2099-01-01 00:00:00",
        )  # fmt: skip
        found += [each["payload"] for each in answer["data"]]
        if page >= answer["total_pages"]:
            return found[::-1]
        page += 1


def metric(platform: Platform, name: str, bridge: str = "hq") -> float:
    """One of the bridge's figures in ``/metrics``."""
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    prefixes = tuple(f'terrazzo_bridge_{name}{suffix}{{bridge="{bridge}"}} ' for suffix in ("", "_total"))
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(prefixes))


def wait_connected(platform: Platform, bridge: str = "hq") -> None:
    wait_for(lambda: metric(platform, "connected", bridge) == 1, f"bridge {bridge} connected")
