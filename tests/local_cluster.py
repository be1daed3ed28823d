"""Several nodes on one machine, to be looked at: ``make cluster`` (``python tests/local_cluster.py``).

Three servers of a log, PostgreSQL, two nodes, two fronts, and a simulated fleet that connects to the fronts; all of
them end with Ctrl-C, and what they have kept is deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nats_servers import NatsServer, running_nats
from postgresql_server import running_postgresql
from support import free_port
from terrazzo.client import Client

NODES, FRONTS = ("a", "b"), ("f1", "f2")
TERMINALS = 20
NAME = "local"
_STARTS_S = 300.0  # on a machine that has nothing else to do it takes ten
_ENDS_S = 30.0
_BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


class Address(NamedTuple):
    """Where a node or front is. ``mqtt``: a port, like ``http``."""

    name: str
    http: int
    mqtt: int


class LocalCluster:
    """The processes of nodes, fronts and fleets; ``end`` ends them in the order in which they need each other."""

    def __init__(
        self, folder: Path, servers: Sequence[NatsServer], database: str, *, is_anywhere: bool = False
    ) -> None:
        """``is_anywhere``: at ports that are free, instead of the documented ones."""
        self.folder = folder
        self.password = secrets.token_urlsafe(9)
        pick = (lambda port: free_port()) if is_anywhere else (lambda port: port)
        self.nodes = [Address(name, pick(8080 + at), pick(1883 + at)) for at, name in enumerate(NODES)]
        self.fronts = [Address(name, pick(8090 + at), pick(1893 + at)) for at, name in enumerate(FRONTS)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._websockets = {each.name: free_port() for each in self.nodes}
        self._shared = {
            "TERRAZZO_ADMIN__PASSWORD": self.password,
            "TERRAZZO_DATABASE__URL": database,
            "TERRAZZO_DATABASE__SECRETS_KEY": secrets.token_hex(32),
            "TERRAZZO_AUTH__TOKEN_KEY": secrets.token_hex(32),
            "TERRAZZO_STREAM__KIND": "jetstream",
            "TERRAZZO_STREAM__URL": ",".join(server.url for server in servers),
            "TERRAZZO_STREAM__MONITOR_URL": ",".join(server.monitor_url for server in servers),
            "TERRAZZO_STREAM__LOG_GIB": "0.5",
            "TERRAZZO_STREAM__IN_GIB": "0.2",
            "TERRAZZO_CLUSTER__NAME": NAME,
            "TERRAZZO_MQTT__WEBSOCKET_PORT": "0",
        }

    def environment(self, address: Address) -> dict[str, str]:
        """The configuration of a node or front."""
        is_front = address in self.fronts
        return {
            **os.environ,
            **self._shared,
            "TERRAZZO_CLUSTER__NODE": address.name,
            "TERRAZZO_CLUSTER__ROLE": "front" if is_front else "all",
            "TERRAZZO_HTTP__PORT": str(address.http),
            "TERRAZZO_MQTT__PORT": str(address.mqtt),
            "TERRAZZO_WEBSOCKET__PORT": str(0 if is_front else self._websockets[address.name]),
            "TERRAZZO_DATA__DIR": str(self.folder / address.name),
        }

    def start(self) -> None:
        """Starts nodes, then fronts; returns when one node leads and terminals can connect to each front."""
        for address in (*self.nodes, *self.fronts):
            command = [sys.executable, "-m", "terrazzo", "serve"]
            self._spawn(address.name, command, self.environment(address))
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
            command = [sys.executable, "-m", "terrazzo_simulators", "run", "--port", str(front.mqtt)]
            command += ["--count", str(some), "--first", str(first), "--type", "Adapter-II"]
            self._spawn(f"fleet-{front.name}", command, dict(os.environ))

    def end(self) -> None:
        """Ends fleets, fronts, those that stand by, the leader; who doesn't end in time is killed."""
        leader = self.leader()
        fleets = [name for name in self.processes if name.startswith("fleet")]
        standing_by = [each.name for each in self.nodes if each != leader]
        for name in (*fleets, *(each.name for each in self.fronts), *standing_by, *self.processes):
            process = self.processes.get(name)
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ended(self) -> str:
        """The name of a process that has ended by itself; empty while all run."""
        return next((name for name, process in self.processes.items() if process.poll() is not None), "")

    def _spawn(self, name: str, command: Sequence[str], environment: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            # not of the terminal's group: Ctrl-C is for this process alone, which ends the others in their order
            self.processes[name] = subprocess.Popen(command, env=environment, start_new_session=True, **options)

    def _wait(self, condition: Any, what: str) -> None:
        ends_s = time.monotonic() + _STARTS_S
        while not condition():
            if (name := self.ended()) or time.monotonic() > ends_s:
                tail = (self.folder / f"{name}.log").read_text()[-2_000:] if name else ""
                raise SystemExit(f"{f'{name} has ended' if name else 'too late'}, before {what}:\n{tail}")
            time.sleep(0.1)


def is_ready(address: Address) -> bool:
    """Whether ``/readyz`` says so."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{address.http}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextlib.contextmanager
def local_cluster(*, is_anywhere: bool = False) -> Iterator[LocalCluster]:
    """A cluster whose nodes are to be started; ended and deleted behind the block."""
    folder = Path(tempfile.mkdtemp(prefix="terrazzo-cluster-"))
    try:
        with running_nats(folder / "log", 3) as servers, running_postgresql() as postgresql:
            found = LocalCluster(folder, servers, postgresql.database(), is_anywhere=is_anywhere)
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
    lines += [
        f"  login      admin, {cluster.password}",
        f"  logs       {cluster.folder}/*.log",
        "  Ctrl-C ends all of it, and what it has kept is gone.",
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
        with local_cluster(is_anywhere=given.free_ports) as cluster:
            cluster.start()
            cluster.start_fleet(given.terminals)
            print("Several nodes on this machine are ready.\n" + describe(cluster), flush=True)
            while not stopping.wait(1.0):
                if name := cluster.ended():
                    print(f"{name} has ended", file=sys.stderr)
                    return 1
    except pytest.skip.Exception as missing:
        print(f"make cluster: {missing}: on Debian, apt-get install postgresql", file=sys.stderr)
        return 2
    print("All have ended.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
