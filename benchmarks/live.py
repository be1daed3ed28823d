"""Live: what subscribers cost the ingest, and how long a report takes to reach them.

``python benchmarks/live.py [--subscribers N] [--messages N] [--connections N] [--rounds N]`` has terminals publish at
full speed (QoS 1, 10-point JSON), first with no live subscriber, then with N WebSocket subscribers of one object that
one of the terminals serves, then with the same N beside nothing but a terminal that reports ten times a second. Prints
messages per second, CPU seconds per million, their ratios, frames delivered and lost, and delivery latency. Load,
subscribers and server share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import uvloop
from publishers import Load, credentials

from ingest import cpu_seconds, publish
from mqtt_bytes import login
from mqtt_bytes import publish as publish_packet
from running import Platform

HERE = Path(__file__)
TIMER = "timer"  # the terminal whose reports carry the time, so that latency can be told
TIMED_REPORTS, TIMED_INTERVAL_S = 100, 0.1


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

    def quantile(self, share: float) -> float:
        """The latency that this share of the timed frames did not exceed."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


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


def report_times(platform: Platform) -> None:
    """The timed terminal: each report carries the time at which it was sent."""
    with socket.create_connection(("127.0.0.1", platform.mqtt)) as connection:
        connection.sendall(login(TIMER, *credentials(TIMER)))
        connection.recv(4)
        for number in range(TIMED_REPORTS):
            body = json.dumps({"sent": time.time() * 1e3}).encode()
            connection.sendall(publish_packet(f"g/{TIMER}/r", body, packet_id=number + 1))
            connection.recv(4)
            time.sleep(TIMED_INTERVAL_S)


def ingest(platform: Platform, load: Load) -> Ingested:
    """Publishes everything and waits for the acknowledgements."""
    total = load.messages * len(load.uids)
    cpu = cpu_seconds([platform])
    seconds = publish(load)
    return Ingested(total / seconds, (cpu_seconds([platform]) - cpu) / total * 1e6)


def prepare(platform: Platform, uids: list[str]) -> tuple[int, int]:
    """The terminals, and two objects: of one terminal of the load, and of the timed one."""
    platform.login()
    config = platform.add_config()
    for uid in (*uids, TIMER):
        username, pin = credentials(uid)
        platform.add_terminal(uid, config, username=username, pin=pin)
    objects = [
        platform.call("create_object", name=uid, mapping_id="", terminal_list=[uid])["id"] for uid in (uids[0], TIMER)
    ]
    return objects[0], objects[1]


def show(name: str, ingested: Ingested) -> None:
    print(f"{name:40} {ingested.rate:>10,.0f} msg/s   {ingested.cpu_per_million:>6.1f} CPU s per million", flush=True)


def show_delivery(name: str, delivered: Delivered) -> None:
    late = "   ".join(f"p{share * 100:g} {delivered.quantile(share):,.0f} ms" for share in (0.5, 0.99))
    late = late if delivered.latencies_ms else ""
    print(f"{name:40} {delivered.frames:>10,} frames   {delivered.lost:,} lost   {late}", flush=True)


def run_round(folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """One platform; the ratios of rate and of CPU, with subscribers to without."""
    uids = [f"load-{n:04}" for n in range(arguments.connections)]
    with Platform(folder / "terrazzo") as platform:
        busy, timed = prepare(platform, uids)
        load = Load("127.0.0.1", platform.mqtt, uids, arguments.messages)
        ingest(platform, load)  # warms up
        before = ingest(platform, load)
        show("no subscriber", before)
        followers = Followers(platform, busy, arguments.subscribers, nice=19)  # clients that live elsewhere
        during = ingest(platform, load)
        show(f"{arguments.subscribers:,} subscribers of one object", during)
        show_delivery("  delivered", followers.finish())
        followers = Followers(platform, timed, arguments.subscribers)
        report_times(platform)
        show_delivery("ten reports a second, nothing else", followers.finish())
        followers = Followers(platform, timed, arguments.subscribers)
        command = [sys.executable, str(HERE), "--load", load.to_json()]
        workers = subprocess.Popen(command, process_group=0)  # SIGINT is for it alone, not for its publishers
        report_times(platform)
        show_delivery("ten reports a second beside full ingest", followers.finish())
        workers.send_signal(signal.SIGINT)
        workers.wait()
    return during.rate / before.rate, during.cpu_per_million / before.cpu_per_million


def keep_loading(load: Load) -> None:
    """Full ingest until interrupted, to the end of what has begun."""
    signal.signal(signal.SIGINT, lambda *_: stopped.append(True))
    stopped: list[bool] = []
    while not stopped:
        publish(load)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=1_000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--messages", type=int, default=2_500, help="a connection")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(follow(**json.loads(arguments.follow)))
        return
    if arguments.load:
        keep_loading(Load(**json.loads(arguments.load)))
        return
    ratios = []
    for number in range(arguments.rounds):
        print(f"round {number + 1}")
        with tempfile.TemporaryDirectory() as name:
            ratios.append(run_round(Path(name), arguments))
        print("ratio of rates {:.2f}, of CPU {:.2f}".format(*ratios[-1]))
    rates, cpus = zip(*ratios, strict=True)
    print(f"median ratio of rates {statistics.median(rates):.2f}, of CPU {statistics.median(cpus):.2f}")


if __name__ == "__main__":
    main()
