"""``python -m terrazzo_broker``: the command, and clients that share no code with it."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as paho
import pytest

from raw_client import RawClient
from support import require_program

TIMEOUT_S = 15


@contextmanager
def standalone(*options: str) -> Iterator[int]:
    """A broker process; its port. It has to end in order."""
    command = [sys.executable, "-m", "terrazzo_broker", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on 127.0.0.1:"), line
            yield int(line.rsplit(":", 1)[1])
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with standalone("--allow-anonymous") as bound:
        yield bound


def test_without_permission_nobody_gets_in():
    async def attempt(port: int) -> int:
        client = await RawClient.open(port)
        code = int((await client.connect("c")).reason_code)
        await client.finish()
        return code

    with standalone() as port:
        assert asyncio.run(attempt(port)) == 0x87


def test_bad_options_are_named():
    command = [sys.executable, "-m", "terrazzo_broker", "--max-keepalive", "70000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, "max_keepalive_s" in done.stderr) == (1, True)


async def test_longest_keep_alive():
    with standalone("--allow-anonymous", "--max-keepalive", "30") as port:
        client = await RawClient.open(port)
        assert (await client.connect("c", keep_alive=60)).server_keep_alive == 30
        await client.finish()


class Paho:
    """A paho client that waits."""

    def __init__(self, port: int, protocol: int, client_id: str) -> None:
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=protocol)
        self.connected, self.subscribed, self.received = threading.Event(), threading.Event(), threading.Condition()
        self.messages: list[tuple[str, bytes, int]] = []
        self.client.on_connect = lambda *_: self.connected.set()
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.client.on_message = self._on_message
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert self.connected.wait(TIMEOUT_S)

    def _on_message(self, client, userdata, message) -> None:
        with self.received:
            self.messages.append((message.topic, message.payload, message.qos))
            self.received.notify_all()

    def wait(self, count: int) -> list[tuple[str, bytes, int]]:
        """The messages, once there are ``count``."""
        with self.received:
            assert self.received.wait_for(lambda: len(self.messages) >= count, TIMEOUT_S), self.messages
            return self.messages

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("protocol", [paho.MQTTv31, paho.MQTTv311, paho.MQTTv5])
def test_paho(port, protocol):
    topic = f"paho/{protocol}"
    subscriber, publisher = Paho(port, protocol, f"s{protocol}"), Paho(port, protocol, f"p{protocol}")
    try:
        subscriber.client.subscribe(topic, 2)
        assert subscriber.subscribed.wait(TIMEOUT_S)
        expected = [(topic, b"%d" % number, number % 3) for number in range(30)]
        for _, payload, qos in expected:
            publisher.client.publish(topic, payload, qos).wait_for_publish(TIMEOUT_S)
        assert sorted(subscriber.wait(30)) == sorted(expected)
    finally:
        subscriber.close()
        publisher.close()


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
def test_mosquitto_clients(port, version):
    subscribe, publish = require_program("mosquitto_sub"), require_program("mosquitto_pub")
    topic = f"mosquitto/{version}"
    common = ["-p", str(port), "-V", version, "-q", "2", "-t", topic]
    subprocess.run([publish, *common, "-r", "-m", "kept"], check=True, timeout=TIMEOUT_S)
    with subprocess.Popen([subscribe, *common, "-C", "3", "-v", "-d"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert next(line for line in lines if line.startswith(topic)) == f"{topic} kept\n"
        subprocess.run([publish, *common, "-l"], input="one\ntwo\n", text=True, check=True, timeout=TIMEOUT_S)
        assert [line for line in lines if line.startswith(topic)] == [f"{topic} one\n", f"{topic} two\n"]
        assert process.wait(TIMEOUT_S) == 0


@pytest.mark.filterwarnings("default")  # amqtt's own
def test_amqtt_client(port):
    from amqtt.client import MQTTClient

    async def exchange() -> list[bytes]:
        subscriber, publisher = MQTTClient("amqtt-s"), MQTTClient("amqtt-p")
        await subscriber.connect(f"mqtt://127.0.0.1:{port}/")
        await publisher.connect(f"mqtt://127.0.0.1:{port}/")
        assert await subscriber.subscribe([("amqtt/#", 2)]) == [2]
        for qos in (0, 1, 2):
            await publisher.publish("amqtt/a", b"%d" % qos, qos)
        payloads = []
        for _ in range(3):
            message = await subscriber.deliver_message(timeout_duration=TIMEOUT_S)
            assert message is not None
            payloads.append(bytes(message.publish_packet.payload.data))
        await publisher.disconnect()
        await subscriber.disconnect()
        return payloads

    assert sorted(asyncio.run(exchange())) == [b"0", b"1", b"2"]


def modes(folder: Path) -> dict[str, int]:
    """The permissions of a folder and all in it."""
    found = {str(each.relative_to(folder)): each for each in (folder, *folder.rglob("*"))}
    return {name: stat.S_IMODE(each.lstat().st_mode) for name, each in found.items() if not each.is_symlink()}


def test_the_data_folder_is_its_owners_alone(tmp_path: Path):
    """One that is made, and one that was there before, open to others as a version before has left it."""
    data = tmp_path / "data"
    umask = os.umask(0o022)
    try:
        with standalone("--allow-anonymous", "--data", str(data)):
            new = modes(data)
        for path in (data, *data.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (tmp_path / "elsewhere").write_text("not ours")
        (data / "link").symlink_to(tmp_path / "elsewhere")
        with standalone("--allow-anonymous", "--data", str(data), "--log-level", "error"):
            old = modes(data)
    finally:
        os.umask(umask)
    for found in (new, old):
        assert len(found) > 3
        assert not {name: oct(mode) for name, mode in found.items() if mode & 0o077}
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o644, "what a link points to is somebody's"
