"""``terrazzo serve``: all that keeps it from starting is said at once, with what to do; HTTPS through and through."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from certificate_authority import Authority, Pair
from loaded_process import run_loaded_text
from migrated import PASSWORD, first_start, seed
from mqtt_bytes import login
from running import ServerProcess, serve, wait_for
from support import free_port
from terrazzo.runtime.build_info import build_info, commit_of


def terrazzo(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run_loaded_text(["-m", "terrazzo", *arguments], env=os.environ | {"COLUMNS": "300"} | environ)


def test_the_version_is_shown() -> None:
    command = [sys.executable, "-m", "terrazzo", "--version"]  # as users start it
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stdout) == (0, f"{build_info()}\n")
    assert re.fullmatch(r"terrazzo \d\S*, Python \d\S*(, commit [0-9a-f]{12})?\n", shown.stdout)


def test_the_commit_of_a_checkout_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git, commit = tmp_path / ".git", "0123456789abcdef" * 2 + "01234567"
    assert commit_of(tmp_path) == ""
    git.mkdir()
    (git / "HEAD").write_text(f"{commit}\n")
    assert commit_of(tmp_path) == commit
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    assert commit_of(tmp_path) == commit
    worktree = tmp_path / "elsewhere"
    worktree.mkdir()
    of_it = git / "worktrees" / "elsewhere"
    of_it.mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {of_it}\n")
    (of_it / "HEAD").write_text("ref: refs/heads/main\n")
    (of_it / "commondir").write_text("../..\n")
    assert commit_of(worktree) == commit
    monkeypatch.setenv("TERRAZZO_COMMIT", "ABCDEF0")
    assert build_info().commit == "abcdef0"
    monkeypatch.setenv("TERRAZZO_COMMIT", "no commit; rm -rf")
    assert build_info().commit == ""


def test_all_that_keeps_it_from_starting_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ports = {"TERRAZZO_MQTT__PORT": port, "TERRAZZO_HTTP__TLS_CERT": "/none", "TERRAZZO_HTTP__TLS_KEY": "/none"}
        refused = serve(tmp_path / "data", **ports)
    assert refused.returncode == 2
    lines = refused.stderr.splitlines()
    assert len(lines) == 3, refused.stderr
    assert lines[0].startswith(f"terrazzo: data.dir: {tmp_path / 'data'} is not a folder; set data.dir (--data DIR,")
    assert lines[1].startswith(f"terrazzo: mqtt.port: 127.0.0.1:{port} is in use by ")
    assert f"(process {os.getpid()}); stop what listens there, or set mqtt.port (--mqtt-port N," in lines[1]
    assert lines[2].startswith("terrazzo: http.tls_cert: /none: No such file or directory; ")


def test_what_this_version_has_not_is_said(tmp_path: Path) -> None:
    refused = serve(tmp_path, TERRAZZO_BROKER__KIND="external", TERRAZZO_BROKER__URL="mqtt://b")
    assert refused.returncode == 2
    assert refused.stderr.startswith("terrazzo: broker.kind = external: not served by this version; ")


def test_the_demo_needs_plain_mqtt(tmp_path: Path) -> None:
    refused = terrazzo("serve", "--demo", "--data", str(tmp_path / "data"), TERRAZZO_MQTT__PORT="off")
    assert (refused.returncode, "mqtt.port: is off" in refused.stderr) == (2, True)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_a_port_on_the_command_line_is_checked(port: str) -> None:
    refused = terrazzo("serve", "--http-port", port)
    assert (refused.returncode, "--http-port" in refused.stderr) == (2, True)


class Https(ServerProcess):
    """A platform with HTTPS, MQTT over TLS and WSS, and nothing plain; its ports are options where they can be."""

    def __init__(self, data: Path, pair: Pair) -> None:
        self.data, self.pair, self.port, self.tls_port = data, pair, free_port(), free_port()
        self.wss_port = free_port()
        files = {"TLS_CERT": str(pair.cert), "TLS_KEY": str(pair.key)}
        self.environment = {
            "TERRAZZO_ADMIN__PASSWORD": PASSWORD,
            **{f"TERRAZZO_HTTP__{name}": path for name, path in files.items()},
            **{f"TERRAZZO_MQTT__{name}": path for name, path in files.items()},
            "TERRAZZO_MQTT__TLS_PORT": str(self.tls_port),
            "TERRAZZO_MQTT__WEBSOCKET_TLS_PORT": str(self.wss_port),
            **dict.fromkeys(
                ("TERRAZZO_MQTT__PORT", "TERRAZZO_MQTT__WEBSOCKET_PORT", "TERRAZZO_WEBSOCKET__PORT"), "off"
            ),
        }
        seed(data, first_start)
        command = [sys.executable, "-m", "terrazzo", "serve", "--data", str(data), "--http-port", str(self.port)]
        super().__init__(command, log=data.parent / "log", env=self.environment, loaded=True)
        self.wait_ready(lambda: self.get("/readyz") is not None)

    def get(self, path: str, body: bytes | None = None, token: str = "") -> bytes | None:
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", body)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl.create_default_context(cafile=str(self.pair.cert.parent / "ca.pem"))
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                return bytes(answer.read())
        except OSError:
            return None

    def shown(self, port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))


@pytest.fixture(scope="module")
def https(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Https]:
    folder = tmp_path_factory.mktemp("https")
    with Https(folder / "data", Authority(folder / "authority").issue("server", days=90)) as running:
        yield running


def test_nothing_is_plain(https: Https) -> None:
    parts = json.loads(https.get("/readyz") or b"{}")["parts"]
    assert "mqtt" in parts
    assert "websocket" not in parts
    wait_for(lambda: "  data  " in https.log.read_text(), "the greeting, which comes after it is ready")
    greeting = https.log.read_text()
    assert f"gateway    https://127.0.0.1:{https.port}/apiproxy/api\n" in greeting
    terminals = f"mqtts://127.0.0.1:{https.tls_port}  wss://127.0.0.1:{https.wss_port}/mqtt"
    assert f"terminals  {terminals}\n" in greeting
    login = {"action": "login", "username": "admin", "password": PASSWORD}
    for _ in range(2):
        assert json.loads(https.get("/apiproxy/api", json.dumps(login).encode()) or b"{}")["code"] == 200


async def test_mqtt_over_secure_websockets(https: Https) -> None:
    """As a page of https: has to: it may open no plain one."""
    context = ssl.create_default_context(cafile=str(https.pair.cert.parent / "ca.pem"))
    url = f"wss://127.0.0.1:{https.wss_port}/mqtt"
    async with aiohttp.ClientSession() as client:
        async with client.ws_connect(url, protocols=["mqtt"], ssl=context) as socket:
            await socket.send_bytes(login("nobody", "u", "p"))
            assert (await socket.receive()).data == b"\x20\x02\x00\x04"
        with pytest.raises(aiohttp.ClientError):
            await client.ws_connect(url.replace("wss", "ws"), protocols=["mqtt"])
    call = {"action": "login", "username": "admin", "password": PASSWORD}
    token = json.loads(https.get("/apiproxy/api", json.dumps(call).encode()) or b"{}")["result"]["token"]
    session = https.get("/apiproxy/api", b'{"action":"get_session"}', token)
    ports = json.loads(session or b"{}")["result"]["mqtt"]
    off = {"port": None, "websocket_port": None}
    assert ports == {"tls_port": https.tls_port, "websocket_tls_port": https.wss_port, **off}


def test_doctor_asks_the_running_platform_over_https(https: Https) -> None:
    port = {"TERRAZZO_HTTP__PORT": str(https.port)}
    found = terrazzo("doctor", "--data", str(https.data), **https.environment, **port)
    assert found.returncode == 0, found.stdout
    assert f"127.0.0.1:{https.port} is in use by the running Terrazzo" in found.stdout
    assert "long-lived tasks are up" in found.stdout
    assert len(re.findall(r"ends on .{10}, in 89 days", found.stdout)) == 2


def test_a_second_one_says_who_has_the_ports(https: Https) -> None:
    refused = terrazzo("serve", "--data", str(https.data), "--http-port", str(https.port), **https.environment)
    assert refused.returncode == 2
    assert f"http.port: 127.0.0.1:{https.port} is in use by " in refused.stderr
    assert f"(process {https.pid})" in refused.stderr


def test_sighup_takes_new_pairs_of_both_into_use(https: Https) -> None:
    before = https.shown(https.port)
    assert before == https.shown(https.tls_port)
    renewed = Authority(https.pair.cert.parent.parent / "renewing")
    https.pair.cert.parent.joinpath("ca.pem").write_bytes(renewed.ca.read_bytes())
    pair = renewed.issue("renewed", days=90)
    https.pair.cert.write_bytes(pair.cert.read_bytes())
    https.process.send_signal(signal.SIGHUP)  # with half of a pair
    assert https.shown(https.port) == before
    https.pair.key.write_bytes(pair.key.read_bytes())
    https.process.send_signal(signal.SIGHUP)
    for port in (https.port, https.tls_port, https.wss_port):
        wait_for(lambda port=port: https.shown(port) == pair.cert.read_text(), "the new certificate is shown")
    wait_for(lambda: "the former certificate stays in use" in https.log.read_text(), "half of a pair is told")
