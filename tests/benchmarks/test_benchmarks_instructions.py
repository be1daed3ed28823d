"""What a message and a request cost in steps of the interpreter: little more than they need today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MOST = {
    "broker, QoS 1, one by one": 2_000,
    "broker, QoS 0, to 200, 16 in a read": 3_400,
    "ingest, one by one": 480,
    "mapping, one by one": 1_100,
    "live, WebSocket, 1 subscriber": 390,
    "login, MQTT 5": 7_500,
    "gateway, ping": 800,
    "gateway, a terminal": 1_310,
    "gateway, the latest record": 1_470,
    "gateway, a page of records": 2_560,
    "gateway, a page by key": 2_050,
}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="steps are those of Python 3.11")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", MOST)
def test_steps_stay_what_they_are(way: str) -> None:
    command = [sys.executable, str(BENCHMARKS / "instructions.py"), "--only", way]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    (row,) = ended.stdout.splitlines()
    steps = float(row.split("|")[2].replace(",", ""))
    assert MOST[way] / 2 < steps < MOST[way]
