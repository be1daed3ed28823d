"""Random content through every entry, for a while: no turn of the loop is long, no task ends, nothing is a fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from length import rounds

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


LARGE = ""
"""What is as large as may come, now and then: ``requests,reports``."""


@pytest.mark.timeout(rounds(300, 900))
def test_nobody_waits_for_random_content_and_nothing_ends_by_it() -> None:
    seconds, seed = rounds(60, 600), rounds(1, 2)
    arguments = ["--seconds", str(seconds), "--seed", str(seed), "--pause", "0.1", "--loaded", "--large", LARGE]
    command = [sys.executable, str(BENCHMARKS / "random_content.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=rounds(280, 850))
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-4_000:]
    assert "nothing was wrong" in ended.stdout
    for way in ("mqtt_packets", "actions", "imports", "websocket", "lines", "following"):
        assert f"\n{way} " in f"\n{ended.stdout}", f"{way} was gone"
