"""The brokers that are compared: started on free loopback ports, open to everyone, without persistence."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from cpu_clock import cpu_seconds

from running import Mosquitto, ServerProcess
from support import free_port, require_program

NAMES = ("terrazzo", "mosquitto", "amqtt")
AMQTT = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""


@dataclass(frozen=True)
class Peer:
    """A running broker."""

    name: str
    port: int
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds(self.pid)

    def memory_bytes(self) -> int:
        """Resident memory."""
        return psutil.Process(self.pid).memory_info().rss


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Peer]:
    """Starts a broker, waits until it accepts, kills it at the end: nothing of it is kept."""
    port = free_port()
    with _start(name, port, folder) as server:
        try:
            server.wait_ready(lambda: _accepts(port))
            yield Peer(name, port, server.pid)
        finally:
            server.kill()


def _start(name: str, port: int, folder: Path) -> ServerProcess:
    log = folder / f"{name}.log"
    if name == "mosquitto":
        return Mosquitto(folder, lines=("allow_anonymous true", "persistence false", "log_dest none"), port=port)
    if name == "amqtt":
        config = folder / "amqtt.yaml"
        config.write_text(AMQTT.format(port=port))
        # Each message is a line in its log at the usual level; nobody measures that.
        return ServerProcess([str(Path(sys.executable).with_name("amqtt")), "-c", str(config)], log=Path("/dev/null"))
    if name == "terrazzo":
        options = ["--port", str(port), "--allow-anonymous", "--log-level", "error"]
        return ServerProcess([sys.executable, "-m", "terrazzo_broker", *options], log=log)
    raise SystemExit(f"no such peer: {name} (there are {', '.join(NAMES)})")


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def versions() -> str:
    """What is compared, and on what."""
    mosquitto = subprocess.run([require_program("mosquitto"), "-h"], capture_output=True, text=True, check=False)
    return (
        f"Python {sys.version.split()[0]}, uvloop {version('uvloop')}; {mosquitto.stdout.splitlines()[0]}; "
        f"amqtt {version('amqtt')}; {psutil.cpu_count()} cores"
    )
