"""A registry of 100,000 terminals and 50,000 objects: imported, started again, asked, changed, and its terminals back.

``python benchmarks/registry.py [--terminals N] [--objects N] [--returning N] [--addresses N] [--against PYTHON]``
imports terminals, then objects that name two of them each and have a mapping; starts the platform again; asks for
lists, searches, items and states and changes single records, ``--repeats`` times each; and ends the platform with
``kill -9`` while ``--returning`` terminals are connected, each at one of ``--addresses`` of 127/8, trying again every
second. Prints each figure beside what it is held against; ``--against``, the interpreter of a virtual environment that
has another version, puts that version's before it.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
from cpu_clock import cpu_seconds
from returning_terminals import Fleet

from terrazzo.client import ActionError, Client
from terrazzo.runtime.descriptors import plan_descriptors
from terrazzo.runtime.process import new_event_loop

PASSWORD = "benchmark password"
TERMINAL_COLUMNS = ("uid", "name", "type", "config_id", "mode", "username", "pin", "access", "topic", "tags")
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
LOGIN = {"type": "Other", "mode": "pwd", "username": "gone-{n}", "pin": "pin-of-{n}", "access": "all", **SIGNED}
OBJECT_COLUMNS = ("name", "description", "terminal_list", "mapping_id", "customer_id", "serial_no", "city")
SCRIPT = [
    ["TEMP", "Temperature", "温度", "STA", "$AdapterID-1.T", ""],
    ["PRES", "Pressure", "压力", "STA", "$AdapterID-2.P", "x / 10"],
]
PLACES = ("Aachen", "Basel", "Como", "Delft", "Essen", "Fulda", "Gera", "Hof")
START_S, BACK_S, IMPORT_S = 60.0, 180.0, 900.0
REQUEST_MS = 15.0
_SPARE = 100  # descriptors of this process beside its terminals
_OF_APIS = 1_000  # connections: the other descriptors are the terminals'
TARGETS = {"both imports, s": 90.0, "ready after a restart, s": 3.0, "memory once ready, MB": 300.0}
BACK = "terminals that are not back"
TARGETS |= {
    BACK: 0.0,
    "all terminals back, s": 12.0,
    "refusals of one terminal, at most": 1.0,
    "CPU of a login, ms": 0.5,
}

Figures = dict[str, float]


class Told(dict[str, float]):
    """Says each figure as soon as it is there."""

    def __ior__(self, others: Figures) -> Told:  # type: ignore[override,misc]
        for name, value in others.items():
            self[name] = value
        return self

    def __setitem__(self, name: str, value: float) -> None:
        print(f"{name}: {value:,.2f}", file=sys.stderr, flush=True)
        super().__setitem__(name, value)


class Server:
    """``terrazzo serve`` of an interpreter on a data folder; its ports stay the same over restarts."""

    def __init__(self, python: str, data: Path, options: tuple[str, ...] = ()) -> None:
        self._python, self._data, self._options = python, data, options
        self._http, self.mqtt, *_ = ports = [_free_port() for _ in range(4)]
        names = ("HTTP__PORT", "MQTT__PORT", "WEBSOCKET__PORT", "MQTT__WEBSOCKET_PORT")
        self._environment = {f"TERRAZZO_{name}": str(port) for name, port in zip(names, ports, strict=True)}
        self._environment["TERRAZZO_ADMIN__PASSWORD"] = PASSWORD
        if python == sys.executable:  # an earlier version may not know it
            self._environment["TERRAZZO_LIMITS__API_CONNECTIONS"] = str(_OF_APIS)
        self.url = f"http://127.0.0.1:{self._http}"

    def start(self, output: IO[bytes] | int = subprocess.DEVNULL) -> float:
        """Starts it; after how many seconds it was ready."""
        began_s = time.monotonic()
        command = [self._python, "-m", "terrazzo", "serve", "--data", str(self._data), "--log-level", "error"]
        environment = {**os.environ, **self._environment}
        self.process = psutil.Popen([*command, *self._options], env=environment, stdout=output)
        while not self._is_ready():
            if time.monotonic() > began_s + START_S or self.process.poll() is not None:
                raise SystemExit(f"{self._python}: not ready within {START_S:.0f} s")
            time.sleep(0.01)
        return time.monotonic() - began_s

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def stop(self, *, kill: bool = False) -> None:
        """Ends it."""
        with suppress(psutil.NoSuchProcess):
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.process.wait()

    @property
    def memory_mb(self) -> float:
        """What it has resident, in millions of bytes."""
        return float(self.process.memory_info().rss) / 1e6

    @property
    def cpu_s(self) -> float:
        """The processor's seconds that it has used."""
        return cpu_seconds(self.process.pid)

    def client(self) -> Client:
        """The administrator's."""
        return Client(self.url, username="admin", password=PASSWORD, timeout_s=IMPORT_S)


def _free_port() -> int:
    """One below those that the system gives to outgoing connections, of which there are many here."""
    while True:
        port = random.randrange(10_240, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


# Imports


def terminals_file(count: int) -> bytes:
    """CSV of a fleet; every fourth is of another type."""
    return _csv(TERMINAL_COLUMNS, (_terminal(number) for number in range(count)))


def _terminal(number: int) -> tuple[str, ...]:
    uid, place = f"T{number:06}", PLACES[number % len(PLACES)]
    name, kind = f"Pump station {number * 7919 % 1_000_000:06}", "Other" if number % 4 == 0 else "Adapter-II"
    return (uid, name, kind, "Standard", "pwd", uid, uid, "all", "all", place)


def objects_file(count: int, terminals: int) -> bytes:
    """CSV of objects with two terminals each."""
    rows = ((number, number * 2 % terminals, (number * 2 + 1) % terminals) for number in range(count))
    return _csv(OBJECT_COLUMNS, (_object(*row) for row in rows))


def _object(number: int, first: int, second: int) -> tuple[str, ...]:
    name, place = f"Pump {number * 7919 % 1_000_000:06}", PLACES[number % len(PLACES)]
    listed = f"T{first:06},T{second:06}"
    return (name, f"of the fleet in {place}", listed, "Pumps", "Waterworks", f"S{number:08}", place)


def _csv(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


@contextmanager
def highest_memory(server: Server, found: Figures, name: str) -> Iterator[None]:
    """Notes the most that the server had resident meanwhile."""
    done, most = threading.Event(), [server.memory_mb]

    def watch() -> None:
        while not done.wait(0.05):
            most.append(server.memory_mb)

    thread = threading.Thread(target=watch, name="memory of the server")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        found[name] = max(most)


def fill(server: Server, terminals: int, objects: int) -> Figures:
    """Imports everything; seconds and memory."""
    found: Figures = {}
    with server.client() as client:
        client.call("import_terminal_configs", rows=[{"name": "Standard"}])
        client.call("import_mappings", rows=[{"name": "Pumps", "script": SCRIPT}])
        client.call("import_customers", rows=[{"name": "Waterworks"}])
        for name, data in (("terminals", terminals_file(terminals)), ("objects", objects_file(objects, terminals))):
            with highest_memory(server, found, f"memory while {name} are imported, MB"):
                began_s, before_s = time.monotonic(), server.cpu_s
                client.import_records(name, data)
                found[f"import of {name}, s"] = time.monotonic() - began_s
                found[f"CPU of the import of {name}, s"] = server.cpu_s - before_s
    found["both imports, s"] = found["import of terminals, s"] + found["import of objects, s"]
    return found


# Requests


def requests(terminals: int, objects: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """What is asked, by what it is; ``{n}`` stands for another number each time."""
    last, last_object = -(-terminals // 20), -(-objects // 20)
    like, some = [["name", "like", "%0777%"]], [f"T{number:06}" for number in range(0, min(terminals, 100_000), 1_000)]
    return {
        "terminals: first page": ("get_terminal_list", {}),
        "terminals: last page": ("get_terminal_list", {"page_index": last}),
        "terminals: by name": ("get_terminal_list", {"order_by": ["name", "asc"]}),
        "terminals: the last by name": ("get_terminal_list", {"order_by": ["name", "desc"], "page_index": last}),
        "terminals: name like %0777%": ("get_terminal_list", {"where_and": like, "order_by": ["name", "asc"]}),
        "terminals: of a type": ("get_terminal_list", {"where_and": [["type", "=", "Other"]], "page_index": 100}),
        "terminals: of a place": ("get_terminal_list", {"tags": ["Como"], "page_index": 100}),
        "terminals: that are offline, by when they were seen": (
            "get_terminal_list",
            {"online": 0, "order_by": ["last_seen", "desc"]},
        ),
        "terminals: 100 by uid": ("get_terminal_list", {"where_in": [["uid", some]], "page_size": 100}),
        "terminals: 100 by configuration": ("get_terminal_list", {"where_and": [["config_id", "=", "1"]]}),
        "objects: first page": ("get_object_list", {}),
        "objects: last page": ("get_object_list", {"page_index": last_object}),
        "objects: by name": ("get_object_list", {"order_by": ["name", "asc"]}),
        "objects: name like %0777%": ("get_object_list", {"where_and": like}),
        "objects: of a city": ("get_object_list", {"where_and": [["city", "=", "Como"]]}),
        "objects: of a customer": ("get_object_list", {"where_and": [["customer_id", "=", "1"]]}),
        "objects: by serial number": ("get_object_list", {"where_and": [["serial_no", "=", "S00000{n}"]]}),
        "search: a name": ("search", {"text": "Pump 0{n}"}),
        "search: a part that many have": ("search", {"text": "pump"}),
        "terminal: item": ("get_terminal_item", {"uid": "T000{n}"}),
        "terminal: status": ("get_terminal_status", {"terminal_id": "T000{n}"}),
        "object: item": ("get_object_item", {"uid": "{n}"}),
        "object: variables": ("get_object_variable_list", {"object_id": "{n}"}),
        "terminal: update": ("update_terminal", {"uid": "T000{n}", "description": "changed"}),
        "object: update": ("update_object", {"uid": "{n}", "description": "changed"}),
        "object: update of its terminals": ("update_object", {"uid": "{n}", "terminal_list": ["T000{n}"]}),
        "object: create": (
            "create_object",
            {"name": "one more", "mapping_id": "1", "terminal_list": ["T000{n}", "T000007"]},
        ),
        "terminal: delete": ("delete_terminal", {"uid": "gone-{n}", "name": "one too many", "config_id": "1", **LOGIN}),
        "object: delete": (
            "delete_object",
            {"name": "one too many", "mapping_id": "1", "terminal_list": ["T000{n}"], **SIGNED},
        ),
    }


def ask(server: Server, terminals: int, objects: int, repeats: int) -> Figures:
    """The 95th percentile of each request, in ms; an answer without what was asked for ends the measurement."""
    found: Figures = {}
    with server.client() as client:
        client.login()
        for name, (action, fields) in requests(terminals, objects).items():
            before_s = server.cpu_s
            took = [_took_ms(client, action, _numbered(fields, 100 + number)) for number in range(repeats)]
            found[f"p95 of {name}, ms"] = statistics.quantiles(took, n=20)[-1]
            found[f"median of {name}, ms"] = statistics.median(took)
            if not action.startswith("delete_"):  # which makes something first
                found[f"CPU of {name}, ms"] = (server.cpu_s - before_s) / repeats * 1e3
    return found


def _took_ms(client: Client, action: str, fields: dict[str, Any]) -> float:
    if action.startswith("delete_"):  # of one that is made for it
        fields = {"uid": client.call(action.replace("delete_", "create_"), **fields)["uid"]}
    if action.startswith("update_"):  # it takes all fields
        fields = client.call(action.replace("update_", "get_") + "_item", uid=fields["uid"]) | fields
    began_s = time.perf_counter()
    client.call(action, **fields)
    return (time.perf_counter() - began_s) * 1e3


def _numbered(value: Any, number: int) -> Any:
    match value:
        case str():
            return value.replace("{n}", str(number))
        case dict():
            return {name: _numbered(each, number) for name, each in value.items()}
        case list():
            return [_numbered(each, number) for each in value]
    return value


# Terminals that come back


async def come_back(server: Server, count: int, addresses: int) -> Figures:
    """Seconds from the start of a new process until all are back, and what they were told meanwhile."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    possible = min(plan_descriptors(most, count, _OF_APIS).connections, most - _SPARE)
    if possible < count:
        print(f"{possible:,} terminals instead of {count:,}: the machine has no more descriptors", file=sys.stderr)
        count = possible
    fleet = Fleet(server.mqtt, count, addresses)
    fleet.start()
    try:
        if not await fleet.all_in(BACK_S):
            told = f"refused {sum(fleet.refused.values()):,} times, cut {sum(fleet.cut.values()):,} times"
            print(f"only {len(fleet.connected):,} of {count:,} terminals got in at all: {told}", file=sys.stderr)
        server.stop(kill=True)
        await fleet.all_out(BACK_S)
        fleet.forget()
        began_s = time.monotonic()
        ready_s = await asyncio.to_thread(server.start)
        had, before_s = len(fleet.connected), server.cpu_s
        if not await fleet.all_in(BACK_S):
            print(f"after {BACK_S:.0f} s {len(fleet.connected):,} of {count:,} are back", file=sys.stderr)
        back, used_s = len(fleet.connected), server.cpu_s - before_s
    finally:
        await fleet.stop()
    refusals = fleet.refusals()
    return {
        "terminals that come back": count,
        BACK: count - back,
        "all terminals back, s": max(fleet.reached_s) - began_s,
        "all terminals back, s after it was ready": max(fleet.reached_s) - began_s - ready_s,
        "refusals of one terminal, at most": max(refusals.values(), default=0),
        "refusals of all": sum(refusals.values()),
        "CPU of a login, ms": used_s / max(1, count - had) * 1e3,
    }


# All of it


def measure(python: str, arguments: argparse.Namespace) -> Figures:
    """All figures of the version that an interpreter has."""
    found: Figures = Told()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(python, Path(folder) / "data")
        server.start()
        try:
            found |= fill(server, arguments.terminals, arguments.objects)
            server.stop()
            found["ready after a restart, s"] = server.start()
            found["CPU of a start, s"] = server.cpu_s
            found["memory once ready, MB"] = server.memory_mb
            found |= ask(server, arguments.terminals, arguments.objects, arguments.repeats)
            found["memory after the requests, MB"] = server.memory_mb
            with asyncio.Runner(loop_factory=new_event_loop) as loop:
                found |= loop.run(come_back(server, arguments.returning, arguments.addresses))
            found["memory with the terminals, MB"] = server.memory_mb
        except ActionError as error:
            raise SystemExit(f"{python}: {error}") from None
        finally:
            server.stop(kill=True)
    return found


def target(name: str) -> float | None:
    """What a figure is held against: at most this."""
    return REQUEST_MS if name.startswith("p95 of ") else TARGETS.get(name)


def show(found: Figures, before: Figures | None) -> None:
    """A line for each figure; what misses its target is marked."""
    print("| figure | before | now | at most | |\n| --- | ---: | ---: | ---: | --- |")
    for name, value in found.items():
        most, former = target(name), "" if before is None else f"{before[name]:,.1f}"
        verdict = "" if most is None else "met" if value <= most else "**missed**"
        print(f"| {name} | {former} | {value:,.2f} | {'' if most is None else f'{most:g}'} | {verdict} |")


def main() -> None:
    """Reads the options; exits 1 where terminals have not come back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terminals", type=int, default=100_000)
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--returning", type=int, default=10_000, help="terminals that are connected, and come back")
    parser.add_argument("--addresses", type=int, default=1_000, help="of 127/8, that they come from")
    parser.add_argument("--repeats", type=int, default=60, help="of each request")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter that has another version")
    arguments = parser.parse_args()
    before = measure(arguments.against, arguments) if arguments.against else None
    found = measure(sys.executable, arguments)
    show(found, before)
    sys.exit(bool(found[BACK]))


if __name__ == "__main__":
    main()
