"""A soak: a platform at work for half an hour, around which everybody comes and goes; does it stay as it is?

``python benchmarks/soak.py [--minutes M] [--terminals N] [--rate N] [--no-users] [--live-bytes N] [--env NAME=VALUE]``:
200 terminals, each of which feeds an object, report 1,000 messages a second at QoS 1, break off and come back; users
log in, ask, and log out; live and MQTT subscribers come, read (some slowly), break off, and come back. Once a
second it notes the platform's resident memory, descriptors, threads and tasks, and where ``/metrics`` says that memory
is; each 10 s it tells that on stderr. Prints tables of the parts of the run; exits 1 unless all four are flat over the
last two thirds and memory is below 300 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import aiohttp
import psutil
import uvloop
from attacks.attack import GATEWAY
from attacks.company import Company
from attacks.mqtt_peer import PUBACK, MqttPeer, connected
from random_content import Metrics, metrics_of
from resident import resident_bytes

from running import PASSWORD, Platform

MOST_MB = 300.0
GROWN_MB = 10.0  # over the last two thirds, by a line through all readings
GROWN = 0.1  # of descriptors, threads and tasks, and five
STAYS_S = (5.0, 60.0)  # a terminal
FOLLOWS_S = (3.0, 20.0)  # a subscriber
SUBSCRIBERS = 5
USERS = 4
PARTS = 6
TOLD_S = 10
WHERE = {  # memory by what /metrics says of it
    "live": ("terrazzo_memory_bytes", "kind", "live"),
    "writes": ("terrazzo_store_memory_bytes", "part", "writes"),
    "blocks": ("terrazzo_store_memory_bytes", "part", "blocks"),
    "files": ("terrazzo_store_memory_bytes", "part", "files"),
    "allocated": ("terrazzo_heap_bytes", "part", "allocated"),
    "free": ("terrazzo_heap_bytes", "part", "free"),
    "mapped": ("terrazzo_heap_bytes", "part", "mapped"),
}
ROWS = [
    ["T", "", "", "STA", "{uid}.t", "x * 0.1"],
    ["N", "", "", "STA", "{uid}.n", ""],
    ["TEXT", "", "", "STA", "{uid}.text", ""],
    ["F", "", "", "FUNC", "", "T + N"],
    ["HOT", "", "", "EVNT", "{uid}.t", "", "x > 990"],
]
ALWAYS = {"start_time": "2020-01-01 00:00:00", "end_time": "2099-01-01 00:00:00"}
_WORDS = ("running", "standing", "in need of oil", "door open, light on")


@dataclass(frozen=True)
class Reading:
    """The platform at one moment; memory in MB."""

    at_s: float
    memory: float
    descriptors: int
    threads: int
    tasks: float
    where: dict[str, float] = field(default_factory=dict)  # MB by part; "other" is what none of the C library's has

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {size:.0f}" for name, size in self.where.items())
        return f"{self.at_s:.0f} s: {self.memory:.0f} MB: {parts}"


def where_it_is(metrics: Metrics, resident_mb: float) -> dict[str, float]:
    """MB of memory by part; the first four are in the next three, or in Python's own."""
    found = {part: metrics.get((name, f'{label}="{value}"'), 0.0) / 1e6 for part, (name, label, value) in WHERE.items()}
    found["Mblocks"] = metrics.get(("terrazzo_python_blocks", ""), 0.0) / 1e6
    found["other"] = resident_mb - found["allocated"] - found["free"] - found["mapped"]
    return found


class OwnProcess(Platform):
    """A platform that is no copy of a process that has loaded it: memory and the C library's settings are its own."""

    program = ("-c", "from terrazzo.cli import main; main()")


class Soak:
    """The load on a platform, and how the platform is meanwhile."""

    def __init__(self, platform: Platform, *, terminals: int, rate: float, seconds: float, has_users: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.readings: list[Reading] = []
        self._platform = platform
        self._process = psutil.Process(platform.pid)
        self._company = Company(platform, "a")
        self._interval_s = terminals / rate
        self._has_users = has_users
        self._uids = [self._company.terminal(f"t-{number}") for number in range(terminals)]
        self._hearers = [self._company.terminal(f"h-{number}", topic="pub:r;sub:#") for number in range(SUBSCRIBERS)]
        self._objects = [self._add_object(uid) for uid in self._uids]
        self._began_s = time.monotonic()
        self._end_s = self._began_s + seconds

    def _add_object(self, uid: str) -> str:
        return self._company.object(uid, rows=[[each.format(uid=uid) for each in row] for row in ROWS])

    async def run(self) -> None:
        """All of it, until it is over."""
        async with aiohttp.ClientSession() as self._http, asyncio.TaskGroup() as group:
            group.create_task(self._watch(), name="watch")
            for uid in self._uids:
                group.create_task(self._again(self._report, uid), name=uid)
            if not self._has_users:
                return
            for number in range(SUBSCRIBERS):
                group.create_task(self._again(self._follow, number), name=f"subscriber {number}")
                group.create_task(self._again(self._hear, number), name=f"hearer {number}")
            for number in range(USERS):
                group.create_task(self._again(self._use, number), name=f"user {number}")

    async def _again(self, stay: Any, *who: Any) -> None:
        """One stay after the other; that it is broken off is no fault, that it can't begin is."""
        while time.monotonic() < self._end_s:
            try:
                await stay(*who)
            except (OSError, EOFError, TimeoutError, aiohttp.ClientError) as error:
                self.counts[f"{stay.__name__}: {type(error).__name__} {error}"[:80]] += 1
                await asyncio.sleep(0.5)

    async def _watch(self) -> None:
        for second in itertools.count(1):
            await asyncio.sleep(max(0.0, self._began_s + second - time.monotonic()))
            if time.monotonic() >= self._end_s:
                return
            metrics = await asyncio.to_thread(metrics_of, self._platform)
            self.readings.append(self._read(metrics))
            if second % TOLD_S == 0:
                print(self.readings[-1], file=sys.stderr, flush=True)

    def _read(self, metrics: Metrics) -> Reading:
        process, at_s = self._process, time.monotonic() - self._began_s
        own, size = process.memory_info().rss, resident_bytes(process)
        tasks, where = metrics["terrazzo_loop_tasks", ""], where_it_is(metrics, own / 1e6)
        return Reading(at_s, size / 1e6, process.num_fds(), process.num_threads(), tasks, where)

    def _until(self, stays_s: tuple[float, float]) -> float:
        return min(self._end_s, time.monotonic() + random.uniform(*stays_s))

    async def _report(self, uid: str) -> None:
        """A terminal for a while; it ends in order, or breaks off."""
        async with connected(self._platform.mqtt, uid) as peer:
            self.counts["logins of terminals"] += 1
            until_s, due_s = self._until(STAYS_S), time.monotonic() + random.random() * self._interval_s
            while time.monotonic() < until_s:
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                due_s = max(due_s, time.monotonic() - 1.0) + self._interval_s
                await peer.publish(f"g/{uid}/r", _body())
                self.counts["reports"] += 1
            await _end(peer)

    async def _hear(self, number: int) -> None:
        """A terminal that listens to its company's reports, at QoS 0 and 1; some answer nothing."""
        async with connected(self._platform.mqtt, self._hearers[number]) as peer:
            peer.answers = number % 3 != 0
            await peer.subscribe(["g/#"] if number % 2 else [f"g/t-{number}/#"], qos=number % 2)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(_loop_s(self._until(FOLLOWS_S))):
                    await peer.until(PUBACK)  # which never comes
            self.counts["heard"] += peer.received

    async def _follow(self, number: int) -> None:
        """A live subscriber: of everything, of an object, of some variables; every third reads slowly."""
        headers = {"Authorization": f"Bearer {self._company.tokens['viewer']}"}
        url = f"http://127.0.0.1:{self._platform.websocket}{GATEWAY}"
        wishes: list[dict[str, Any]] = [
            {"kinds": ["grid", "mosaic", "event"]},
            {"kinds": ["grid", "mosaic"], "object_id": random.choice(self._objects)},
            {"kinds": ["mosaic"], "keys": ["T", "HOT"]},
        ]
        async with self._http.ws_connect(url, headers=headers, max_msg_size=0) as socket:
            wish = random.choice(wishes)
            await socket.send_json({"action": "subscribe", **wish, **({"since": 0} if random.random() < 0.2 else {})})
            until_s = self._until(FOLLOWS_S)
            while time.monotonic() < until_s:
                await socket.receive(timeout=10.0)
                self.counts["frames"] += 1
                if number % 3 == 2:
                    await asyncio.sleep(0.02)

    async def _use(self, number: int) -> None:
        """A user: logs in, looks at this and that, logs out."""
        role = "viewer" if number % 2 else "admin"
        token = (await self._ask("login", username=f"a-{role}", password=PASSWORD))["token"]
        for _ in range(random.randrange(1, 10)):
            number = random.randrange(len(self._uids))
            await self._ask("get_grid_list", token, terminal_id=self._uids[number], page_size=100, **ALWAYS)
            await self._ask("get_mosaic_list", token, object_id=self._objects[number], keys=["T", "N"], **ALWAYS)
            await self._ask("get_event_list", token, page_size=50)
            await self._ask("get_terminal_list", token, page_size=100)
            await asyncio.sleep(random.random())
        await self._ask("logout", token)
        self.counts["users"] += 1

    async def _ask(self, action: str, token: str = "", **fields: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._http.post(
            f"{self._platform.url}{GATEWAY}", json={"action": action, **fields}, headers=headers
        ) as answer:
            said = await answer.json()
        self.counts[f"{action} {said['code']}"] += 1
        return said["result"]


def _loop_s(monotonic_s: float) -> float:
    return asyncio.get_running_loop().time() + monotonic_s - time.monotonic()


def _body() -> bytes:
    value = {"t": random.randrange(1_000), "n": random.random(), "text": random.choice(_WORDS), "at": time.time()}
    return json.dumps(value).encode()


async def _end(peer: MqttPeer) -> None:
    if random.random() < 0.5:
        await peer.send(b"\xe0\x00")


def slope(readings: list[Reading], name: str) -> float:
    """What a line through all readings rises by from the first to the last."""
    values = [float(getattr(each, name)) for each in readings]
    if len(values) < 2:
        return 0.0
    line = statistics.linear_regression([each.at_s for each in readings], values)
    return line.slope * (readings[-1].at_s - readings[0].at_s)


def verdict(readings: list[Reading], *, grown_mb: float) -> list[str]:
    """What is not flat over the last two thirds."""
    last = readings[len(readings) // 3 :]
    found = []
    if (grown := slope(last, "memory")) > grown_mb:
        found.append(f"memory grew by {grown:.0f} MB")
    if (most := max(each.memory for each in last)) > MOST_MB:
        found.append(f"memory was at {most:.0f} MB")
    for name in ("descriptors", "threads", "tasks"):
        level = statistics.median(getattr(each, name) for each in last)
        if (grown := slope(last, name)) > GROWN * level + 5:
            found.append(f"{name} grew by {grown:.0f} from {level:.0f}")
    return found


def table(readings: list[Reading]) -> list[str]:
    """A line for each part of the run: medians, and the most memory."""
    lines = [
        "| from s | memory MB | most | descriptors | threads | tasks |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    size = max(1, -(-len(readings) // PARTS))
    for begin in range(0, len(readings), size):
        part = readings[begin : begin + size]
        middle = [
            statistics.median(getattr(each, name) for each in part)
            for name in ("memory", "descriptors", "threads", "tasks")
        ]
        most = max(each.memory for each in part)
        cells = (
            f"{part[0].at_s:.0f} | {middle[0]:.0f} | {most:.0f} | {middle[1]:.0f} | {middle[2]:.0f} | {middle[3]:.0f}"
        )
        lines.append(f"| {cells} |")
    return lines


def places(readings: list[Reading]) -> list[str]:
    """A line for each part of the run: medians of where memory is."""
    names = list(readings[0].where)
    lines = [f"| from s | {' | '.join(names)} |", "| ---: |" + " ---: |" * len(names)]
    size = max(1, -(-len(readings) // PARTS))
    for begin in range(0, len(readings), size):
        part = readings[begin : begin + size]
        cells = [f"{statistics.median(each.where[name] for each in part):.1f}" for name in names]
        lines.append(f"| {part[0].at_s:.0f} | {' | '.join(cells)} |")
    return lines


def environment(options: argparse.Namespace) -> dict[str, str]:
    """The platform's, as the options want it."""
    found = {"TERRAZZO_LIMITS__LOGIN_FAILURES": "0"}
    if options.live_bytes:
        found["TERRAZZO_LIMITS__LIVE_BYTES"] = str(options.live_bytes)
    return found | dict(each.split("=", 1) for each in options.env)


def main() -> None:
    """Exits 1 where it is not flat."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--terminals", type=int, default=200)
    parser.add_argument("--rate", type=float, default=1_000.0, help="reports a second of all terminals")
    parser.add_argument("--live-bytes", type=int, default=0, help="limits.live_bytes, if not the default")
    parser.add_argument("--no-users", action="store_true", help="terminals alone")
    parser.add_argument(
        "--grown-mb", type=float, default=GROWN_MB, help="what memory may grow by in the last two thirds"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="of the platform's environment"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        platform = OwnProcess(Path(name) / "data", env=environment(options)).login()
        try:
            soak = Soak(
                platform,
                terminals=options.terminals,
                rate=options.rate,
                seconds=options.minutes * 60,
                has_users=not options.no_users,
            )
            uvloop.run(soak.run())
            used = psutil.Process(platform.pid).cpu_times()
            cpu_us = (used.user + used.system) / max(1, soak.counts["reports"]) * 1e6
            is_alive, unready = platform.process.poll() is None, platform.unready_parts()
            with urllib.request.urlopen(f"{platform.url}/metrics") as answer:
                kinds = [each for each in answer.read().decode().splitlines() if each.startswith("terrazzo_memory_")]
        finally:
            platform.kill()
    print("\n".join([*table(soak.readings), "", *places(soak.readings), ""]))
    print("\n".join(kinds))
    print(f"{cpu_us:.0f} us of processor time for each report, with all that was done beside")
    print(dict(sorted(soak.counts.items())))
    wrong = verdict(soak.readings, grown_mb=options.grown_mb) + [f"not ready: {part}" for part in unready]
    wrong += [] if is_alive else ["the platform has ended"]
    if wrong:
        raise SystemExit("NOT FLAT: " + "; ".join(wrong))
    print("flat: memory, descriptors, threads and tasks")


if __name__ == "__main__":
    main()
