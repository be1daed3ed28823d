"""What an honest terminal and an honest user notice of floods by those who have proved nothing.

``python benchmarks/floods.py [--seconds S] [--only NAME] [--loaded]`` starts a platform for each flood, has a terminal
log in and report and a user log in and ask over and over, first alone, then beside the flood, which comes from other
addresses. Prints p50 and p99 of both, what failed, the most that the platform had in memory, on disk and in descriptors
beside what it may have, and whether p99 stays within twice that without the flood or 50 ms; with ``--loaded``, as
others use the machine, p99 is told and is no reason to exit with 1.
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
from running import PASSWORD, Platform, wait_for
from support import free_port

HERE = Path(__file__).parent
TERMINAL, USER = "honest", "honest"
KINDS = ("terminal", "report", "user", "request")
BOUND_MS = 50.0
END_S = 120.0  # of a flood that is told to, which has less of the machine than others
DESCRIPTORS = 1_024  # in the flood that is about them
FEW_DESCRIPTORS = (
    "-c",
    f"import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}));"
    "runpy.run_module('terrazzo', run_name='__main__')",
)


@dataclass(frozen=True)
class How:
    """How a flood is done.

    Args:
        addresses: from so many.
        ready: the honest ones begin when it has made so many connections.
    """

    connections: int
    per_second: int = 200
    addresses: int = 1
    ready: int = 20

    def flood(self, name: str, ports: dict[str, int]) -> Flood:
        """Each flood has addresses of its own, so that none suffers from what another one did."""
        sources = [f"127.0.{ord(name[0]) - ord('a')}.{number + 2}" for number in range(self.addresses)]
        users = {"user": USER, "terminal": TERMINAL}
        return Flood(name, ports, sources, self.connections, self.per_second, self.ready, users)


HOW = {
    "e": How(4),
    "f": How(8),
    "g": How(8),
    "h": How(20, 300, ready=100),
    "i": How(1_500, 1_000, ready=200),
    "j": How(64, ready=64),
    "k": How(50, 1_000, ready=200),
    "l": How(20, 300, addresses=10, ready=200),
    "m": How(50, 1_000, addresses=10, ready=200),
    "n": How(200, 3_000, ready=1_000),
    "o": How(10_500, 1_000, ready=1_500),
    "p": How(2_500, 1_000, ready=1_500),
    "q": How(2_000, 1_000, ready=1_500),
    "r": How(1_500, 1_000, ready=1_000),
}


@dataclass(frozen=True)
class Bounds:
    """What the platform may have at the most beside a flood, and why that."""

    memory_mb: int
    disk_mb: int
    descriptors: int
    why: str

    def cells(self) -> str:
        """As a row of a table."""
        return f"{self.memory_mb:,} | {self.disk_mb:,} | {self.descriptors:,} | {self.why}"

    def exceeded(self, most: Most) -> list[str]:
        """What was more than that, in words."""
        pairs = {
            "MB": (most.memory_mb, self.memory_mb),
            "MB of disk": (most.disk_mb, self.disk_mb),
            "descriptors": (most.descriptors, self.descriptors),
        }
        return [f"{found:,.0f} of {bound:,} {what}" for what, (found, bound) in pairs.items() if found > bound]


EMPTY = Bounds(200, 6, 100, "a platform with its honest clients")
"""Modules, buffers of the store and two passwords that are checked; the database's log, which has 4 MB before it begins
anew; the store's files, and the honest ones' connections."""


def beyond(memory_mb: int, descriptors: int, why: str) -> Bounds:
    """More than the empty platform's."""
    return Bounds(EMPTY.memory_mb + memory_mb, EMPTY.disk_mb, EMPTY.descriptors + descriptors, why)


BOUNDS = {
    "e": beyond(16, 10, "of a compressed body without a good token nothing is read"),
    "f": beyond(16, 20, "of a form without a good token nothing is kept"),
    "g": beyond(16, 20, "of a form without a good token nothing is kept"),
    "h": beyond(16, 50, "refusals past an address's share make no entries of the audit log"),
    "i": beyond(32, 1_024, "`limits.half_open_per_address`, and 16 MiB of `limits.half_open_bytes`"),
    "j": beyond(16, 130, "64 connections, and 64 that go; of a line without a good token 16 KiB"),
    "k": beyond(32, 100, "50 connections, and 50 that go; exchanges that are begun wait by address in turn"),
    "l": beyond(48, 50, "an address has one password checked at a time, and 16 that wait"),
    "m": beyond(32, 100, "50 connections, and 50 that go; refusals are folded by address and reason"),
    "n": beyond(32, 400, "200 connections, and 200 that go; they wait by address in turn"),
    "o": beyond(32, 1_000, "`limits.unauthenticated_connections`"),
    "p": beyond(32, 1_024, "`limits.half_open_per_address`"),
    "q": beyond(32, DESCRIPTORS * 3 // 4 - EMPTY.descriptors, "a quarter of its 1,024 stays for store and files"),
    "r": beyond(32, 1_500, "1,500 connections; an unfinished request has `limits.request_timeout_s`"),
}


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

    timeout_s: float = 5.0

    async def measure(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        """Times one step."""
        begun = time.perf_counter()
        if await self.attempt(name, asyncio.wait_for(step(), self.timeout_s)):
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
                await asyncio.wait_for(reader.readexactly(4), self._times.timeout_s)
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


@dataclass(frozen=True)
class Most:
    """The most that a process had, in MB of 10^6 bytes, and its share of a core; disk is what its folder grew by."""

    memory_mb: float
    disk_mb: float
    descriptors: int
    cpu: float


class Watch:
    """Looks at a process ten times a second."""

    def __init__(self, pid: int, data: Path) -> None:
        self._process = psutil.Process(pid)
        self._data = data
        self._disk_before = folder_bytes(data)
        self._stopped = threading.Event()
        self._memory = self._descriptors = 0
        self._cpu_before, self._begun = sum(self._process.cpu_times()[:2]), time.monotonic()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while True:
            with suppress(psutil.Error):
                self._memory = max(self._memory, self._process.memory_info().rss)
                self._descriptors = max(self._descriptors, self._process.num_fds())
            if self._stopped.wait(0.1):
                return

    def stop(self) -> Most:
        """What it has seen."""
        self._stopped.set()
        self._thread.join()
        disk = folder_bytes(self._data) - self._disk_before
        cpu = (sum(self._process.cpu_times()[:2]) - self._cpu_before) / (time.monotonic() - self._begun)
        return Most(self._memory / 1e6, disk / 1e6, self._descriptors, cpu)


def folder_bytes(folder: Path) -> int:
    """What the files below it take."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_blocks * 512
    return total


@contextmanager
def flooding(flood: Flood) -> Iterator[dict[str, int]]:
    """The flood, in a process of its own, from when it is under way; afterwards what came of it."""
    command = [sys.executable, str(HERE / "flooders.py"), flood.to_json()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        counts: dict[str, int] = {}
        try:
            said = process.stdout.readline().strip()
            assert said == "ready", said
            yield counts
            counts.update(json.loads(process.communicate("", timeout=END_S)[0]))
        finally:
            process.kill()


@dataclass(frozen=True)
class Site:
    """A platform with the honest ones, and its ports by name."""

    platform: Platform
    ports: dict[str, int]

    def honest(self, seconds: float, **options: float) -> Times:
        """How the honest ones fare for so long."""
        times = Times(**options)
        uvloop.run(Honest(self.platform, times).run(seconds))
        return times

    def wait_until_quiet(self) -> None:
        """Returns when the platform has as few descriptors as without a flood."""
        process = psutil.Process(self.platform.pid)
        wait_for(lambda: process.num_fds() <= EMPTY.descriptors, "a flood's connections are closed", timeout_s=60)

    def held(self) -> list[str]:
        """What the platform has said of its event loop."""
        return [line for line in self.platform.log.read_text().splitlines() if "event loop was held" in line]


@contextmanager
def prepared(name: str) -> Iterator[Site]:
    """A site for a flood."""
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
        yield Site(platform, {**ports, "tcp": tcp})


@dataclass(frozen=True)
class Row:
    """What a flood did: how the honest ones fared beside it, what the platform had, and what the flood counted."""

    name: str
    beside: Times
    most: Most
    counts: dict[str, int]

    @property
    def exceeded(self) -> list[str]:
        """What is over the flood's bounds."""
        return BOUNDS[self.name[0]].exceeded(self.most)

    def slower(self, alone: Times) -> list[str]:
        """What took longer at p99 than twice that without the flood and than 50 ms."""
        return [kind for kind in KINDS if at(getattr(self.beside, kind), 0.99) > longest_ms(getattr(alone, kind))]

    def cells(self, alone: Times) -> str:
        """A line of the table."""
        times = " | ".join(quantiles(getattr(alone, kind), getattr(self.beside, kind)) for kind in KINDS)
        most, may = self.most, BOUNDS[self.name[0]]
        had = f"{most.memory_mb:,.0f} of {may.memory_mb} | {most.disk_mb:,.1f} of {may.disk_mb}"
        had += f" | {most.descriptors:,} of {may.descriptors:,} | {most.cpu:.0%}"
        return f"| {self.name[2:]} | {times} | {sum(self.beside.failed.values())} | {had} |"


def row(site: Site, name: str, seconds: float, **options: float) -> Row:
    """A flood, and the honest ones beside it for so long; what a flood before it has left must go first."""
    site.wait_until_quiet()
    watch = Watch(site.platform.pid, site.platform.data)
    with flooding(HOW[name[0]].flood(name, site.ports)) as counts:
        beside = site.honest(seconds, **options)
        most = watch.stop()
    return Row(name, beside, most, counts)


def at(times: list[float], share: float) -> float:
    """A quantile."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


def longest_ms(alone: list[float]) -> float:
    """What p99 may be beside a flood."""
    return max(BOUND_MS, 2 * at(alone, 0.99))


def quantiles(alone: list[float], beside: list[float]) -> str:
    """p50 and p99 alone and beside, as a cell; bold where p99 is longer than it may be."""
    mark = "**" if at(beside, 0.99) > longest_ms(alone) else ""
    return f"{at(alone, 0.5):.1f} / {at(alone, 0.99):.0f} → {at(beside, 0.5):.1f} / {mark}{at(beside, 0.99):.0f}{mark}"


def measure(name: str, seconds: float, *, is_loaded: bool = False) -> list[str]:
    """Prints a line of the table, and to standard error what came of the flood; what is beyond its bound, in words.

    Where others use the machine, how long the honest ones waited is theirs too, and is beyond no bound.
    """
    with prepared(name) as site:
        alone = site.honest(seconds)
        found = row(site, name, seconds)
        held = site.held()
    print(found.cells(alone), flush=True)
    failures = [f"  {text}: {count}" for text, count in found.beside.failed.items()]
    print(f"{name}: {found.counts}", *failures, *held, sep="\n", file=sys.stderr)
    slower = [] if is_loaded else [f"p99 of {kind}" for kind in found.slower(alone)]
    return [f"{name}: {each}" for each in (*slower, *found.exceeded, *found.beside.failed)]


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="floods whose name begins so")
    parser.add_argument("--loaded", action="store_true", help="others use the machine: p99 is not judged")
    options = parser.parse_args()
    print("p50 / p99 in ms, alone → beside the flood; MB, MB of disk and descriptors: the most, of what is allowed\n")
    print(
        "| flood | terminal logs in | report | user logs in | request | failed | MB | MB of disk | descriptors | CPU |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    names = [name for name in ATTACKS if name.startswith(tuple(options.only.split(",")))]
    beyond = [each for name in names for each in measure(name, options.seconds, is_loaded=options.loaded)]
    waits = "" if options.loaded else f"p99 within twice that without the flood or {BOUND_MS:.0f} ms, "
    print(f"\n{waits}nothing failed, nothing over its bound: ", end="")
    print("yes" if not beyond else "no", *beyond, sep="\n- ")
    sys.exit(bool(beyond))


if __name__ == "__main__":
    main()
