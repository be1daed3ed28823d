"""The databases that ``history.py`` asks: Terrazzo, InfluxDB 1.x and VictoriaMetrics, each a process on a folder."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import psutil
from history_load import DATABASE, POINTS, split, variable
from publishers import Load, credentials

from influx_server import InfluxServer
from running import Platform, ServerProcess, answers
from support import free_port

HERE = Path(__file__).parent


class Request(NamedTuple):
    """A question as it goes over HTTP."""

    method: str
    path: str
    body: bytes = b""


class Peer(Protocol):
    """One of those that are compared."""

    name: str
    target: str
    port: int
    headers: dict[str, str]
    folder: Path

    @property
    def pid(self) -> int:
        """Of its process."""

    def prepare(self, uids: list[str]) -> None:
        """Makes what these terminals need."""

    def restart(self) -> float:
        """Starts it anew; seconds until it is ready."""

    def stop(self) -> None:
        """Ends it."""


class Terrazzo:
    """``terrazzo serve``, started as users do."""

    name, target = "Terrazzo", "terrazzo"

    def __init__(self, folder: Path) -> None:
        self._platform = Platform(
            folder / "terrazzo", fresh=True, env={"TERRAZZO_LIMITS__CONNECTS_PER_SECOND": "100000"}
        )
        self.folder = folder / "terrazzo"
        self._config = self._login().add_config()
        rows = [
            [variable(terminal, point), "", "", "STA", f"$AdapterID-{terminal}.P{point}", ""]
            for terminal in (1, 2)
            for point in range(POINTS)
        ]
        record = {"name": "m", "script": json.dumps(rows), "created_by": 1, "last_modified_by": 1, "is_available": 1}
        self._mapping = self._platform.call("create_mapping", **record)["uid"]
        self.objects: dict[str, str] = {}

    def _login(self) -> Platform:
        self._platform.login()
        self.headers = {"Authorization": f"Bearer {self._platform.token}", "Content-Type": "application/json"}
        self.port = self._platform.http
        return self._platform

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._platform.pid

    @property
    def mqtt(self) -> int:
        """The port of its broker."""
        return self._platform.mqtt

    def prepare(self, uids: list[str]) -> None:
        """Makes terminals and objects."""
        for uid in uids:
            username, pin = credentials(uid)
            self._platform.add_terminal(uid, self._config, username=username, pin=pin)
        for name in dict.fromkeys(split(uid)[0] for uid in uids):
            pair = [uid for uid in uids if split(uid)[0] == name]
            found = self._platform.call("create_object", name=name, mapping_id=self._mapping, terminal_list=pair)
            self.objects[name] = str(found["id"])

    def restart(self) -> float:
        """Ends and starts the process."""
        self._platform.stop(timeout_s=60)
        began = time.perf_counter()
        again = self._platform
        self._platform = Platform(again.data, env=again.environment, ports=again.ports, fresh=True)
        spent_s = time.perf_counter() - began
        self._login()
        return spent_s

    def stop(self) -> None:
        """Ends it, however busy it is."""
        self._platform.stop(timeout_s=60)

    def metric(self, name: str) -> float:
        """A figure of ``/metrics``."""
        with urllib.request.urlopen(f"{self._platform.url}/metrics") as answer:
            found = re.search(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", answer.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def loop_delays(self) -> dict[float, float]:
        """How often the event loop has been late by at most so many seconds, since the start."""
        with urllib.request.urlopen(f"{self._platform.url}/metrics") as answer:
            text = answer.read().decode()
        found = re.findall(r'^terrazzo_loop_delay_seconds_bucket\{le="([^"]+)"\} ([0-9.e+]+)$', text, re.MULTILINE)
        return {float(bound): float(count) for bound, count in found}

    def resident_mib(self) -> tuple[float, float]:
        """Of the server, and of the processes that it has started."""
        server = psutil.Process(self.pid)
        children = sum(child.memory_info().rss for child in server.children(recursive=True))
        return server.memory_info().rss / 2**20, children / 2**20


class Influx:
    """Debian's InfluxDB 1.x."""

    name, target = "InfluxDB", "influxdb"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "influxdb"
        self._server = InfluxServer(self.folder)
        self._server.start()
        self._server.query(f"CREATE DATABASE {DATABASE}")
        self.port = self._server.port
        self.headers: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._server.pid

    def prepare(self, uids: list[str]) -> None:
        """Nothing: it takes what comes."""

    def restart(self) -> float:
        """Ends and starts the process."""
        self._server.stop()
        began = time.perf_counter()
        self._server.start()
        return time.perf_counter() - began

    def stop(self) -> None:
        """Ends it."""
        self._server.stop()


class Victoria:
    """Debian's VictoriaMetrics; ``program`` is its path."""

    name, target = "VictoriaMetrics", "victoria"

    def __init__(self, folder: Path, program: str) -> None:
        self.folder = folder / "victoria"
        self.port = free_port()
        self.headers: dict[str, str] = {}
        self._command = [
            program,
            f"-storageDataPath={self.folder}",
            f"-httpListenAddr=127.0.0.1:{self.port}",
            "-retentionPeriod=100y",
        ]
        self._start()

    def _start(self) -> None:
        self._server = ServerProcess(self._command, log=self.folder.parent / "victoria.log")
        self._server.wait_ready(lambda: answers(f"http://127.0.0.1:{self.port}/health"))

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._server.pid

    def prepare(self, uids: list[str]) -> None:
        """Nothing: it takes what comes."""

    def flush(self) -> None:
        """Has questions see what was written a moment ago."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/internal/force_flush"):
            pass

    def restart(self) -> float:
        """Ends and starts the process."""
        self._server.stop(timeout_s=60)
        began = time.perf_counter()
        self._start()
        return time.perf_counter() - began

    def stop(self) -> None:
        """Ends it."""
        self._server.stop(timeout_s=60)


def start_all(folder: Path, *, program: str | None) -> list[Terrazzo | Influx | Victoria]:
    """Terrazzo, and those of the others that are installed."""
    found: list[Terrazzo | Influx | Victoria] = [Terrazzo(folder)]
    if shutil.which("influxd"):
        found.append(Influx(folder))
    if program and (path := shutil.which(program)):
        found.append(Victoria(folder, path))
    return found


class Feed:
    """A process that writes to a peer."""

    def __init__(self, peer: Peer, load: Load) -> None:
        port = peer.mqtt if isinstance(peer, Terrazzo) else peer.port
        given = replace(load, port=port).to_json()
        command = [sys.executable, str(HERE / "history_load.py"), peer.target, given]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "connected\n":
            raise SystemExit(f"{peer.name}: the load could not connect")
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    @property
    def is_over(self) -> bool:
        """Whether all of it is written, or it has failed."""
        return self._process.poll() is not None

    def rate(self) -> float:
        """Waits until all is acknowledged; messages a second."""
        told = json.loads(self._process.communicate()[0])
        return float(told["messages"] / told["seconds"])

    def end(self) -> None:
        """Ends it in the middle."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def fed(peer: Peer, load: Load | None) -> Iterator[None]:
    """Writes meanwhile, if there is a load, which must last longer than what is done meanwhile."""
    feed = Feed(peer, load) if load else None
    if feed is None:
        yield
        return
    try:
        time.sleep(1.0)
        yield
        if feed.is_over:
            raise SystemExit(f"{peer.name}: the load beside the questions was over before they were")
    finally:
        feed.end()


class Asker:
    """Asks over one connection, which stays open."""

    def __init__(self, peer: Peer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", peer.port)
        self._headers = peer.headers

    def ask(self, request: Request) -> tuple[Any, float]:
        """The answer, and the milliseconds until all of it was there."""
        began = time.perf_counter()
        self._connection.request(request.method, request.path, request.body or None, self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        spent_ms = (time.perf_counter() - began) * 1e3
        if answer.status != 200:
            raise SystemExit(f"{request}: {answer.status} {body[:500]!r}")
        return json.loads(body), spent_ms

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def disk_bytes(peer: Peer) -> int:
    """All that it has on disk, in whole blocks as the file system counts."""
    found = 0
    for path in peer.folder.rglob("*"):
        try:
            found += path.stat().st_blocks * 512
        except FileNotFoundError:  # compaction goes on meanwhile
            continue
    return found
