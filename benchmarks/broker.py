"""The broker beside Mosquitto and amqtt: one run, the same load generator, a table of rates and ratios.

``python benchmarks/broker.py [--seconds 3] [--only fan-in] [--peers terrazzo,mosquitto,amqtt]``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from broker_load import Subscriber, connect

from mqtt_bytes import field as encode
from mqtt_bytes import frame

LOAD = Path(__file__).with_name("broker_load.py")
PAYLOAD_BYTES = 110


@dataclass(frozen=True)
class Scenario:
    """Publishers and subscribers; topics are ``f/<4 digits>``."""

    name: str
    qos: int
    publishers: int
    subscribers: int
    topic_filter: str  # {:04d} is the subscriber's number
    topic: str = "f/{:04d}"
    window: int = 50
    granted: int | None = None  # the subscription's QoS where it isn't the publishers'

    @property
    def subscribed_qos(self) -> int:
        """The QoS that messages arrive with."""
        return self.qos if self.granted is None else self.granted


def scenarios() -> list[Scenario]:
    """What is measured."""
    found = []
    for qos in (0, 1, 2):
        found.append(Scenario(f"fan-in 50 to 1, QoS {qos}", qos, 50, 1, "f/+"))
        found.append(Scenario(f"fan-out 1 to 500, QoS {qos}", qos, 1, 500, "f/+", window=20))
    found.append(Scenario("fan-in 50 to 1, QoS 1 to 0", 1, 50, 1, "f/+", granted=0))
    found.append(Scenario("p2p 200 to 200, QoS 0", 0, 200, 200, "f/{:04d}"))
    found.append(Scenario("p2p 200 to 200, QoS 1", 1, 200, 200, "f/{:04d}", window=10))
    return found


@dataclass
class Peer:
    """A running broker."""

    name: str
    port: int
    process: subprocess.Popen[str]
    rows: dict[str, Any] = field(default_factory=dict)

    def cpu_s(self) -> float:
        """CPU seconds so far, children included."""
        process = psutil.Process(self.process.pid)
        return sum(sum(each.cpu_times()[:2]) for each in [process, *process.children(recursive=True)])

    def memory_bytes(self) -> int:
        """Resident memory."""
        return psutil.Process(self.process.pid).memory_info().rss


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Peer]:
    """Starts a broker, waits until it accepts, ends it."""
    port = free_port()
    process = subprocess.Popen(
        command(name, port, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    try:
        deadline = time.monotonic() + 15
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"{name} doesn't start")
            time.sleep(0.05)
        yield Peer(name, port, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def command(name: str, port: int, folder: Path) -> list[str]:
    """How each peer is started, with anonymous access and no persistence."""
    if name == "mosquitto":
        config = folder / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest none\n")
        found = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        return [found, "-c", str(config)]
    if name == "amqtt":
        config = folder / "amqtt.yaml"
        config.write_text(
            f"listeners:\n  default:\n    type: tcp\n    bind: 127.0.0.1:{port}\n"
            "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin:\n    allow_anonymous: true\n"
        )
        return [str(Path(sys.executable).with_name("amqtt")), "-c", str(config)]
    return [sys.executable, "-m", "terrazzo_broker", "--port", str(port), "--allow-anonymous", "--log-level", "error"]


class Load:
    """One load process."""

    def __init__(self, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(LOAD), json.dumps(options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ready(self) -> None:
        """Waits until it is connected."""
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit("a load process failed")

    def tell(self, word: str) -> None:
        """Sends a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def mark(self) -> dict[str, float]:
        """The counts now."""
        self.tell("mark")
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a load process ended")
        return json.loads(line)

    def end(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()


def measure(peer: Peer, scenario: Scenario, seconds: float) -> tuple[float, float]:
    """Messages a second received, and the broker's CPU microseconds a message."""
    topic_bytes = len(scenario.topic.format(0))
    loads = []
    try:
        subscriber = Load(
            role="subscribe",
            port=peer.port,
            count=scenario.subscribers,
            topic=scenario.topic_filter,
            topic_bytes=topic_bytes,
            qos=scenario.subscribed_qos,
            payload=PAYLOAD_BYTES,
        )
        loads.append(subscriber)
        subscriber.ready()
        publisher = Load(
            role="publish",
            port=peer.port,
            count=scenario.publishers,
            topic=scenario.topic,
            qos=scenario.qos,
            window=scenario.window,
            payload=PAYLOAD_BYTES,
        )
        loads.append(publisher)
        publisher.ready()
        publisher.tell("go")
        time.sleep(0.5)
        first, cpu_s = subscriber.mark(), peer.cpu_s()
        time.sleep(seconds)
        last, cpu_s = subscriber.mark(), peer.cpu_s() - cpu_s
    finally:
        for load in loads:
            load.end()
    count = last["received"] - first["received"]
    return count / (last["time"] - first["time"]), cpu_s / max(count, 1) * 1e6


def latency_us(peer: Peer, count: int = 2000) -> tuple[float, float]:
    """p50 and p99 of a message from one connection to another, one at a time."""
    publisher, receiver = connect(peer.port, "lp", 4), connect(peer.port, "ls", 4)
    Subscriber(receiver, "l/t", qos=0, size=1, version=4)
    packet = frame(0x30, encode(b"l/t") + b"x" * PAYLOAD_BYTES)
    samples = []
    for _ in range(count):
        started = time.perf_counter()
        publisher.sendall(packet)
        got = 0
        while got < len(packet):
            got += len(receiver.recv(4096))
        samples.append((time.perf_counter() - started) * 1e6)
    publisher.close()
    receiver.close()
    return statistics.median(samples), sorted(samples)[int(count * 0.99)]


def connects_per_second(peer: Peer, count: int = 1000) -> float:
    """CONNECT to CONNACK and away, one after the other."""
    started = time.monotonic()
    for index in range(count):
        connect(peer.port, f"c{index}", 4).close()
    return count / (time.monotonic() - started)


def idle_bytes(peer: Peer, count: int) -> float:
    """Resident bytes a connection that does nothing."""
    before = peer.memory_bytes()
    held = [connect(peer.port, f"idle{index}", 4) for index in range(count)]
    time.sleep(1)
    grown = peer.memory_bytes() - before
    for sock in held:
        sock.close()
    return grown / count


def compare(names: list[str], options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Message rates by scenario and peer."""
    table: dict[str, dict[str, float]] = {}
    for scenario in scenarios():
        if options.only not in scenario.name:
            continue
        for name in names:
            with running(name, folder) as peer:
                rate, cpu_us = measure(peer, scenario, options.seconds)
            print(f"{scenario.name:28} {name:10} {rate:12,.0f} msg/s  {cpu_us:8.2f} us CPU a message", flush=True)
            table.setdefault(scenario.name, {})[name] = rate
    return table


def print_ratios(table: dict[str, dict[str, float]]) -> None:
    """Terrazzo's rate as a multiple of each other's."""
    for name, rates in table.items():
        ours = rates.get("terrazzo", 0.0)
        ratios = [f"{ours / rate:8.2f} x {peer}" for peer, rate in rates.items() if peer != "terrazzo" and rate]
        print(f"{name:28} {'  '.join(ratios)}")


def print_single(names: list[str], folder: Path, idle: int) -> None:
    """Latency, connection rate and idle memory of each peer."""
    for name in names:
        with running(name, folder) as peer:
            p50_us, p99_us = latency_us(peer)
            rate = connects_per_second(peer)
        with running(name, folder) as peer:
            memory = idle_bytes(peer, idle)
        print(
            f"{name:10} latency p50 {p50_us:6.0f} us, p99 {p99_us:6.0f} us;  {rate:8,.0f} connects/s;  "
            f"{memory / 1024:6.2f} KiB an idle connection of {idle}",
            flush=True,
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default="", help="scenarios whose name contains this; 'single' for what isn't a rate")
    parser.add_argument("--peers", default="terrazzo,mosquitto,amqtt")
    parser.add_argument("--idle", type=int, default=5000)
    options = parser.parse_args()
    names = options.peers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "single":
            table = compare(names, options, Path(folder))
            print()
            print_ratios(table)
        if options.only in ("", "single"):
            print_single(names, Path(folder), options.idle)


if __name__ == "__main__":
    main()
