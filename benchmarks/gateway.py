"""The gateway's requests a second beside an empty aiohttp handler, and its latency while terminals report.

``python benchmarks/gateway.py [--seconds S] [--rounds N] [--connections N] [--without-ingest]`` starts Terrazzo and the
empty handler, gives both in turn the same load (``wrk``, one thread, keep-alive), and prints requests per second, CPU
of the server per request, p50 and p99, and the ratio to the empty handler: medians over the rounds. Then it asks for
the latest record while 200 connections publish as fast as they are acknowledged. Needs ``wrk``.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from cpu_clock import cpu_seconds
from publishers import Load, credentials

from running import Platform, ServerProcess, free_port
from support import require_program

HERE = Path(__file__).parent
PATH = "/apiproxy/api"
TERMINAL = "bench-1"
EMPTY = "empty aiohttp handler"
_NEW_HEADS = """local number = 0
request = function()
  number = number + 1
  wrk.headers["X-Request-Id"] = tostring(number)
  return wrk.format()
end
"""
_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0}


@dataclass(frozen=True)
class Figure:
    """One run of ``wrk``; ``cpu_us`` is the server's, for one request."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float


@dataclass(frozen=True)
class Target:
    """What is asked, and of whom."""

    name: str
    port: int
    pid: int
    body: str
    token: str = "-"
    is_new: bool = False  # each request has another head than those before it


@dataclass(frozen=True)
class Wrk:
    """How ``wrk`` asks."""

    folder: Path
    seconds: float
    connections: int

    def run(self, target: Target) -> Figure:
        """One run; every answer must be HTTP 200."""
        script = self.folder / "request.lua"
        headers = f'wrk.headers["Authorization"] = "Bearer {target.token}"'
        script.write_text(
            f'wrk.method = "POST"\nwrk.body = {json.dumps(target.body)}\n{headers}\n'
            'wrk.headers["Content-Type"] = "application/json"\n' + (_NEW_HEADS if target.is_new else "")
        )
        options = [f"-c{self.connections}", "-t1", f"-d{self.seconds}s", "--latency", "-s", str(script)]
        before = cpu_seconds(target.pid)
        command = [require_program("wrk"), *options, f"http://127.0.0.1:{target.port}{PATH}"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        used_s = cpu_seconds(target.pid) - before
        if "Non-2xx" in output or "Socket errors" in output:
            raise SystemExit(f"{target.name}: {output}")
        return _figure(output, used_s)


def _figure(output: str, used_s: float) -> Figure:
    requests, rate = (float(_found(pattern, output)) for pattern in (r"(\d+) requests in", r"^Requests/sec:\s+(\S+)"))
    p50_ms, p99_ms = (_milliseconds(_found(rf"^\s*{share}%\s+(\S+)$", output)) for share in (50, 99))
    return Figure(rate, p50_ms, p99_ms, used_s / requests * 1e6)


def _found(pattern: str, output: str) -> str:
    """What a line of ``wrk`` says: a share at the end of another line, ``98.50%``, is none of its percentiles."""
    found = re.search(pattern, output, re.MULTILINE)
    if found is None:
        raise SystemExit(f"wrk printed nothing like {pattern}:\n{output}")
    return found[1]


def _milliseconds(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m|h)", text)
    if found is None:
        raise SystemExit(f"wrk printed no time: {text}")
    return float(found[1]) * _UNITS_MS[found[2]]


@contextmanager
def empty_server(folder: Path, like: Target) -> Iterator[Target]:
    """A server that does nothing, asked the same as Terrazzo."""
    port = free_port()
    command = [sys.executable, str(HERE / "empty_server.py"), str(port)]
    with ServerProcess(command, log=folder / "empty.log") as server:
        server.wait_ready(lambda: _listens(port))
        yield replace(like, name=EMPTY, port=port, pid=server.pid)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def add_terminals(platform: Platform, uids: list[str]) -> None:
    platform.login()
    config = platform.add_config()
    for uid in uids:
        username, pin = credentials(uid)
        platform.add_terminal(uid, config, username=username, pin=pin)


@contextmanager
def publishing(port: int, uids: list[str], messages: int) -> Iterator[None]:
    """Publishes while the block runs."""
    load = Load("127.0.0.1", port, uids, messages)
    command = [sys.executable, str(HERE / "publishers.py"), load.to_json()]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    if worker.stdout.readline() != "connected\n":
        raise SystemExit("the load could not connect")
    worker.stdin.write("go\n")
    worker.stdin.flush()
    try:
        yield
        if worker.poll() is not None and messages > 1_000:
            raise SystemExit("the load ended before the measurement")
    finally:
        worker.kill()
        worker.wait()


def targets(platform: Platform) -> list[Target]:
    port, pid, token = platform.http, platform.pid, platform.token or ""
    number = platform.call("get_terminal_item", uid=TERMINAL)["id"]
    requests = {
        "get_terminal_item": {"action": "get_terminal_item", "uid": TERMINAL},
        "get_last_grid": {"action": "get_last_grid", "terminal_id": TERMINAL, "topic": ["r"]},
        "get_last_grid, by number": {"action": "get_last_grid", "terminal_id": number, "topic": ["r"]},
    }
    every = [Target(name, port, pid, json.dumps(body), token) for name, body in requests.items()]
    return [*every, replace(every[1], name=f"{every[1].name}, a new head each time", is_new=True)]


def show(name: str, figures: list[Figure], empty: list[Figure]) -> None:
    def middle(field: str, of: list[Figure]) -> float:
        return statistics.median(getattr(figure, field) for figure in of)

    ratio = statistics.median(mine.rate / its.rate for mine, its in zip(figures, empty, strict=True))
    cpu = statistics.median(its.cpu_us / mine.cpu_us for mine, its in zip(figures, empty, strict=True))
    rate, cpu_us, p50, p99 = (middle(field, figures) for field in ("rate", "cpu_us", "p50_ms", "p99_ms"))
    print(f"| {name} | {rate:,.0f} | {cpu_us:.0f} | {p50:.1f} | {p99:.1f} | {ratio:.2f} | {cpu:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--without-ingest", action="store_true")
    arguments = parser.parse_args()
    uids = [f"load-{n:04}" for n in range(200)]
    with tempfile.TemporaryDirectory() as name, Platform(Path(name) / "data") as platform:
        add_terminals(platform, [TERMINAL, *uids])
        with publishing(platform.mqtt, [TERMINAL], 1_000):
            while not platform.call("get_last_grid", terminal_id=TERMINAL)["data"]:
                time.sleep(0.1)
        wrk = Wrk(Path(name), arguments.seconds, arguments.connections)
        compare(wrk, platform, arguments.rounds)
        if not arguments.without_ingest:
            under_ingest(wrk, platform, uids)


def compare(wrk: Wrk, platform: Platform, rounds: int) -> None:
    print("| request | requests/s | us CPU | p50 ms | p99 ms | of the empty handler's rate | its CPU over ours |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    ours = targets(platform)
    with empty_server(wrk.folder, ours[0]) as empty:
        everyone = [empty, *ours]
        figures: dict[str, list[Figure]] = {target.name: [] for target in everyone}
        for _ in range(rounds):
            for target in everyone:
                figures[target.name].append(wrk.run(target))
    for target in everyone:
        show(target.name, figures[target.name], figures[EMPTY])


def under_ingest(wrk: Wrk, platform: Platform, uids: list[str]) -> None:
    def taken() -> int:
        return int(platform.call("get_broker_status")["counters"]["messages_in_qos1"])

    latest = next(target for target in targets(platform) if target.name == "get_last_grid")
    with publishing(platform.mqtt, uids, 100_000):
        before, began = taken(), time.perf_counter()
        figure = wrk.run(latest)
        rate = (taken() - before) / (time.perf_counter() - began)
    print(
        f"\nget_last_grid while 200 connections publish {rate:,.0f} messages/s: {figure.rate:,.0f} requests/s, ", end=""
    )
    print(f"p50 {figure.p50_ms:.1f} ms, p99 {figure.p99_ms:.1f} ms")


if __name__ == "__main__":
    main()
