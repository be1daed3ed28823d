"""The broker alone with few descriptors: silent sockets take them all from nobody."""

from __future__ import annotations

import re
import resource
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from listener_stand import ACCEPTED_4, connect

from running import ServerProcess, wait_for

HARD = 200
FEW = (
    f"import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (100, {HARD}));"
    "runpy.run_module('terrazzo_broker', run_name='__main__')"
)


@pytest.fixture
def server(tmp_path, authority) -> Iterator[tuple[ServerProcess, dict[str, int]]]:
    """A broker that may have 200 descriptors, 100 of them without asking; its ports by kind."""
    pair = authority.issue("server")
    options = ["--tls-port", "0", "--tls-cert", str(pair.cert), "--tls-key", str(pair.key), "--websocket-port", "0"]
    command = [sys.executable, "-c", FEW, "--allow-anonymous", "--port", "0", *options]
    with ServerProcess(command, log=tmp_path / "broker.log") as process:

        def ports() -> dict[str, int]:
            places = re.findall(r"^listening on \S+:(\d+)(?: \((.*)\))?$", process.log.read_text(), re.MULTILINE)
            return {kind or "TCP": int(port) for port, kind in places}

        process.wait_ready(lambda: len(ports()) == 3)
        yield process, ports()


def logs_in(port: int, context: ssl.SSLContext | None) -> bool:
    """Whether an honest client gets in, now."""
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=2, source_address=("127.0.0.3", 0))
        with sock if context is None else context.wrap_socket(sock, server_hostname="localhost") as stream:
            stream.sendall(connect("honest"))
            return stream.recv(4) == ACCEPTED_4
    except OSError:
        return False


@pytest.mark.parametrize("kind", ["TCP", "TLS", "WebSocket"])
def test_silent_sockets_leave_room(server, authority, kind):
    """More than fit, to one port after the other, and nobody waits for their deadline."""
    process, ports = server
    assert "ulimit -n" in process.log.read_text()
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (HARD, HARD)
    with ExitStack() as crowd:
        for _ in range(300):
            address = ("127.0.0.1", ports[kind])
            crowd.enter_context(socket.create_connection(address, timeout=5, source_address=("127.0.0.2", 0)))
        for port, context in ((ports["TCP"], None), (ports["TLS"], authority.client_context())):
            wait_for(lambda port=port, context=context: logs_in(port, context), "a login", timeout_s=4)
