"""What connections cost that keep still: CPU of the broker, and memory of each.

``python benchmarks/idle_connections.py [--connections N] [--seconds S] [CHECKOUT ...]`` starts the broker of each
checkout (this one where none is given), opens N connections with a keep-alive of 600 s, which then send nothing, and
prints what the broker needs meanwhile.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
from cpu_clock import cpu_seconds

from mqtt_bytes import field, frame
from running import ServerProcess, answers_tcp, free_port

ROOT = Path(__file__).parents[1]
KEEP_ALIVE_S = 600
SETTLES_S = 3.0
PIECE = 500  # connections that are opened without a rest: the listener's backlog


@contextmanager
def broker(checkout: Path, folder: Path) -> Iterator[tuple[int, int]]:
    """The port and process of a broker of that checkout."""
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'broker'}:{checkout / 'platform'}"}
    options = ["--port", str(port), "--allow-anonymous", "--log-level", "error"]
    command = [sys.executable, "-m", "terrazzo_broker", *options]
    with ServerProcess(command, log=folder / "broker.log", env=environment) as server:
        server.wait_ready(lambda: answers_tcp(port))
        yield port, server.pid


def connect(port: int, number: int) -> socket.socket:
    """A connection that has logged in."""
    client = socket.create_connection(("127.0.0.1", port))
    head = field("MQTT"), bytes((4, 2)), KEEP_ALIVE_S.to_bytes(2, "big")
    client.sendall(frame(0x10, *head, field(f"c{number}")))
    if client.recv(4) != b"\x20\x02\0\0":
        raise SystemExit(f"connection {number}: was refused")
    return client


def measure(checkout: Path, connections: int, seconds: float) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder, broker(checkout, Path(folder)) as (port, pid):
        process = psutil.Process(pid)
        before_bytes, clients = process.memory_info().rss, []
        for number in range(connections):
            clients.append(connect(port, number))
            if not number % PIECE:
                time.sleep(0.3)
        time.sleep(SETTLES_S)
        grown = (process.memory_info().rss - before_bytes) / connections
        used_s = cpu_seconds(pid)
        time.sleep(seconds)
        used_s = cpu_seconds(pid) - used_s
        for client in clients:
            client.close()
    return f"| {checkout.name} | {used_s / seconds * 100:.2f} | {grown:,.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], metavar="CHECKOUT")
    parser.add_argument("--connections", type=int, default=8_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (arguments.connections + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    print("| version | CPU, % of a core | B each |\n| --- | ---: | ---: |")
    for checkout in arguments.checkouts:
        print(measure(checkout.resolve(), arguments.connections, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
