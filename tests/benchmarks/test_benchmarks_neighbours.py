"""The benchmark of neighbours: it attacks, measures beside that, and says what is beyond its bound."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.timeout(180)
def test_two_attacks_beside_somebody_who_works(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--seconds", "1", "--settle", "0", "--only", "1,19", "--json", str(figures)]
    command = [sys.executable, str(BENCHMARKS / "neighbours.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    table = [line for line in ended.stdout.splitlines() if line.startswith(("| 1 |", "| 19 |"))]
    rows = json.loads(figures.read_text())
    assert len(table) == len(rows) == 2
    for row in rows:
        waits = row["waits"]
        assert row["is_alive"], row["name"]
        assert row["unready"] == []
        assert waits["reports"] == waits["frames"] > 100, "all reports were acknowledged and told"
        assert len(waits["puback"]) == waits["reports"]
        assert waits["ping"]
        assert waits["page"]
        assert waits["answered"] == waits["commands"] > 0
        assert row["memory_most"] >= row["memory_before"] > 0
        assert row["attack"]["rounds"] > 0, row["attack"]
