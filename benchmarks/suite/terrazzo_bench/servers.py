"""Servers on free loopback ports: the platform, its broker alone, and the peers."""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.parse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terrazzo_bench.gateway import Gateway
from terrazzo_bench.packets import LOOPBACK
from terrazzo_bench.processes import Failed, Processes, Started, accepts, free_port
from terrazzo_bench.programs import AMQTT, INFLUXDB, MOSQUITTO, path_of
from terrazzo_bench.result import OURS

_AMQTT_CONFIG = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""
_INFLUX_CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"
[meta]
  dir = "{folder}/meta"
  logging-enabled = false
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
[monitor]
  store-enabled = false
[logging]
  level = "error"
"""
_PASSWORD = "for a benchmark on loopback"
_POINTS = 9  # of numbers; the tenth is a text


@dataclass(frozen=True)
class Server:
    """A running one, and where it listens."""

    name: str
    port: int
    process: Started


@dataclass(frozen=True)
class Platform:
    """``terrazzo serve`` on a fresh data folder, with its administrator logged in. ``ready_s``: since its start."""

    http: int
    mqtt: int
    websocket: int
    process: Started
    gateway: Gateway
    ready_s: float

    def add_terminals(self, uids: list[str]) -> None:
        """Terminals of one configuration, with the user names and pins of ``credentials``."""
        made = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        config = self.gateway.call("create_terminal_config", name="bench", **made)["uid"]
        kind = {"type": "Adapter-II", "mode": "pwd", "access": "all", "topic": "all", "config_id": config}
        for uid in uids:
            username, pin = credentials(uid)
            self.gateway.call("create_terminal", uid=uid, name=uid, username=username, pin=pin, **kind, **made)

    def map_in_pairs(self, uids: list[str]) -> list[int]:
        """An object of twenty variables for each two terminals; their ids."""
        record = {"name": "bench", "script": json.dumps(_rows()), "created_by": 1, "last_modified_by": 1}
        mapping = self.gateway.call("create_mapping", **record, is_available=1)["uid"]
        return [
            int(self.gateway.call("create_object", name=a, mapping_id=mapping, terminal_list=[a, b])["id"])
            for a, b in zip(uids[::2], uids[1::2], strict=True)
        ]


def credentials(uid: str) -> tuple[str, str]:
    """User name and pin of a terminal of the suite."""
    return f"u-{uid}", f"pin-{uid}"


def _rows() -> list[list[str]]:
    """Eighteen variables from the points of two terminals, two from other variables."""
    made = []
    for terminal in (1, 2):
        for point in range(_POINTS):
            expression = ("", "x * 0.1", "x - 40", "x / 2 + 5")[point % 4]
            made.append([f"V{terminal}_{point}", "", "", "STA", f"$AdapterID-{terminal}.P{point}", expression])
    made.append(["SUM", "", "", "FUNC", "", "V1_0 + V2_0"])
    made.append(["DELTA", "", "", "FUNC", "", "abs(V1_1 - V2_1)"])
    return made


def start_platform(processes: Processes, folder: Path) -> Platform:
    """With its defaults but for the pace of logins, which would measure itself."""
    folder.mkdir(parents=True, exist_ok=True)
    http_port, mqtt, websocket, mqtt_websocket = (free_port() for _ in range(4))
    environment = {
        "TERRAZZO_ADMIN__PASSWORD": _PASSWORD,
        "TERRAZZO_HTTP__PORT": str(http_port),
        "TERRAZZO_MQTT__PORT": str(mqtt),
        "TERRAZZO_WEBSOCKET__PORT": str(websocket),
        "TERRAZZO_MQTT__WEBSOCKET_PORT": str(mqtt_websocket),
        "TERRAZZO_LIMITS__CONNECTS_PER_SECOND": "100000",
    }
    began = time.perf_counter()
    command = [sys.executable, "-m", "terrazzo", "serve", "--data", str(folder / "data")]
    process = processes.start(command, log=folder / "terrazzo.log", env=environment)
    process.wait_for(lambda: _answers(http_port, "/readyz"), "terrazzo serve", timeout_s=60)
    ready_s = time.perf_counter() - began
    gateway = Gateway(http_port)
    gateway.login(_PASSWORD)
    return Platform(http_port, mqtt, websocket, process, gateway, ready_s)


def start_broker(processes: Processes, name: str, folder: Path) -> Server:
    """A broker without persistence, open to everyone: ``OURS`` alone, Mosquitto or amqtt."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    process = processes.start(_command(name, port, folder), log=folder / f"{name}.log")
    process.wait_for(lambda: accepts(port), name)
    return Server(name, port, process)


def _command(name: str, port: int, folder: Path) -> list[str]:
    if name == OURS:
        options = ["--port", str(port), "--allow-anonymous", "--log-level", "error"]
        return [sys.executable, "-m", "terrazzo_broker", *options]
    program = path_of(name)
    if program is None:
        raise Failed(f"{name} is not installed")
    if name == MOSQUITTO:
        lines = ("allow_anonymous true", "persistence false", "log_dest none")
        return [program, "-c", str(_mosquitto_config(folder, port, lines))]
    assert name == AMQTT
    config = folder / "amqtt.yaml"
    config.write_text(_AMQTT_CONFIG.format(port=port), encoding="utf-8")
    return [program, "-c", str(config)]


def _mosquitto_config(folder: Path, port: int, lines: tuple[str, ...]) -> Path:
    config = folder / "mosquitto.conf"
    config.write_text("\n".join([f"listener {port} {LOOPBACK}", *lines, ""]), encoding="utf-8")
    return config


class Stack:
    """What people build: Mosquitto, a paho subscriber that writes batches, InfluxDB 1.x."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._influx = free_port(), free_port()
        broker, database = path_of(MOSQUITTO), path_of(INFLUXDB)
        assert broker is not None  # whoever asks for the stack has looked
        assert database is not None
        config = folder / "influxdb.conf"
        config.write_text(_INFLUX_CONFIG.format(folder=folder, port=self._influx, rpc_port=free_port()))
        unlimited = ("allow_anonymous true", "max_queued_messages 0", "max_inflight_messages 0")
        mosquitto = [broker, "-c", str(_mosquitto_config(folder, self.port, unlimited))]
        self.processes = [
            processes.start([database, "-config", str(config)], log=folder / "influxd.log"),
            processes.start(mosquitto, log=folder / "mosquitto.log"),
        ]
        self.processes[0].wait_for(lambda: _answers(self._influx, "/ping"), INFLUXDB)
        self.processes[1].wait_for(lambda: accepts(self.port), MOSQUITTO)
        self._ask("CREATE DATABASE bench")
        url = f"http://{LOOPBACK}:{self._influx}"
        self.processes.append(processes.load("influx_subscriber", str(self.port), url, folder=folder))

    def stored(self) -> int:
        """How many messages InfluxDB has."""
        series = self._ask("SELECT count(P0) FROM grid").get("series", [])
        return int(series[0]["values"][0][1]) if series else 0

    def cpu_s(self) -> float:
        """CPU seconds so far of all three."""
        return sum(process.cpu_s() for process in self.processes)

    def _ask(self, statement: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection(LOOPBACK, self._influx, timeout=30)
        try:
            form = urllib.parse.urlencode({"q": statement, "db": "bench", "epoch": "ns"})
            head = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/query", form, head)
            result: dict[str, Any] = json.loads(connection.getresponse().read())["results"][0]
        finally:
            connection.close()
        if "error" in result:
            raise Failed(f"InfluxDB: {result['error']}")
        return result


def _answers(port: int, path: str) -> bool:
    """Whether a GET is answered with a status below 400."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", path)
            return connection.getresponse().status < 400
        return False
    finally:
        connection.close()
