"""What an honest terminal and an honest user notice of floods by those who have proved nothing.

``python benchmarks/floods.py [--seconds S] [--only NAME]`` starts a platform for each flood, has a terminal log in and
report and a user log in and ask over and over, first alone, then beside the flood, which comes from other addresses.
Prints p50 and p99 of both, what failed, and the most that the platform had in memory, on disk and in descriptors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
import uvloop
from flooders import ATTACKS, Flood

from mqtt_bytes import login, publish
from running import PASSWORD, Platform
from support import free_port

HERE = Path(__file__).parent
TERMINAL, USER = "honest", "honest"
TIMEOUT_S = 5.0
ONE = ["127.0.0.2"]
TEN = [f"127.0.0.{number}" for number in range(2, 12)]
DESCRIPTORS = 1_024  # in the flood that is about them
FEW_DESCRIPTORS = (
    "-c",
    f"import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}));"
    "runpy.run_module('terrazzo', run_name='__main__')",
)

HOW = {
    "e": {"connections": 4},
    "f": {"connections": 8},
    "g": {"connections": 8},
    "h": {"connections": 20, "per_second": 300},
    "i": {"connections": 1_500, "per_second": 1_000},
    "j": {"connections": 64},
    "k": {"connections": 50, "per_second": 1_000},
    "l": {"connections": 20, "per_second": 300, "sources": TEN},
    "m": {"connections": 50, "per_second": 1_000, "sources": TEN},
    "n": {"connections": 200, "per_second": 3_000},
    "o": {"connections": 10_500, "per_second": 1_000},
    "p": {"connections": 2_500, "per_second": 1_000},
    "q": {"connections": 2_000, "per_second": 1_000},
}

WARM_UP_S = {"o": 12.0, "p": 3.0, "q": 3.0}  # until there are as many connections


class FewDescriptors(Platform):
    """A platform that may have 1,024 descriptors."""

    program = FEW_DESCRIPTORS


@dataclass
class Times:
    """How long the honest ones waited, in milliseconds; what failed waited for ever."""

    terminal: list[float] = field(default_factory=list)
    report: list[float] = field(default_factory=list)
    user: list[float] = field(default_factory=list)
    request: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

    async def measure(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        """Times one step."""
        begun = time.perf_counter()
        if await self.attempt(name, asyncio.wait_for(step(), TIMEOUT_S)):
            getattr(self, name).append((time.perf_counter() - begun) * 1_000)

    async def attempt(self, name: str, step: Awaitable[None]) -> bool:
        """Whether a step succeeds; counts why not."""
        try:
            await step
        except (OSError, TimeoutError, asyncio.IncompleteReadError, AssertionError) as error:
            text = f"{name}: {type(error).__name__} {error}".strip()
            self.failed[text] = self.failed.get(text, 0) + 1
            return False
        return True


class Honest:
    """A terminal and a user at 127.0.0.1."""

    def __init__(self, platform: Platform, times: Times) -> None:
        self._platform = platform
        self._times = times

    async def run(self, seconds: float) -> None:
        """Both, side by side."""
        end = time.monotonic() + seconds
        await asyncio.gather(
            self._repeat("terminal", self._log_in, 0.1, end),
            self._repeat("user", self._log_in_user, 0.25, end),
            self._repeat("request", self._ask, 0.05, end),
            self._report(end),
        )

    async def _repeat(self, name: str, step: Callable[[], Awaitable[None]], pause_s: float, end: float) -> None:
        while time.monotonic() < end:
            await self._times.measure(name, step)
            await asyncio.sleep(pause_s)

    async def _log_in(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._platform.mqtt)
        try:
            writer.write(login(TERMINAL, f"u-{TERMINAL}", f"pin-{TERMINAL}"))
            answer = await reader.readexactly(4)
            assert answer[3] == 0, f"CONNACK {answer.hex()}"
        finally:
            writer.close()

    async def _report(self, end: float) -> None:
        """Reports of another terminal, on a connection that stays; on a new one when it doesn't."""
        while time.monotonic() < end:
            await self._times.attempt("report", self._report_on(end))
            await asyncio.sleep(0.05)

    async def _report_on(self, end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._platform.mqtt)
        try:
            writer.write(login("steady", "u-steady", "pin-steady"))
            answer = await reader.readexactly(4)
            assert answer[3] == 0, f"CONNACK {answer.hex()}"
            while time.monotonic() < end:
                begun = time.perf_counter()
                writer.write(publish("g/steady/r", b'{"T": 21.5}'))
                await asyncio.wait_for(reader.readexactly(4), TIMEOUT_S)
                self._times.report.append((time.perf_counter() - begun) * 1_000)
                await asyncio.sleep(0.05)
        finally:
            writer.close()

    async def _log_in_user(self) -> None:
        await self._post({"action": "login", "username": USER, "password": PASSWORD})

    async def _ask(self) -> None:
        await self._post({"action": "get_terminal_list", "page_size": 1})

    async def _post(self, request: dict[str, object]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._platform.http)
        try:
            body = json.dumps(request).encode()
            head = f"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._platform.token}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            envelope = json.loads(await reader.readexactly(length))
            assert envelope["code"] == 200, f"{envelope['code']} {envelope['info']}"
        finally:
            writer.close()


class Watch:
    """The most that a process had, looked at ten times a second."""

    def __init__(self, pid: int, data: Path) -> None:
        self._process = psutil.Process(pid)
        self._data = data
        self._disk_before = folder_bytes(data)
        self._stopped = threading.Event()
        self.memory = self.descriptors = 0
        self._cpu_before, self._begun = sum(self._process.cpu_times()[:2]), time.monotonic()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stopped.wait(0.1):
            with suppress(psutil.Error):
                self.memory = max(self.memory, self._process.memory_info().rss)
                self.descriptors = max(self.descriptors, self._process.num_fds())

    def stop(self) -> str:
        """Memory, disk, descriptors and share of a core, as cells."""
        self._stopped.set()
        self._thread.join()
        disk = folder_bytes(self._data) - self._disk_before
        cpu = (sum(self._process.cpu_times()[:2]) - self._cpu_before) / (time.monotonic() - self._begun)
        return f"{self.memory / 1e6:,.0f} | {disk / 1e6:,.1f} | {self.descriptors:,} | {cpu:.0%}"


def folder_bytes(folder: Path) -> int:
    """What the files below it take."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_blocks * 512
    return total


@contextmanager
def flooding(flood: Flood) -> Iterator[dict[str, int]]:
    """The flood, in a process of its own; afterwards what came of it."""
    command = [sys.executable, str(HERE / "flooders.py"), flood.to_json()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    counts: dict[str, int] = {}
    try:
        yield counts
    finally:
        try:
            counts.update(json.loads(process.communicate("", timeout=30)[0]))
        finally:
            process.kill()


@contextmanager
def prepared(name: str) -> Iterator[tuple[Platform, dict[str, int]]]:
    """A platform with the honest ones, and its ports by name."""
    kind = FewDescriptors if name.startswith("q") else Platform
    tcp = free_port()
    env = {"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(tcp)}
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder) / "data", env=env) as platform:
        platform.login()
        config = platform.add_config()
        for uid in (TERMINAL, "steady"):
            platform.add_terminal(uid, config)
        platform.call("create_user", username=USER, password=PASSWORD, role="viewer")
        ports = dict(zip(("http", "mqtt", "websocket", "mqtt_websocket"), platform.ports, strict=True))
        yield platform, {**ports, "tcp": tcp}


def quantiles(alone: list[float], beside: list[float]) -> str:
    """p50 and p99 alone and beside, as a cell; bold where p99 is beyond twice that alone and 50 ms."""

    def at(times: list[float], share: float) -> float:
        ordered = sorted(times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")

    bound = max(50.0, 2 * at(alone, 0.99))
    mark = "**" if at(beside, 0.99) > bound else ""
    return f"{at(alone, 0.5):.1f} / {at(alone, 0.99):.0f} → {at(beside, 0.5):.1f} / {mark}{at(beside, 0.99):.0f}{mark}"


def row(name: str, seconds: float) -> str:
    """One flood; what came of it, and what the platform says held its loop, goes to standard error."""
    with prepared(name) as (platform, ports):
        alone, beside = Times(), Times()
        uvloop.run(Honest(platform, alone).run(seconds))
        watch = Watch(platform.pid, platform.data)
        users = {"user": USER, "terminal": TERMINAL}
        flood = Flood(**{"name": name, "ports": ports, "sources": ONE, "users": users, **HOW[name[0]]})
        with flooding(flood) as counts:
            time.sleep(WARM_UP_S.get(name[0], 1.0))
            uvloop.run(Honest(platform, beside).run(seconds))
            cells = watch.stop()
            held = [line for line in platform.log.read_text().splitlines() if "event loop was held" in line]
    kinds = ("terminal", "report", "user", "request")
    figures = " | ".join(quantiles(getattr(alone, kind), getattr(beside, kind)) for kind in kinds)
    failures = [f"  {text}: {count}" for text, count in beside.failed.items()]
    print(f"{name}: {counts}", *failures, *held, sep="\n", file=sys.stderr)
    return f"| {name[2:]} | {figures} | {sum(beside.failed.values())} | {cells} |"


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="floods whose name begins so")
    options = parser.parse_args()
    print("p50 / p99 in ms, alone → beside the flood\n")
    print(
        "| flood | terminal logs in | report | user logs in | request | failed | MB | MB of disk | descriptors | CPU |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in ATTACKS:
        if name.startswith(tuple(options.only.split(","))):
            print(row(name, options.seconds), flush=True)


if __name__ == "__main__":
    main()
