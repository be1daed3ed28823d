"""A port that can't be had says who has it, and which key, variable and option give another."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from terrazzo.runtime.port_in_use import explain_bind, find_owner

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc")

IN_USE = OSError(errno.EADDRINUSE, "address already in use")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_owner_is_named(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        name = Path("/proc/self/comm").read_text().strip()
        assert find_owner(port) == f"{name} (process {os.getpid()})"
    assert find_owner(port) == ""


def test_a_connection_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        assert find_owner(peer.getsockname()[1]) == ""


def test_another_users_program_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    line = "   0: 0100007F:075B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0"
    (tmp_path / "net" / "tcp").write_text(f"  sl  local_address rem_address st\n{line}\n")
    (tmp_path / "1" / "fd").mkdir(parents=True)
    assert find_owner(1883, tmp_path) == "a program of another user"
    assert find_owner(1884, tmp_path) == ""


def test_what_to_do_next() -> None:
    nobody = 9  # which nobody listens on here
    told = str(explain_bind("mqtt.port", "127.0.0.1", nobody, IN_USE))
    assert told == (
        "127.0.0.1:9 is in use; stop what listens there, "
        'or set mqtt.port (--mqtt-port N, TERRAZZO_MQTT__PORT) to another port, or to "off"'
    )
    assert "--http-port N, TERRAZZO_HTTP__PORT) to another port" in explain_bind("http.port", "h", 1, IN_USE).advice
    assert explain_bind("tcp.port", "h", 1, IN_USE).advice.endswith("to another port, or tcp.enabled to false")
    denied = explain_bind("mqtt.tls_port", "127.0.0.1", 883, PermissionError(errno.EACCES, "Permission denied"))
    assert denied.advice.startswith("ports below 1024 need a privilege: set mqtt.tls_port (TERRAZZO_MQTT__TLS_PORT)")
    strange = explain_bind("http.port", "203.0.113.7", 1, OSError(errno.EADDRNOTAVAIL, "loop's own words"))
    assert strange.found == "cannot listen on 203.0.113.7:1: Cannot assign requested address"
    assert strange.advice == "set http.host (TERRAZZO_HTTP__HOST) to an address of this machine"
    unknown = explain_bind("http.port", "nowhere.invalid", 1, socket.gaierror(-2, "Name or service not known"))
    assert unknown.found == "cannot listen on nowhere.invalid:1: Name or service not known"
