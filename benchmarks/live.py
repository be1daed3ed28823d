"""Live: what subscribers cost the ingest, and how long a report takes to reach them.

``python benchmarks/live.py [--subscribers N] [--messages N] [--connections N] [--rounds N]`` has terminals publish
(QoS 1, 10-point JSON) at full speed and at half of that, each with no live subscriber and with N WebSocket subscribers
of one object that a terminal of the load and a timed one (ten reports a second) serve; then only the timed one. All of
it twice: with the server on one processor and load and subscribers on another, and with everything everywhere. Prints
messages per second, the server's CPU per message, PUBACK times of the timed terminal, frames delivered and lost,
delivery latency, and the ratios with subscribers to without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import uvloop
from publishers import Load, credentials

from ingest import cpu_seconds, publish
from mqtt_bytes import login
from mqtt_bytes import publish as publish_packet
from running import Platform

HERE = Path(__file__)
TIMER = "timer"  # the terminal whose reports carry the time, so that latency can be told
TIMED_INTERVAL_S = 0.1
IDLE_S = 10.0  # with nothing but the timed reports
SERVER, OTHERS = {0}, {1}  # processors, where they are apart


@dataclass(frozen=True)
class Ingested:
    """One run of the load."""

    rate: float
    cpu_per_million: float


@dataclass(frozen=True)
class Delivered:
    """What all subscribers together got, and how late the timed reports were."""

    frames: int
    lost: int
    latencies_ms: list[float]


@dataclass(frozen=True)
class Figures:
    """One run of the load, beside the timed terminal."""

    ingested: Ingested
    acknowledged_ms: list[float]  # of the timed terminal
    delivered: Delivered


def quantiles(times_ms: list[float]) -> str:
    """Median and 99th percentile."""
    ordered = sorted(times_ms)
    return " / ".join(f"{ordered[int(share * len(ordered))]:,.0f}" for share in (0.5, 0.99)) if ordered else "-"


class Followers:
    """The subscribers, in a process of their own; ``finish`` ends them and tells what they got."""

    def __init__(self, platform: Platform, object_id: int, count: int, *, nice: int = 0) -> None:
        who = {"port": platform.websocket, "token": platform.token, "object_id": object_id}
        arguments = {**who, "count": count, "nice": nice}
        command = [sys.executable, str(HERE), "--follow", json.dumps(arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "subscribed\n":
            raise SystemExit("the subscribers could not subscribe")

    def finish(self) -> Delivered:
        """What they got until now, after everything under way had a second to arrive."""
        time.sleep(1)
        output, _ = self._process.communicate("stop\n")
        return Delivered(**json.loads(output))


class Follower(asyncio.Protocol):
    """One subscriber: a bare WebSocket that counts frames and parses only gaps and timed reports."""

    def __init__(self, token: str, object_id: int) -> None:
        self.subscribed = asyncio.get_running_loop().create_future()
        self.frames = self.lost = 0
        self.latencies_ms: list[float] = []
        self._token = token
        self._object_id = object_id
        self._buffer = b""
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        head = (
            "GET /apiproxy/api HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n"
        )
        request = json.dumps({"action": "subscribe", "kinds": ["grid"], "object_id": self._object_id}).encode()
        masked = bytes((0x81, 0x80 | len(request))) + bytes(4) + request  # with zeros
        transport.write(head.encode() + masked)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        at = 0
        if not self._is_open:
            at = data.find(b"\r\n\r\n") + 4
            self._is_open = at > 3
            at = at if self._is_open else 0
        while self._is_open and len(data) >= at + 10:
            size, start = data[at + 1], at + 2
            if size > 125:
                start += 2 if size == 126 else 8
                size = int.from_bytes(data[at + 2 : start], "big")
            if len(data) < start + size:
                break
            self._on_message(data[start : start + size])
            at = start + size
        self._buffer = data[at:]

    def _on_message(self, message: bytes) -> None:
        if not message.startswith(b'{"resp":"live"'):
            answer = json.loads(message)
            self.subscribed.set_result(answer["code"])
        elif b'"gap":' in message:
            self.lost += json.loads(message)["gap"]["lost"]
        else:
            self.frames += 1
            if b'"sent":' in message:
                self.latencies_ms.append(time.time() * 1e3 - json.loads(message)["data"]["payload"]["sent"])


async def follow(port: int, token: str, object_id: int, count: int, nice: int) -> None:
    """The subscribers' side."""
    os.nice(nice)
    loop = asyncio.get_running_loop()
    followers = []
    for _ in range(count):
        _, follower = await loop.create_connection(lambda: Follower(token, object_id), "127.0.0.1", port)
        followers.append(follower)
    codes = {await follower.subscribed for follower in followers}
    if codes != {200}:
        raise SystemExit(f"subscribe answered {codes}")
    print("subscribed", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    total = Delivered(
        frames=sum(follower.frames for follower in followers),
        lost=sum(follower.lost for follower in followers),
        latencies_ms=[each for follower in followers for each in follower.latencies_ms],
    )
    print(json.dumps(asdict(total)))


class Timer:
    """The timed terminal, while the ``with`` block runs: each report carries the time at which it was sent."""

    def __init__(self, platform: Platform) -> None:
        self.acknowledged_ms: list[float] = []
        self._port = platform.mqtt
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._report, name="timed reports")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _report(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall(login(TIMER, *credentials(TIMER)))
            connection.recv(4)
            while not self._stop.wait(TIMED_INTERVAL_S):
                sent_ms = time.time() * 1e3
                connection.sendall(publish_packet(f"g/{TIMER}/r", json.dumps({"sent": sent_ms}).encode(), packet_id=1))
                connection.recv(4)
                self.acknowledged_ms.append(time.time() * 1e3 - sent_ms)


def ingest(platform: Platform, load: Load) -> Ingested:
    """Publishes everything and waits for the acknowledgements."""
    total = load.messages * len(load.uids)
    cpu = cpu_seconds([platform])
    seconds = publish(load)
    return Ingested(total / seconds, (cpu_seconds([platform]) - cpu) / total * 1e6)


def prepare(platform: Platform, uids: list[str]) -> int:
    """The terminals, and the object that one of the load and the timed one serve; its id."""
    platform.login()
    config = platform.add_config()
    for uid in (*uids, TIMER):
        username, pin = credentials(uid)
        platform.add_terminal(uid, config, username=username, pin=pin)
    return int(platform.call("create_object", name="o", mapping_id="", terminal_list=[uids[0], TIMER])["id"])


class Bench:
    """One platform under load, with and without subscribers."""

    def __init__(self, platform: Platform, arguments: argparse.Namespace, *, where: str) -> None:
        self._platform = platform
        self._where = where
        self._subscribers = arguments.subscribers
        uids = [f"load-{n:04}" for n in range(arguments.connections)]
        self._object_id = prepare(platform, uids)
        self._load = Load("127.0.0.1", platform.mqtt, uids, arguments.messages)
        self.rates: dict[str, list[float]] = {}  # ratios, by kind of load
        self.cpus: dict[str, list[float]] = {}

    def run(self, rounds: int) -> None:
        """Warms up, then each round at full speed and at half of the speed without subscribers; medians."""
        ingest(self._platform, self._load)
        for _ in range(rounds):
            full = self._compare("full", self._load)
            self._compare("half", replace(self._load, rate=full / 2))
        for name, ratios in self.rates.items():
            rate, cpu = statistics.median(ratios), statistics.median(self.cpus[name])
            print(f"| {self._where} | {name} | median ratio | {rate:.2f} | {cpu:.2f} | | | | |", flush=True)

    def idle(self) -> None:
        """Nothing but the timed reports."""
        followers = Followers(self._platform, self._object_id, self._subscribers)
        with Timer(self._platform) as timer:
            time.sleep(IDLE_S)
        figures = Figures(Ingested(1 / TIMED_INTERVAL_S, float("nan")), timer.acknowledged_ms, followers.finish())
        self._show("timed reports only", self._subscribers, figures)

    def _compare(self, name: str, load: Load) -> float:
        """Without and with subscribers; the rate without."""
        without, during = self._measure(name, load, 0), self._measure(name, load, self._subscribers)
        self.rates.setdefault(name, []).append(during.ingested.rate / without.ingested.rate)
        self.cpus.setdefault(name, []).append(during.ingested.cpu_per_million / without.ingested.cpu_per_million)
        return without.ingested.rate

    def _measure(self, name: str, load: Load, subscribers: int) -> Figures:
        # at the lowest priority: clients that live elsewhere
        followers = Followers(self._platform, self._object_id, subscribers, nice=19) if subscribers else None
        with Timer(self._platform) as timer:
            ingested = ingest(self._platform, load)
        delivered = followers.finish() if followers else Delivered(0, 0, [])
        figures = Figures(ingested, timer.acknowledged_ms, delivered)
        self._show(name, subscribers, figures)
        return figures

    def _show(self, name: str, subscribers: int, figures: Figures) -> None:
        ingested, delivered = figures.ingested, figures.delivered
        cells = [self._where, name, f"{subscribers:,}", f"{ingested.rate:,.0f}", f"{ingested.cpu_per_million:.1f}"]
        cells += [quantiles(figures.acknowledged_ms), f"{delivered.frames:,}", f"{delivered.lost:,}"]
        print("| " + " | ".join([*cells, quantiles(delivered.latencies_ms)]) + " |", flush=True)


def run_apart(folder: Path, arguments: argparse.Namespace, *, apart: bool) -> None:
    """All rounds on one platform, which stays on its processor if it is to."""
    everywhere = os.sched_getaffinity(0)
    if apart:
        os.sched_setaffinity(0, SERVER)
    with Platform(folder / "terrazzo") as platform:
        os.sched_setaffinity(0, OTHERS if apart else everywhere)
        bench = Bench(platform, arguments, where="apart" if apart else "together")
        bench.run(arguments.rounds)
        bench.idle()
    os.sched_setaffinity(0, everywhere)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=1_000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--messages", type=int, default=2_500, help="a connection")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(follow(**json.loads(arguments.follow)))
        return
    print(
        "| processors | load | subscribers | msg/s | CPU us | PUBACK p50 / p99 ms | frames | lost | live p50 / p99 ms |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for apart in (True, False):
        with tempfile.TemporaryDirectory() as name:
            run_apart(Path(name), arguments, apart=apart)


if __name__ == "__main__":
    main()
