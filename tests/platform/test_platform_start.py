"""What a start loads: no library that its configuration doesn't use, and not more modules than it needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from certificate_authority import Authority
from migrated import seed
from running import ServerProcess

NOT_USED = (
    *("aiosmtplib", "alembic", "asyncpg", "boto3", "google.protobuf", "influxdb_client", "joserfc", "msgpack", "nats"),
    *("numpy", "opentelemetry", "paho", "pcodec", "pyarrow", "re2", "rich", "scramp", "sqlalchemy.ext.asyncio"),
    *("sqlalchemy.orm", "terrazzo.cli.doctor", "terrazzo.demo", "terrazzo.runtime.node", "terrazzo_simulators"),
)
"""Libraries and parts of ours that an empty platform of the default configuration has no use for."""

MOST_MODULES = 1_500
"""Python's own, libraries' and ours; 1,473 on Python 3.11 when this was written."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all modules that a platform has tried to load until it is ready."""
    folder = tmp_path_factory.mktemp("start")
    options = ("serve", "--data", str(seed(folder / "data")), "--http-port", "0", "--mqtt-port", "0")
    log = folder / "log"
    ports = {"TERRAZZO_WEBSOCKET__PORT": "0", "TERRAZZO_MQTT__WEBSOCKET_PORT": "0"}
    command = [sys.executable, "-X", "importtime", "-m", "terrazzo", *options]
    with ServerProcess(command, log=log, env=ports) as server:
        server.wait_ready(lambda: "Terrazzo is ready." in log.read_text())
        text = log.read_text()
    found = re.findall(r"^import time: *\d+ \| *\d+ \| *(\S+)$", text.partition("Terrazzo is ready.")[0], re.MULTILINE)
    assert {"terrazzo.runtime.serve", "aiohttp.web", "rocksdict", "sqlalchemy"} <= {*found}, "that is how they are told"
    return {*found}


@pytest.mark.parametrize("name", NOT_USED)
def test_what_is_not_used_is_not_loaded(loaded: set[str], name: str) -> None:
    assert not [each for each in loaded if f"{each}.".startswith(f"{name}.")]


def test_the_modules_are_counted(loaded: set[str]) -> None:
    assert len(loaded) <= MOST_MODULES, "a module takes 0.5 ms and 40 KB of each start: does each of them have to be?"


_TRUST = """
import ssl, sys
if "with" not in sys.argv:
    from terrazzo.system_trust import load_aiohttp
    load_aiohttp()
import os, aiohttp, gc
from terrazzo.system_trust import system_context
read = [len(each.get_ca_certs()) for each in gc.get_objects() if isinstance(each, ssl.SSLContext)]
print(sum(read), len(system_context().get_ca_certs()), *(os.environ.get(name) for name in sys.argv[2:]))
"""


def test_authorities_are_read_when_they_are_needed(tmp_path: Path) -> None:
    authority = Authority(tmp_path).ca
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")

    def tell(how: str) -> list[str]:
        command = [sys.executable, "-c", _TRUST, how, *names]
        environment = {"SSL_CERT_FILE": str(authority)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert tell("without") == ["0", "1", str(authority), "None"]
    assert tell("with") == ["2", "1", str(authority), "None"], "that is what the library does by itself"
