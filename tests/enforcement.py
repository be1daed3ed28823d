"""How long a changed record takes to be in force: a real client, a running platform, and the change over HTTP."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from running import Platform

PATIENCE_S = 5.0
ADMINISTRATIVE, BAD_CREDENTIALS, NOT_AUTHORIZED, BAD_PAYLOAD = 0x98, 0x86, 0x87, 0x99

CHANGES: dict[str, dict[str, Any]] = {
    "pin": {"pin": "another pin"},
    "username": {"username": "another name"},
    "access": {"access": "sub"},
    "topic": {"topic": "pub:a"},
    "is_available": {"is_available": 0},
    "mode": {"mode": "auto"},
    "dixie": {"dixie": 1},
    "encryption": {"encryption": 1},
    "deletion": {},
}
"""What is changed of a connected terminal."""


UNTHROTTLED = {"TERRAZZO_LIMITS__LOGIN_FAILURES": "0"}
"""Environment of the platform: every measurement ends with a refused login from the same address."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Until a change was in force, in milliseconds; the second is negative where it was so before the answer came."""

    after_request_ms: float
    after_answer_ms: float


class Device:
    """A paho client (MQTT 5) that notes when it was thrown out, and what its publishes were answered."""

    def __init__(self, platform: Platform, uid: str) -> None:
        self._platform = platform
        self._uid = uid
        self._events: queue.Queue[tuple[str, int, float]] = queue.Queue()
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5, reconnect_on_failure=False
        )
        self._client.username_pw_set(f"u-{uid}", f"pin-{uid}"[:16])
        self._client.on_connect = lambda _c, _d, _f, reason, _p: self._note("connect", reason.value)
        self._client.on_disconnect = lambda _c, _d, _f, reason, _p: self._note("end", reason.value)
        self._client.on_publish = lambda _c, _d, _m, reason, _p: self._note("publish", reason.value)

    def _note(self, what: str, code: int) -> None:
        self._events.put((what, code, time.perf_counter()))

    def _next(self, wanted: str) -> tuple[int, float]:
        while True:
            what, code, at = self._events.get(timeout=PATIENCE_S)
            if what == wanted:
                return code, at

    def connect(self) -> int:
        """Logs in with the credentials that the terminal was made with; the CONNACK's reason."""
        properties = Properties(PacketTypes.CONNECT)
        self._client.connect("127.0.0.1", self._platform.mqtt, clean_start=True, properties=properties)
        self._client.loop_start()
        return self._next("connect")[0]

    def publish(self, topic: str) -> int:
        """The reason of the PUBACK."""
        self._client.publish(topic, b'{"T": 1}', 1)
        return self._next("publish")[0]

    def ended(self) -> tuple[int, float]:
        """Waits for the end of the connection: its reason and its time."""
        return self._next("end")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def delay_of_change(platform: Platform, config: str, uid: str, change: str) -> Delay:
    """Changes a connected terminal, waits until it is thrown out, and checks that the old way is refused."""
    platform.add_terminal(uid, config)
    record = platform.call("get_terminal_item", uid=uid)
    with Device(platform, uid) as device:
        assert device.connect() == 0
        asked = time.perf_counter()
        if change == "deletion":
            platform.call("delete_terminal", uid=uid)
        else:
            platform.call("update_terminal", **{**record, **CHANGES[change]})
        answered = time.perf_counter()
        reason, at = device.ended()
        assert reason == ADMINISTRATIVE, hex(reason)
    with Device(platform, uid) as again:
        _check_refused(change, again)
    if change != "deletion":
        platform.call("delete_terminal", uid=uid)
    return Delay((at - asked) * 1e3, (at - answered) * 1e3)


def _check_refused(change: str, device: Device) -> None:
    code = device.connect()
    if change in ("access", "topic"):
        assert (code, device.publish("g/r")) == (0, NOT_AUTHORIZED)
    elif change == "encryption":
        assert (code, device.publish("g/r")) == (0, BAD_PAYLOAD)
    else:
        assert code in (BAD_CREDENTIALS, NOT_AUTHORIZED), hex(code)


def delay_of_terminal_list(platform: Platform, config: str, uid: str) -> Delay:
    """Takes a terminal out of the object that it shares with a router, which may then no longer speak for it."""
    router = f"{uid}-router"
    platform.add_terminal(uid, config)
    platform.add_terminal(router, config, is_route=1)
    mapping = platform.call("create_mapping", name=uid, script=[], created_by=1, last_modified_by=1, is_available=1)
    made = platform.call("create_object", name=uid, mapping_id=mapping["uid"], terminal_list=[uid, router])
    with Device(platform, router) as device:
        assert device.connect() == 0
        assert device.publish(f"g/{uid}/r") < 0x80
        asked = time.perf_counter()
        platform.call("update_object", uid=made["uid"], terminal_list=[router])
        answered = time.perf_counter()
        refused = until_refused(lambda: device.publish(f"g/{uid}/r") == NOT_AUTHORIZED)
    return Delay((refused - asked) * 1e3, (refused - answered) * 1e3)


def until_refused(is_refused: Callable[[], bool]) -> float:
    """When the first attempt was refused."""
    deadline = time.perf_counter() + PATIENCE_S
    while not is_refused():
        assert time.perf_counter() < deadline, "is never refused"
    return time.perf_counter()
