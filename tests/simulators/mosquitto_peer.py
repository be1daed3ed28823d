"""A real Mosquitto with passwords, and an observer who stands where a platform would."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support import free_port, require_program

USERS = {"observer": "sees-all", **{f"sim-{n:05d}": f"pin-{n:05d}" for n in range(1, 301)}}


class Mosquitto:
    """One broker process; ``stop`` and ``start`` make an outage."""

    def __init__(self, folder: Path, *, anonymous: bool = False) -> None:
        self.program = require_program("mosquitto")
        self.folder, self.port = folder, free_port()
        passwords = folder / "passwords"
        passwords.write_text("".join(f"{name}:{secret}\n" for name, secret in USERS.items()))
        subprocess.run([require_program("mosquitto_passwd"), "-U", str(passwords)], check=True)
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"allow_anonymous {'true' if anonymous else 'false'}",
            "user root",  # started by root it would drop to a user who cannot read the password file
            "max_queued_messages 0",
            "max_inflight_messages 0",
        ]
        if not anonymous:
            lines.append(f"password_file {passwords}")
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        with (self.folder / "mosquitto.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.program, "-c", str(self.folder / "mosquitto.conf"), "-v"], stdout=log, stderr=log
            )
        with observer(self.port, deadline_s=10):
            return

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def mosquitto(folder: Path, *, anonymous: bool = False) -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, anonymous=anonymous)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


class Seen(NamedTuple):
    topic: str
    payload: bytes
    correlation: bytes | None

    @property
    def points(self) -> dict[str, Any]:
        return json.loads(self.payload)


class Observer:
    """Collects what arrives on ``g/#``, and sends commands."""

    def __init__(self, port: int) -> None:
        self.seen: list[Seen] = []
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.client.username_pw_set("observer", USERS["observer"])
        self.client.on_connect = lambda *_: self.client.subscribe("g/#", qos=1)
        self.client.on_subscribe = lambda *_: self._ready.set()
        self.client.on_message = self._on_message
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def wait_ready(self, deadline_s: float) -> None:
        assert self._ready.wait(deadline_s), "the observer could not subscribe"

    def _on_message(self, client: Any, userdata: Any, message: mqtt.MQTTMessage) -> None:
        correlation = getattr(message.properties, "CorrelationData", None)
        with self._changed:
            self.seen.append(Seen(message.topic, message.payload, correlation))
            self._changed.notify_all()

    def wait_for(self, wanted: Callable[[list[Seen]], Any], deadline_s: float = 20) -> Any:
        """What ``wanted`` finds in all that was seen, as soon as it finds something."""
        with self._changed:
            found = self._changed.wait_for(lambda: wanted(self.seen), deadline_s)
        assert found, f"not seen within {deadline_s} s; topics: {sorted({seen.topic for seen in self.seen})}"
        return found

    def on(self, topic: str) -> list[Seen]:
        with self._changed:
            return [seen for seen in self.seen if seen.topic == topic]

    def command(self, uid: str, payload: bytes | dict[str, Any], correlation: bytes | None = None) -> None:
        properties = None
        if correlation is not None:
            properties = Properties(PacketTypes.PUBLISH)
            properties.CorrelationData = correlation
            properties.ResponseTopic = f"g/{uid}/n"
        body = payload if isinstance(payload, bytes) else json.dumps(payload)
        self.client.publish(f"p2p/{uid}", body, qos=1, properties=properties).wait_for_publish(10)


@contextmanager
def observer(port: int, deadline_s: float = 10) -> Iterator[Observer]:
    until_s = time.monotonic() + deadline_s
    while True:
        try:
            watching = Observer(port)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until_s, "the broker did not come up"
            time.sleep(0.02)
    try:
        watching.wait_ready(deadline_s)
        yield watching
    finally:
        watching.client.disconnect()
        watching.client.loop_stop()
