"""``terrazzo doctor`` says of a start what ``terrazzo serve`` says: extras that are not there, and whose a port is."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from running import Platform
from support import free_port
from terrazzo.cli.start_checks import check_extras, check_listeners
from terrazzo.config.sections import Config, load_config
from terrazzo.runtime.extras import EXTRAS

FREE = {
    "TERRAZZO_HTTP__PORT": "0",
    "TERRAZZO_WEBSOCKET__PORT": "0",
    "TERRAZZO_MQTT__PORT": "0",
    "TERRAZZO_MQTT__WEBSOCKET_PORT": "0",
}
POSTGRESQL = {"TERRAZZO_DATABASE__URL": "postgresql://user@127.0.0.1:1/none"}
NODE = {
    "TERRAZZO_STREAM__KIND": "jetstream",
    "TERRAZZO_STREAM__URL": "nats://127.0.0.1:1",
    "TERRAZZO_CLUSTER__NODE": "one",
    "TERRAZZO_AUTH__TOKEN_KEY": "k" * 32,
    "TERRAZZO_DATABASE__SECRETS_KEY": "0" * 64,
    **POSTGRESQL,
}
NEEDED = {
    "stream.kind": ("nats", NODE),
    "database.url": ("asyncpg", POSTGRESQL),
    "backup.target": ("boto3", {"TERRAZZO_BACKUP__TARGET": "s3://bucket/prefix"}),
    "tracing.endpoint": ("opentelemetry.sdk", {"TERRAZZO_TRACING__ENDPOINT": "http://127.0.0.1:1"}),
}
"""By the key that needs an extra: a module of it, and settings that need it."""
WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from terrazzo.cli import main; main()"


def without(module: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command where a module is not installed."""
    command = [sys.executable, "-c", WITHOUT, module, *arguments]
    environment = {**os.environ, **FREE, **environ}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("key", NEEDED)
def test_a_missing_extra_ends_a_start_before_anything_is_made(tmp_path: Path, key: str) -> None:
    module, environ = NEEDED[key]
    data = tmp_path / "data"
    refused = without(module, "serve", "--data", str(data), **environ)
    assert refused.returncode == 2, refused.stderr
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith(f"terrazzo: {key}: ")]
    assert "; pip install 'terrazzo[" in line
    assert not data.exists()


@pytest.mark.parametrize("key", NEEDED)
def test_doctor_names_a_missing_extra(tmp_path: Path, key: str) -> None:
    module, environ = NEEDED[key]
    told = without(module, "doctor", "--json", "--data", str(tmp_path / "data"), **environ)
    assert (told.returncode, told.stderr) == (1, "")
    found = [each for each in json.loads(told.stdout) if each["part"] == key and each["level"] == "fail"]
    assert found[0]["advice"].startswith("pip install 'terrazzo[")


def test_extras_are_those_of_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {each.key for each in EXTRAS} == set(NEEDED)
    for module, environ in NEEDED.values():
        assert list(check_extras(load_config(None, environ))) == []
        monkeypatch.setitem(sys.modules, module, None)
    assert list(check_extras(Config())) == [], "who doesn't use them needs none"
    front = load_config(None, {**NODE, "TERRAZZO_CLUSTER__ROLE": "front"})
    assert [each.part for each in check_extras(front)] == ["stream.kind"]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Platform, dict[str, str]]]:
    """A platform that was told other ports than its configuration has, and that configuration's environment."""
    data = tmp_path_factory.mktemp("told") / "data"
    environ = {"TERRAZZO_HTTP__PORT": str(free_port()), "TERRAZZO_MQTT__PORT": str(free_port())}
    ports = tuple(free_port() for _ in range(4))
    told = ("--http-port", str(ports[0]), "--mqtt-port", str(ports[1]))
    with Platform(data, env=environ, arguments=told, ports=ports) as running:
        yield running, running.environment | environ


def doctor(*arguments: str, **environ: str) -> tuple[int, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "terrazzo", "doctor", "--json", *arguments]
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout)


def of(findings: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    return [each for each in findings if each["part"] == part]


def test_ports_of_a_platform_on_the_same_folder_are_its_own(platform: tuple[Platform, dict[str, str]]) -> None:
    running, environ = platform
    status, findings = doctor("--data", str(running.data), **environ)
    for key in ("websocket.port", "mqtt.websocket_port"):
        (found,) = of(findings, key)
        assert (found["level"], "in use by the running Terrazzo" in found["found"]) == ("ok", True), found
    (tasks,) = of(findings, "tasks")
    assert (tasks["level"], "--http-port" in tasks["advice"]) == ("warn", True)
    assert status == 0, [each for each in findings if each["level"] == "fail"]


def test_doctor_takes_the_ports_that_serve_was_told(platform: tuple[Platform, dict[str, str]]) -> None:
    running, environ = platform
    told = ("--http-port", str(running.http), "--mqtt-port", str(running.mqtt))
    status, findings = doctor("--data", str(running.data), *told, **environ)
    for key in ("http.port", "mqtt.port", "websocket.port"):
        assert "in use by the running Terrazzo" in of(findings, key)[0]["found"]
    assert "long-lived tasks are up" in of(findings, "tasks")[-1]["found"]
    assert status == 0


def test_a_port_of_somebody_else_is_not_the_platforms(platform: tuple[Platform, dict[str, str]]) -> None:
    running, environ = platform
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        others = environ | {"TERRAZZO_MQTT__PORT": port, "TERRAZZO_DATA__DIR": str(running.data)}
        (found,) = [each for each in check_listeners(load_config(None, others)) if each.part == "mqtt.port"]
    assert found.level.value == "fail"
    assert f"(process {os.getpid()})" in found.found


def test_a_folder_without_a_platform_has_no_ports(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        config = load_config(None, FREE | {"TERRAZZO_MQTT__PORT": port, "TERRAZZO_DATA__DIR": str(tmp_path)})
        (found,) = [each for each in check_listeners(config) if each.part == "mqtt.port"]
    assert found.level.value == "fail"


@pytest.mark.parametrize(("role", "needs"), [("front", "stream.kind"), ("fornt", "--role: expected one of all, front")])
def test_it_checks_the_role_that_serve_is_given(tmp_path: Path, role: str, needs: str) -> None:
    command = [sys.executable, "-m", "terrazzo", "doctor", "--json", "--data", str(tmp_path / "data"), "--role", role]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, needs in ended.stdout) == (1, True), ended.stdout + ended.stderr
