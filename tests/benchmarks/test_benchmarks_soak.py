"""The soak, for half a minute: everybody comes and goes, and descriptors, threads and tasks stay as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from length import rounds

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.timeout(300)
def test_a_short_soak_is_flat() -> None:
    minutes, grown_mb = rounds(0.4, 2.0), 40  # what is filled at first, such as the store's buffers, is filled so soon
    arguments = ["--minutes", str(minutes), "--terminals", "40", "--rate", "100", "--grown-mb", str(grown_mb)]
    command = [sys.executable, str(BENCHMARKS / "soak.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-4_000:]
    assert "flat: memory, descriptors, threads and tasks" in ended.stdout
    for what in ("frames", "heard", "reports", "users", "get_mosaic_list 200"):
        assert f"'{what}':" in ended.stdout, f"{what} was missing"
