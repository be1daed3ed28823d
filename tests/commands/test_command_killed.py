"""``kill -9`` between the journal and the publish, and later: nothing lost, nothing twice to who answered."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from killed_platform import STEPS
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from length import rounds
from running import Platform, wait_for
from terrazzo.client.errors import ClientError

ROUNDS = rounds(2 * len(STEPS), 25 * len(STEPS))


class Mortal(Platform):
    """A platform that dies at one step of a command, once it is armed."""

    program = (str(Path(__file__).with_name("killed_platform.py")),)

    @classmethod
    def born(cls, data: Path, *, step: str, ports: tuple[int, ...] = ()) -> Mortal:
        """Starts one on a folder; the same ports again after a death."""
        return cls(data, ports=ports, env={"DIE": step})

    def arm(self) -> None:
        self.process.send_signal(signal.SIGUSR1)


class Terminal:
    """Answers each command at once, keeps its session, comes back by itself; notes what came after its answer."""

    def __init__(self, port: int) -> None:
        self.deliveries: Counter[bytes] = Counter()
        self.twice: list[bytes] = []  # came although its answer had been acknowledged
        self._answers: dict[int, bytes] = {}
        self._acknowledged: set[bytes] = set()
        self.ready = threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, "t1", protocol=paho.MQTTv5)
        self.client.username_pw_set("u-t1", "pin-t1")
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = lambda client, *_: client.subscribe("p2p/t1", 1)
        self.client.on_subscribe = lambda *_: self.ready.set()
        self.client.on_disconnect = lambda *_: self.ready.clear()
        self.client.on_message = self._on_message
        self.client.on_publish = lambda _c, _d, mid, *_: self._acknowledged.add(self._answers.get(mid, b""))
        session = Properties(PacketTypes.CONNECT)
        session.SessionExpiryInterval = 3_600
        self.client.connect("127.0.0.1", port, clean_start=False, properties=session)
        self.client.loop_start()

    def _on_message(self, client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        correlation = bytes(message.properties.CorrelationData)
        self.deliveries[correlation] += 1
        if correlation in self._acknowledged:
            self.twice.append(correlation)
        properties = Properties(PacketTypes.PUBLISH)
        properties.CorrelationData = correlation
        info = client.publish("g/t1/n", b'{"Result":"ok"}', 1, properties=properties)
        self._answers[info.mid] = correlation

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def test_each_command_arrives_once_whenever_the_platform_dies(tmp_path: Path) -> None:
    data = tmp_path / "data"
    platform = Mortal.born(data, step=STEPS[0])
    platform.login().add_terminal("t1", platform.add_config())
    terminal = Terminal(platform.mqtt)
    try:
        for number in range(ROUNDS):
            wait_for(terminal.ready.is_set, "the terminal is there")
            platform.arm()
            order = {"terminal_id": "t1", "command": "STEP", "value": number, "idempotency_key": f"order {number}"}
            with contextlib.suppress(ClientError):  # it died before it could answer
                platform.call("publish_terminal_command", **order)
            platform.process.wait(20)
            terminal.ready.clear()
            platform.kill()
            platform = Mortal.born(data, step=STEPS[(number + 1) % len(STEPS)], ports=platform.ports)
            platform.login().call("publish_terminal_command", **order)  # as somebody does who got no answer

        def ended() -> bool:
            page = platform.call("get_command_list", page_size=100)
            return page["total_records"] == ROUNDS and all(row["state"] == "answered" for row in page["data"])

        wait_for(ended, "all commands answered", timeout_s=60)
    finally:
        terminal.close()
        platform.stop()
    assert len(terminal.deliveries) == ROUNDS, "none is lost"
    assert not terminal.twice, "none comes again once its answer was acknowledged"
    assert set(terminal.deliveries.values()) == {1}, terminal.deliveries
