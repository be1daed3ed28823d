"""The benchmark of campaigns comes to its end with a small fleet, and says all of its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "campaign_fleet.py"
STEPS = ("import", "made", "100 commands", "paused and taken back", "goes on after a start", "aborted")
MOST = ("loop, ms", "ping p99, ms", "ping at the most, ms", "memory, MB")


def test_a_small_fleet(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = ("--terminals", "500", "--commands", "100", "--json", str(figures))
    ended = subprocess.run([sys.executable, str(BENCHMARK), *arguments], capture_output=True, text=True, timeout=120)
    found = json.loads(figures.read_text())
    expected = [f"{step}, s" for step in STEPS]
    expected += [f"{when}: {name}" for when in ("running", "after a start") for name in MOST]
    assert set(found) == set(expected), ended.stderr
    assert all(value > 0 for value in found.values())
    assert all(f"| {name} | {value:.2f} |" in ended.stdout for name, value in found.items())
