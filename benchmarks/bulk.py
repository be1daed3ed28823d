"""Imports and exports of terminals on a served platform, and what others notice of them meanwhile.

Run: ``python benchmarks/bulk.py [--terminals 10000]``. While each import runs, a terminal publishes at QoS 1, one logs
in by MQTT again and again, a user logs in, another user changes a record, a command is given, and an event is raised
(until it is listed): how long each took at worst, and of the last two what took more than a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from terrazzo.client import ActionError, AsyncClient
from terrazzo.client.bulk import Progress

PASSWORD = "benchmark password"
_START_S = 30.0
BOUND_S, BOUNDED = 1.0, ("event", "command")
COLUMNS = (
    "uid",
    "name",
    "description",
    "type",
    "config_id",
    "mode",
    "username",
    "pin",
    "access",
    "topic",
    "keep_alive",
)


def make_file(terminals: int, *, name: str) -> bytes:
    """CSV with a column for everything that terminals usually have."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for number in range(terminals):
        uid = f"T{number:06}"
        described = f"{name} {number}", "somewhere in the field"
        writer.writerow(
            (uid, *described, "Adapter-II", "Standard", "pwd", f"u{number}", f"{number:08}", "all", "all", 60)
        )
    return text.getvalue().encode()


class Worst:
    """The longest and the number of one thing's repetitions."""

    def __init__(self) -> None:
        self.longest_s: dict[str, float] = {}
        self.count: dict[str, int] = {}
        self.late: dict[str, int] = {}  # that took longer than ``BOUND_S``

    def note(self, name: str, took_s: float) -> None:
        """Counts one."""
        self.longest_s[name] = max(self.longest_s.get(name, 0.0), took_s)
        self.count[name] = self.count.get(name, 0) + 1
        if took_s > BOUND_S and name in BOUNDED:
            self.late[name] = self.late.get(name, 0) + 1

    async def repeat(self, name: str, work: Callable[[], Awaitable[object]], pause_s: float) -> None:
        """Works until cancelled."""
        while True:
            began = time.perf_counter()
            await work()
            self.note(name, time.perf_counter() - began)
            await asyncio.sleep(pause_s)

    def __str__(self) -> str:
        took = ", ".join(f"{name} {took * 1e3:.0f} ms ({self.count[name]})" for name, took in self.longest_s.items())
        return took + "".join(f"; {name} beyond {BOUND_S:g} s: {count}" for name, count in self.late.items())


class Terminal:
    """Just enough MQTT 3.1.1 for one terminal."""

    def __init__(self, port: int, uid: str) -> None:
        self._port, self._uid = port, uid

    async def connect(self) -> None:
        """Logs in [MQTT-3.1]."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        texts = b"".join(len(text).to_bytes(2, "big") + text for text in (self._uid.encode(), b"user", b"pin"))
        head = b"\x00\x04MQTT\x04\xc2\x00\x00"
        self._writer.write(bytes((0x10, len(head) + len(texts))) + head + texts)
        answer = await self._reader.readexactly(4)
        assert answer == b"\x20\x02\x00\x00", answer

    async def publish(self, payload: bytes = b'{"T": 21.5}') -> None:
        """One report at QoS 1, and its acknowledgement, which says that it is stored."""
        topic = f"g/{self._uid}/r".encode()
        body = len(topic).to_bytes(2, "big") + topic + b"\x00\x01" + payload
        self._writer.write(bytes((0x32, len(body))) + body)
        await self._reader.readexactly(4)

    async def log_in_again(self) -> None:
        """A connection of its own, from CONNECT to CONNACK."""
        await self.connect()
        self._writer.close()


@contextlib.asynccontextmanager
async def platform(folder: Path) -> AsyncIterator[tuple[str, int]]:
    """``terrazzo serve``; its address, and the port of MQTT."""
    ports = [_free_port() for _ in range(4)]
    names = ("HTTP__PORT", "MQTT__PORT", "WEBSOCKET__PORT", "MQTT__WEBSOCKET_PORT")
    environment = {f"TERRAZZO_{name}": str(port) for name, port in zip(names, ports, strict=True)}
    environment |= {"TERRAZZO_ADMIN__PASSWORD": PASSWORD, "TERRAZZO_LIMITS__CONNECTS_PER_SECOND": "100000"}
    command = (sys.executable, "-m", "terrazzo", "serve", "--data", str(folder / "data"))
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stdout=asyncio.subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{ports[0]}"
    try:
        async with asyncio.timeout(_START_S):
            await _until_ready(url)
        yield url, ports[1]
    finally:
        process.terminate()
        await process.wait()


async def _until_ready(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def prepare(client: AsyncClient) -> None:
    """A configuration, and the two terminals that are at work meanwhile."""
    await client.call("import_terminal_configs", rows=[{"name": "Standard"}, {"name": "Other"}])
    fields: dict[str, Any] = {"type": "T", "config_id": "Standard", "mode": "pwd", "username": "user", "pin": "pin"}
    uids = ("busy", "door", "away", "alarm")
    await client.call("import_terminals", rows=[{"uid": uid, "name": uid, **fields} for uid in uids])
    script = [["HOT", "Hot", "", "EVNT", "alarm.T", "x", "x > 800"]]
    await client.call("import_mappings", rows=[{"name": "M", "script": script}])
    await client.call("import_objects", rows=[{"name": "O", "mapping_id": "M", "terminal_list": ["alarm"]}])


@contextlib.asynccontextmanager
async def beside(client: AsyncClient, port: int, worst: Worst) -> AsyncIterator[None]:
    """What others do meanwhile."""
    busy, door, alarm = (Terminal(port, uid) for uid in ("busy", "door", "alarm"))
    await busy.connect()
    await alarm.connect()

    async def events() -> int:
        return int((await client.call("get_event_list", page_size=1))["total_records"])

    async def raise_event() -> None:
        before = await events()
        await alarm.publish(b'{"T": 900}')
        while await events() == before:  # noqa: ASYNC110 - as whoever looks at a list
            await asyncio.sleep(0.005)
        await alarm.publish(b'{"T": 0}')

    async def command() -> None:
        await client.call("publish_terminal_command", terminal_id="away", command="SP", value=1)

    async def change() -> None:
        await client.call("import_terminal_configs", rows=[{"name": f"C{time.time_ns()}"}])

    works: dict[str, tuple[Callable[[], Awaitable[object]], float]] = {
        "publish": (busy.publish, 0.0),
        "terminal's login": (door.log_in_again, 0.01),
        "read": (lambda: client.terminal("busy"), 0.0),
        "user's login": (lambda: client.call("login", username="admin", password=PASSWORD), 0.1),
        "another change": (change, 0.05),
        "event": (raise_event, 0.05),
        "command": (command, 0.05),
    }
    tasks = [asyncio.create_task(worst.repeat(name, *work), name=name) for name, work in works.items()]
    await asyncio.sleep(1)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def measure(terminals: int) -> None:
    """Prints a line for each thing that was done."""
    file, changed = make_file(terminals, name="Terminal"), make_file(terminals, name="Device")
    print(f"{terminals} terminals, {len(file):,} bytes of CSV")
    with tempfile.TemporaryDirectory() as folder:
        async with (
            platform(Path(folder)) as (url, port),
            AsyncClient(url, username="admin", password=PASSWORD) as client,
        ):
            await prepare(client)
            worst = Worst()
            async with beside(client, port, worst):
                await asyncio.sleep(2)
            print(f"nothing else: {worst}")
            for name, data, options in (
                ("dry run", file, {"dry_run": True}),
                ("import", file, {}),
                ("same again", file, {"mode": "upsert"}),
                ("change all", changed, {"mode": "upsert"}),
            ):
                await _import(client, port, name, data, **options)
            began = time.perf_counter()
            size = sum([len(piece) async for piece in client.export_records("terminals", secrets=True)])
            print(f"export: {time.perf_counter() - began:.2f} s, {size:,} bytes")


async def _import(client: AsyncClient, port: int, name: str, data: bytes, **options: Any) -> None:
    worst, stages = Worst(), dict[str, float]()
    async with beside(client, port, worst):
        worst.longest_s.clear()
        worst.count.clear()
        began = time.perf_counter()

        def note(progress: Progress) -> None:
            stages.setdefault(progress.stage, time.perf_counter() - began)

        try:
            report = await client.import_records("terminals", data, on_progress=note, **options)
        except ActionError as error:
            raise SystemExit(f"{name}: {error}") from None
        took_s = time.perf_counter() - began
    counts = ", ".join(f"{report[each]} {each}" for each in ("created", "updated", "unchanged") if report[each])
    print(f"{name}: {took_s:.2f} s, {counts}; longest meanwhile: {worst}")


def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--terminals", type=int, default=10_000)
    asyncio.run(measure(parser.parse_args().terminals))


if __name__ == "__main__":
    main()
