"""The broker alone: each listener asked for by an option, SIGHUP, and how bad options are told."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, connect

from running import ServerProcess, wait_for
from support import require_program

COMMAND = [sys.executable, "-m", "terrazzo_broker", "--port", "0", "--log-level", "info"]


class Alone(ServerProcess):
    """``python -m terrazzo_broker`` with further options; ``places`` by kind, as it says itself."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__([*COMMAND, "--allow-anonymous", *options], log=folder / "broker.log")
        try:
            self.wait_ready(lambda: len(self._said()) == 1 + sum(each.endswith(("-port", "unix")) for each in options))
        except BaseException:
            self.kill()
            raise
        self.places = {kind or "TCP": place for place, kind in self._said()}

    def _said(self) -> list[tuple[str, str]]:
        return re.findall(r"^listening on (\S+)(?: \((.*)\))?$", self.log.read_text(), re.MULTILINE)

    def port(self, kind: str) -> int:
        """The port of one listener."""
        return int(self.places[kind].rpartition(":")[2])


@pytest.fixture
def server(authority, tmp_path, tmp_path_factory):
    """A broker with every listener."""
    pair = authority.issue("server")
    path = tmp_path_factory.mktemp("u") / "b.sock"
    options = ["--tls-port", "0", "--tls-cert", str(pair.cert), "--tls-key", str(pair.key)]
    options += ["--tls-client-ca", str(authority.ca), "--websocket-port", "0", "--secure-websocket-port", "0"]
    with Alone(tmp_path, *options, "--unix", str(path)) as server:
        yield server


def test_every_listener(server, authority):
    assert set(server.places) == {"TCP", "TLS", "WebSocket", "secure WebSocket", "Unix socket"}
    publish = [require_program("mosquitto_pub"), "-t", "t", "-m", "x", "-q", "1"]
    pair = authority.issue("client")
    tls = ["--cafile", str(authority.ca), "--cert", str(pair.cert), "--key", str(pair.key)]
    for options in (
        ["-h", "127.0.0.1", "-p", str(server.port("TCP"))],
        ["-h", "localhost", "-p", str(server.port("TLS")), *tls],
        ["--unix", server.places["Unix socket"]],
    ):
        result = subprocess.run([*publish, *options], capture_output=True, timeout=20)
        assert (result.returncode, result.stderr) == (0, b""), options
    for kind, scheme in (("WebSocket", None), ("secure WebSocket", authority.client_context())):
        with socket.create_connection(("127.0.0.1", server.port(kind)), timeout=5) as plain:
            sock = scheme.wrap_socket(plain, server_hostname="localhost") if scheme else plain
            with sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert sock.recv(100).startswith(b"HTTP/1.1 404 ")
    assert server.stop() == 0
    assert not Path(server.places["Unix socket"]).exists()


def test_sighup_reads_certificates_again(server, authority):
    def open_tls() -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", server.port("TLS")), timeout=5)
        return authority.client_context().wrap_socket(plain, server_hostname="localhost")

    def shown() -> object:
        with open_tls() as sock:
            return sock.getpeercert()["serialNumber"]

    with open_tls() as old:
        old.sendall(connect("old"))
        assert old.recv(4) == ACCEPTED_4
        before = old.getpeercert()["serialNumber"]
        authority.issue("server")
        assert shown() == before
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: shown() != before, "the new certificate")
        now = shown()
        (authority.folder / "server.key").write_text("nonsense")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "certificates stay as they were: tls_key: " in server.log.read_text(), "the complaint")
        assert shown() == now
        old.sendall(PINGREQ)
        assert old.recv(2) == PINGRESP


def test_proxy_protocol(tmp_path):
    with Alone(tmp_path, "--proxy-protocol") as server:
        header = bytes.fromhex("0d0a0d0a000d0a515549540a 2111000c c0000207 7f000001 9c40 075b")
        for start, answer in ((header, ACCEPTED_4), (b"", b"")):
            with socket.create_connection(("127.0.0.1", server.port("TCP")), timeout=5) as sock:
                sock.sendall(start + connect("c"))
                try:
                    assert sock.recv(4) == answer
                except ConnectionResetError:
                    assert answer == b""


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        (["--tls-port", "0"], 1, "--tls-cert: needed for --tls-port"),
        (["--secure-websocket-port", "0", "--tls-cert", "/x"], 1, "--tls-key: needed for"),
        (["--tls-cert", "/x"], 1, "need --tls-port"),
        (["--tls-port", "0", "--tls-cert", "/missing", "--tls-key", "/x"], 1, "--tls-cert: /missing: No such file"),
        (["--unix", "/dev/null"], 1, "not a socket"),
        (["--websocket-port", "65536"], 2, "'65536' is not a port"),
        (["--tls-port", "mqtt"], 2, "'mqtt' is not a port"),
        (["--host", "192.0.2.1"], 1, "192.0.2.1"),
    ],
)
def test_bad_options(options, status, complaint):
    result = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=20)
    assert result.returncode == status
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for option in ("--port", "--websocket-port"):
            result = subprocess.run([*COMMAND, option, port], capture_output=True, text=True, timeout=20)
            assert (result.returncode, "Traceback" in result.stderr) == (1, False)
            assert port in result.stderr


def test_the_options_are_documented():
    documented = (Path(__file__).parents[2] / "docs" / "broker.md").read_text()
    result = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, timeout=20)
    options = set(re.findall(r"--[a-z][a-z-]+", result.stdout)) - {"--help"}
    assert len(options) > 10
    assert {option for option in options if f"`{option}" not in documented} == set()
