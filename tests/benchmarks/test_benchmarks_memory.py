"""What is counted as memory is within 30% of how the process grows, each kind, with small and large things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from length import IS_LONG

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.skipif(not IS_LONG, reason="each kind is filled in processes of its own, and these grow: minutes")
@pytest.mark.timeout(1_000)
def test_each_kind_counts_what_it_costs() -> None:
    command = [sys.executable, str(BENCHMARKS / "memory.py"), "--mib", "32"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=990)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-4_000:]
    kinds = {line.split("|")[1].strip() for line in ended.stdout.splitlines()[2:]}
    assert kinds == {
        *(
            "queued",
            "inflight",
            "retained",
            "live",
            "live, idle",
            "effects",
            "states",
            "mappings",
            "received",
            "imports",
        ),
    }
