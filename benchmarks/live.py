"""Live: what subscribers cost the ingest, and how long a report takes to reach them.

``python benchmarks/live.py [--subscribers N] [--messages N] [--connections N] [--rounds N] [--where ...] [--load ...]``
has terminals publish (QoS 1, 10-point JSON) at full speed and at half of that, each without live subscribers and with N
WebSocket subscribers of one object that a terminal of the load and a timed one (ten reports a second) serve; then only
the timed one. ``apart``: the server on one processor, load and subscribers on another; ``together``: everything
everywhere. Prints messages per second, the server's CPU per message, PUBACK times of the timed terminal, frames
delivered and lost, delivery latency, and the ratios with subscribers to without, round by round and their median.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
PROBES = 10  # of the subscribers
QUIET_S = 1.0  # without a frame: everything is there
FRAME = b'{"resp":"live","subscription":1,'
LOST = re.compile(rb'"gap":\{[^}]*"lost":(\d+)')
SENT = re.compile(rb'"payload":\{"sent":\s*([\d.]+)\}')
WARM_UP = 1_000  # messages a connection
WHERE = ("apart", "together")
LOADS = ("full", "half", "idle")
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
    """The subscribers, in two processes: a few probes that tell latency, and all others, which only count.

    The others are at the lowest priority while there is a load: clients that live elsewhere.
    """

    def __init__(self, platform: Platform, object_id: int, count: int, *, nice: int = 0) -> None:
        who = {"port": platform.websocket, "token": platform.token, "object_id": object_id}
        counts = (
            {"count": count - PROBES, "nice": nice, "probing": False},
            {"count": PROBES, "nice": 0, "probing": True},
        )
        self._processes = [self._start({**who, **each}) for each in counts]

    @staticmethod
    def _start(arguments: dict[str, object]) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE), "--follow", json.dumps(arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if process.stdout.readline() != "subscribed\n":
            raise SystemExit("the subscribers could not subscribe")
        return process

    def finish(self) -> Delivered:
        """What they got, once nothing more comes."""
        got = [Delivered(**json.loads(process.communicate("stop\n")[0])) for process in self._processes]
        return Delivered(
            frames=sum(each.frames for each in got),
            lost=sum(each.lost for each in got),
            latencies_ms=[latency for each in got for latency in each.latencies_ms],
        )


class Follower(asyncio.Protocol):
    """One subscriber: a bare WebSocket that counts frames, and what gaps say is lost."""

    def __init__(self, token: str, object_id: int) -> None:
        self.subscribed = asyncio.get_running_loop().create_future()
        self.frames = self.lost = 0
        self.latencies_ms: list[float] = []
        self._token = token
        self._object_id = object_id
        self._has_asked = False
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        head = (
            "GET /apiproxy/api HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n"
        )
        self._transport = transport
        transport.write(head.encode())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        if not self._has_asked and b"\r\n\r\n" in data:
            self._ask()
        if not self.subscribed.done():
            answer = data.find(b'"resp":"subscribe"')
            if answer >= 0 and b"}}" in data[answer:]:
                self.subscribed.set_result(b'"code":200' in data[answer:])
        at = max(data.rfind(FRAME), 0)
        self._count(data[:at])  # these are whole
        self._buffer = self._rest(data[at:])

    def _ask(self) -> None:
        """Subscribes: frames have to wait for the answer to the upgrade."""
        self._has_asked = True
        request = json.dumps({"action": "subscribe", "kinds": ["grid"], "object_id": self._object_id}).encode()
        masked = bytes((0x81, 0x80 | len(request))) + bytes(4) + request  # with zeros
        self._transport.write(masked)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """Counts what came last."""
        self._count(self._buffer)

    def _count(self, frames: bytes) -> None:
        self.frames += frames.count(FRAME)
        if b'"gap":' in frames:
            found = LOST.findall(frames)
            self.frames -= len(found)
            self.lost += sum(int(lost) for lost in found)

    def _rest(self, data: bytes) -> bytes:
        """What can't be counted yet: its last frame may not be whole."""
        return data


class Probe(Follower):
    """One that tells, of each timed report, when it came."""

    def _rest(self, data: bytes) -> bytes:
        if not data.startswith(FRAME) or not data.endswith(b"}}}"):
            return data
        self._count(data)
        return b""

    def _count(self, frames: bytes) -> None:
        super()._count(frames)
        now_ms = time.time() * 1e3
        self.latencies_ms += [now_ms - float(sent_ms) for sent_ms in SENT.findall(frames)]


async def follow(port: int, token: str, object_id: int, *, count: int, nice: int, probing: bool) -> None:
    """The subscribers' side."""
    os.nice(nice)
    loop = asyncio.get_running_loop()
    followers = []
    kind = Probe if probing else Follower
    for _ in range(count):
        _, follower = await loop.create_connection(lambda: kind(token, object_id), "127.0.0.1", port)
        followers.append(follower)
        if not await follower.subscribed:
            raise SystemExit("subscribe was refused")
    print("subscribed", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before, now = -1, 0
    while now > before:
        await asyncio.sleep(QUIET_S)
        before, now = now, sum(follower.frames + follower.lost for follower in followers)
    for follower in followers:
        follower.finish()
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
    """Each figure is of a platform of its own, warmed up, so that its store is as full and as busy as the others'."""

    def __init__(self, arguments: argparse.Namespace, *, apart: bool) -> None:
        self._where = "apart" if apart else "together"
        everywhere = os.sched_getaffinity(0)
        self._server, self._others = (SERVER, OTHERS) if apart else (everywhere, everywhere)
        self._subscribers = arguments.subscribers
        self._uids = [f"load-{n:04}" for n in range(arguments.connections)]
        self._messages = arguments.messages
        self._rounds = arguments.rounds

    def run(self, names: list[str]) -> None:
        """Full speed, then half of the median of that without subscribers; then the timed reports alone."""
        half_rate = 0.0
        for name in names:
            if name == "idle":
                self._idle()
            else:
                half_rate = self._compare(name, 0.0 if name == "full" else half_rate or self._full_rate() / 2) / 2

    def _full_rate(self) -> float:
        return statistics.median(self._measure("full", 0.0, 0).ingested.rate for _ in range(3))

    def _compare(self, name: str, rate: float) -> float:
        """Rounds without and with subscribers, in turn with the one and with the other first; the rate without."""
        found: dict[int, list[Ingested]] = {0: [], self._subscribers: []}
        for number in range(self._rounds):
            for count in sorted(found, reverse=number % 2 == 1):
                found[count].append(self._measure(name, rate, count).ingested)
        without, during = found.values()
        pairs = list(zip(without, during, strict=True))
        ratios = [after.rate / before.rate for before, after in pairs]
        cpu = statistics.median(after.cpu_per_million / before.cpu_per_million for before, after in pairs)
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(
            f"| {self._where} | {name} | ratios {each} | {statistics.median(ratios):.2f} | {cpu:.2f} | | | | |",
            flush=True,
        )
        return statistics.median(before.rate for before in without)

    def _measure(self, name: str, rate: float, subscribers: int) -> Figures:
        with self._platform() as (platform, object_id):
            load = Load("127.0.0.1", platform.mqtt, self._uids, WARM_UP)
            ingest(platform, load)
            # at the lowest priority: clients that live elsewhere
            followers = Followers(platform, object_id, subscribers, nice=19) if subscribers else None
            with Timer(platform) as timer:
                ingested = ingest(platform, replace(load, messages=self._messages, rate=rate))
            delivered = followers.finish() if followers else Delivered(0, 0, [])
            published = self._messages + len(timer.acknowledged_ms)
            if delivered.frames + delivered.lost != published * subscribers:
                raise SystemExit(f"{delivered.frames} frames and {delivered.lost} lost of {published * subscribers}")
        figures = Figures(ingested, timer.acknowledged_ms, delivered)
        self._show(name, subscribers, figures)
        return figures

    def _idle(self) -> None:
        """Nothing but the timed reports."""
        with self._platform() as (platform, object_id):
            followers = Followers(platform, object_id, self._subscribers)
            cpu = cpu_seconds([platform])
            with Timer(platform) as timer:
                time.sleep(IDLE_S)
            cpu = cpu_seconds([platform]) - cpu
            figures = Figures(
                Ingested(1 / TIMED_INTERVAL_S, cpu / len(timer.acknowledged_ms) * 1e6),
                timer.acknowledged_ms,
                followers.finish(),
            )
        self._show("timed reports only", self._subscribers, figures)

    @contextmanager
    def _platform(self) -> Iterator[tuple[Platform, int]]:
        with tempfile.TemporaryDirectory() as name:
            os.sched_setaffinity(0, self._server)
            with Platform(Path(name) / "terrazzo") as platform:
                os.sched_setaffinity(0, self._others)
                yield platform, prepare(platform, self._uids)

    def _show(self, name: str, subscribers: int, figures: Figures) -> None:
        ingested, delivered = figures.ingested, figures.delivered
        cells = [self._where, name, f"{subscribers:,}", f"{ingested.rate:,.0f}", f"{ingested.cpu_per_million:.1f}"]
        cells += [quantiles(figures.acknowledged_ms), f"{delivered.frames:,}", f"{delivered.lost:,}"]
        print("| " + " | ".join([*cells, quantiles(delivered.latencies_ms)]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=1_000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--messages", type=int, default=4_000, help="a connection")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--where", nargs="+", choices=WHERE, default=WHERE)
    parser.add_argument("--load", nargs="+", choices=LOADS, default=LOADS)
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
    for where in arguments.where:
        Bench(arguments, apart=where == "apart").run(arguments.load)


if __name__ == "__main__":
    main()
