"""Several nodes on one machine, to be looked at: ``make cluster`` (``python tests/local_cluster.py``).

Three servers of a log, PostgreSQL, two nodes, two fronts, and a simulated fleet for each front. What ends is started
again, as a service manager does. All of them end with Ctrl-C, and what they have kept is deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nats_servers import NatsServer, running_nats
from postgresql_server import PostgreSQL, running_postgresql
from support import free_port
from terrazzo.client import Client

NODES, FRONTS = ("a", "b"), ("f1", "f2")
TERMINALS = 20
NAME = "local"
_STARTS_S = 300.0  # on a machine that has nothing else to do it takes ten
_ENDS_S = 30.0
_SHORT_S = 5.0  # who ends sooner than that after its start
_MOST_SHORT = 3  # in a row, is not started again
_BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


class Address(NamedTuple):
    """Where a node or front is. ``mqtt``: a port, like ``http``."""

    name: str
    http: int
    mqtt: int


class Interrupted(Exception):
    """Somebody wants it to end before it was ready."""


class Failed(Exception):
    """What has ended, or didn't begin, and what it said last."""


class Kept:
    """A process that is started again when it has ended."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = command
        self._short = 0  # times in a row
        self.start()

    def start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TERRAZZO_")}
        with self.log.open("ab") as log:
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            # not of the terminal's group: Ctrl-C is for this process alone, which ends the others in their order
            self.process = subprocess.Popen(self._command, env=environment, start_new_session=True, **options)
        self._started_s = time.monotonic()

    def start_again(self) -> None:
        """Starts it again.

        Raises:
            Failed: it ended soon each of the last times.
        """
        self._short = self._short + 1 if time.monotonic() - self._started_s < _SHORT_S else 0
        if self._short >= _MOST_SHORT:
            raise Failed(f"{self.name} ends again and again:\n{self.tail()}")
        self.start()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:]

    def end(self) -> None:
        """Ends it in order; kills it where it doesn't end in time."""
        self.process.terminate()
        try:
            self.process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LocalCluster:
    """The processes of nodes, fronts and fleets; ``end`` ends them in the order in which they need each other."""

    def __init__(
        self,
        folder: Path,
        servers: Sequence[NatsServer],
        postgresql: PostgreSQL,
        *,
        stopping: threading.Event,
        is_anywhere: bool = False,
        fronts: Sequence[str] = FRONTS,
        settings: Mapping[str, Mapping[str, str | int | float]] | None = None,
    ) -> None:
        """``stopping``: is set when it has to end; ``is_anywhere``: at free ports, instead of the documented ones;
        ``fronts``: their names; ``settings``: of all, by section, beside or instead of what they have."""
        self.folder = folder
        self.servers, self.postgresql = servers, postgresql
        self.password = secrets.token_urlsafe(9)
        pick = (lambda port: free_port()) if is_anywhere else (lambda port: port)
        self.nodes = [Address(name, pick(8080 + at), pick(1883 + at)) for at, name in enumerate(NODES)]
        self.fronts = [Address(name, pick(8090 + at), pick(1893 + at)) for at, name in enumerate(fronts)]
        self.processes: dict[str, Kept] = {}
        self._stopping = stopping
        self._websockets = {each.name: free_port() for each in self.nodes}
        self._shared: dict[str, dict[str, str | int | float]] = {
            "admin": {"password": self.password},
            "database": {"url": postgresql.database(), "secrets_key": secrets.token_hex(32)},
            "auth": {"token_key": secrets.token_hex(32)},
            "stream": {
                "kind": "jetstream",
                "url": ",".join(server.url for server in servers),
                "monitor_url": ",".join(server.monitor_url for server in servers),
                "log_gib": 0.5,
                "in_gib": 0.2,
            },
        }
        for section, keys in (settings or {}).items():
            self._shared[section] = {**self._shared.get(section, {}), **keys}

    def configure(self, address: Address) -> Path:
        """Writes the configuration of a node or front."""
        is_front = address in self.fronts
        own: dict[str, dict[str, str | int | float]] = {
            "cluster": {"name": NAME, "node": address.name, "role": "front" if is_front else "all"},
            "http": {"port": address.http},
            "mqtt": {"port": address.mqtt, "websocket_port": 0},
            "websocket": {"port": 0 if is_front else self._websockets[address.name]},
            "data": {"dir": str(self.folder / address.name)},
        }
        lines = []
        for section, keys in {**self._shared, **own}.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        path = self.folder / f"{address.name}.toml"
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")
        return path

    def start(self) -> None:
        """Starts nodes, then fronts; returns when one node leads and terminals can connect to each front.

        Raises:
            Failed: one of them has ended, or isn't ready for long.
            Interrupted: it is to end.
        """
        for address in (*self.nodes, *self.fronts):
            self._spawn(address.name, "terrazzo", "serve", "--config", str(self.configure(address)))
        self._wait(lambda: self.leader() is not None, "a node leads")
        for address in self.fronts:
            self._wait(lambda address=address: is_ready(address), f"{address.name} is ready")

    def leader(self) -> Address | None:
        """The node that serves."""
        return next((each for each in self.nodes if is_ready(each)), None)

    def start_fleet(self, count: int = TERMINALS) -> None:
        """Makes terminals and starts a simulated fleet for each front."""
        leader = self.leader()
        assert leader is not None
        with Client(f"http://127.0.0.1:{leader.http}", username="admin", password=self.password) as client:
            config = client.call("create_terminal_config", name="simulated", **_BY)["uid"]
            for number in range(1, count + 1):
                name = f"sim-{number:05d}"
                given = {"type": "Adapter-II", "mode": "pwd", "access": "all", "topic": "all", **_BY}
                login = {"username": name, "pin": f"pin-{number:05d}"}
                client.call("create_terminal", uid=name, name=name, config_id=config, **login, **given)
        share = -(-count // len(self.fronts))
        for index, front in enumerate(self.fronts):
            first, some = index * share + 1, min(share, count - index * share)
            terminals = ["--count", str(some), "--first", str(first), "--type", "Adapter-II"]
            self._spawn(f"fleet-{front.name}", "terrazzo_simulators", "run", "--port", str(front.mqtt), *terminals)

    def end(self) -> None:
        """Ends fleets, fronts, those that stand by, the leader; who doesn't end in time is killed."""
        leader = self.leader()
        fleets = [name for name in self.processes if name.startswith("fleet")]
        standing_by = [each.name for each in self.nodes if each != leader]
        for name in (*fleets, *(each.name for each in self.fronts), *standing_by, *self.processes):
            if name in self.processes:
                self.processes.pop(name).end()

    def start_ended(self) -> None:
        """Starts again what has ended, and says so.

        Raises:
            Failed: it ends again and again.
        """
        for each in self.ended():
            print(f"{each.name} has ended with {each.process.returncode}, and is started again.", flush=True)
            each.start_again()

    def ended(self) -> list[Kept]:
        """What has ended by itself, or by somebody's hand."""
        return [each for each in self.processes.values() if each.process.poll() is not None]

    def _spawn(self, name: str, *program: str) -> None:
        self.processes[name] = Kept(name, [sys.executable, "-m", *program], self.folder)

    def _wait(self, condition: Any, what: str) -> None:
        ends_s = time.monotonic() + _STARTS_S
        while not condition():
            if self._stopping.wait(0.1):
                raise Interrupted
            if ended := self.ended():
                raise Failed(f"{ended[0].name} has ended before {what}:\n{ended[0].tail()}")
            if time.monotonic() > ends_s:
                raise Failed(f"not within {_STARTS_S:.0f} s: {what}; {self.folder} had the logs")


def is_ready(address: Address) -> bool:
    """Whether ``/readyz`` says so."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{address.http}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextlib.contextmanager
def local_cluster(
    stopping: threading.Event,
    *,
    is_anywhere: bool = False,
    fronts: Sequence[str] = FRONTS,
    settings: Mapping[str, Mapping[str, str | int | float]] | None = None,
) -> Iterator[LocalCluster]:
    """A cluster whose nodes are to be started; ended and deleted behind the block. Arguments as of ``LocalCluster``."""
    folder = Path(tempfile.mkdtemp(prefix="terrazzo-cluster-"))
    try:
        with running_nats(folder / "log", 3) as servers, running_postgresql() as postgresql:
            options: dict[str, Any] = {"is_anywhere": is_anywhere, "fronts": fronts, "settings": settings}
            found = LocalCluster(folder, servers, postgresql, stopping=stopping, **options)
            try:
                yield found
            finally:
                found.end()
    finally:
        shutil.rmtree(folder)


def describe(cluster: LocalCluster) -> str:
    """Where all is, and the login."""
    leader = cluster.leader()
    lines = []
    for each in cluster.nodes:
        lines.append(
            f"  node {each.name:<5} http://127.0.0.1:{each.http}/  {'leads' if each == leader else 'stands by'}"
        )
    for each in cluster.fronts:
        lines.append(f"  front {each.name:<4} mqtt://127.0.0.1:{each.mqtt}, http://127.0.0.1:{each.http}/readyz")
    config = cluster.folder / f"{cluster.nodes[0].name}.toml"
    program = Path(sys.executable).parent / "terrazzo"
    with contextlib.suppress(ValueError):
        program = program.relative_to(Path.cwd())
    lines += [
        f"  login      admin, {cluster.password}",
        "  fleet      sim-00001 and so on, with pin-00001; one half at each front",
        f"  logs       {cluster.folder}/*.log",
        "To look at it, and to send the terminals of a front away:",
        f"  {shlex.quote(str(program))} cluster status --config {config}",
        f"  {shlex.quote(str(program))} cluster drain {cluster.fronts[0].name} --config {config}",
        "What ends or is killed is started again. Ctrl-C ends all of it, and what it has kept is gone.",
    ]
    return "\n".join(lines)


def main() -> int:
    """Starts everything, waits for Ctrl-C; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--free-ports", action="store_true", help="at any free ports")
    parser.add_argument("--terminals", type=int, default=TERMINALS, help="of the simulated fleet")
    given = parser.parse_args()
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    try:
        print("Starting three servers of a log, PostgreSQL, two nodes and two fronts ...", flush=True)
        with local_cluster(stopping, is_anywhere=given.free_ports) as cluster:
            cluster.start()
            cluster.start_fleet(given.terminals)
            print("Several nodes on this machine are ready.\n" + describe(cluster), flush=True)
            while not stopping.wait(0.5):
                cluster.start_ended()
            print("All are being ended.", flush=True)
    except Interrupted:
        pass
    except Failed as failed:
        print(f"make cluster: {failed}", file=sys.stderr)
        return 1
    except pytest.skip.Exception as missing:
        print(f"make cluster: {missing}; Debian's package of PostgreSQL is postgresql", file=sys.stderr)
        return 2
    print("All have ended.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
