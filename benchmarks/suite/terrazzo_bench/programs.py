"""The programs that figures are held against: where they are, how old, and how to get those that are missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from terrazzo_bench.report import PeerSeen

MOSQUITTO, AMQTT, INFLUXDB, PAHO = "Mosquitto", "amqtt", "InfluxDB", "paho-mqtt"

_FOLDERS_VARIABLE = "TERRAZZO_BENCH_FOLDERS"
"""Where servers are looked for that are not on the PATH."""

_FURTHER = os.environ.get(_FOLDERS_VARIABLE, "/usr/sbin:/sbin:/usr/local/sbin")
_SERVERS = {MOSQUITTO: ("mosquitto", ("-h",)), INFLUXDB: ("influxd", ("version",))}
_PACKAGES = {AMQTT: "amqtt", PAHO: "paho-mqtt"}
_GET = {
    MOSQUITTO: "apt install mosquitto",
    INFLUXDB: "apt install influxdb (1.x)",
    AMQTT: "pip install amqtt",
    PAHO: "pip install paho-mqtt",
}
_RELEASED = {
    (MOSQUITTO, "2.0.11"): "2021-06-08",
    (MOSQUITTO, "2.0.18"): "2023-09-18",
}
"""Release dates by the peers' own announcements; of others the date of the program's file is told, as packed."""


def path_of(peer: str) -> str | None:
    """Of a server's program; None where it is not installed."""
    if peer == AMQTT:
        beside = Path(sys.executable).with_name("amqtt")
        return str(beside) if beside.exists() and importlib.util.find_spec("amqtt") else None
    name = _SERVERS[peer][0]
    return shutil.which(name) or shutil.which(name, path=_FURTHER)


def seen(peer: str) -> PeerSeen:
    """Its version and age, or how to get it."""
    if peer in _PACKAGES:
        try:
            return PeerSeen(peer, version(_PACKAGES[peer]))
        except PackageNotFoundError:
            return PeerSeen(peer, missing=_GET[peer])
    path = path_of(peer)
    if path is None:
        return PeerSeen(peer, missing=_GET[peer])
    told = subprocess.run([path, *_SERVERS[peer][1]], capture_output=True, text=True, timeout=20, check=False)
    found = re.search(r"(?:version |v)(\d+\.\d+[\w.]*)", told.stdout + told.stderr)
    number = found[1] if found else ""
    packed = time.strftime("%Y-%m-%d", time.gmtime(Path(path).resolve().stat().st_mtime))
    return PeerSeen(peer, number, _RELEASED.get((peer, number), packed))


def missing(peers: tuple[str, ...]) -> list[PeerSeen]:
    """Those of them that are not installed."""
    return [found for peer in peers if (found := seen(peer)).missing]


def named(*peers: str) -> str:
    """Names and versions, as results carry them."""
    return ", ".join(f"{found.name} {found.version}".strip() for found in map(seen, peers))
