"""What a message and a request cost in steps of the interpreter: little more than they need today."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from loaded_process import run_loaded_text
from support import shared_modules

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "instructions.py"
MOST = {
    "broker, QoS 1, one by one": 1_500,
    "broker, QoS 0, to 200, 16 in a read": 3_400,
    "ingest, one by one": 480,
    "mapping, one by one": 1_220,  # a float is compared twice: more steps than ``n - n``, in half of its time
    "live, WebSocket, 1 subscriber": 390,
    "login, MQTT 5": 7_500,
    "gateway, ping": 820,
    "gateway, a terminal": 1_310,
    "gateway, the latest record": 1_470,
    "gateway, a page of records": 2_560,
    "gateway, a page by key": 2_180,
}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="steps are those of Python 3.11")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", MOST)
def test_steps_stay_what_they_are(way: str) -> None:
    ended = run_loaded_text([str(PROGRAM), "--way", way], env=shared_modules())
    assert ended.returncode == 0, ended.stderr[-4_000:]
    steps = json.loads(ended.stdout)["steps"]
    assert MOST[way] / 2 < steps < MOST[way]


def test_a_row_a_way_is_printed() -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "--only", "live, TCP"], capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]
    (row,) = ended.stdout.splitlines()
    assert row.startswith("| live, TCP, 50 subscribers | ")
