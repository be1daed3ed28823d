"""The benchmark of history: it loads Terrazzo and InfluxDB alike, and their answers are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import require_program

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.timeout(120)
def test_databases_with_the_same_history_answer_alike(tmp_path: Path) -> None:
    require_program("influxd")
    arguments = ["--messages", "4000", "--rounds", "1", "--settle", "0", "--path", str(tmp_path)]
    command = [sys.executable, str(BENCHMARKS / "history.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-4_000:]
    rows = [line.split("|")[1:3] for line in ended.stdout.splitlines() if line.startswith("| means")]
    assert [what.strip() for _, what in rows] == ["day", "month", "all"] * 2


def test_an_answer_that_differs_is_named() -> None:
    code = (
        "from history_questions import difference\n"
        "assert not difference({'V': {1: 2.0, 3: (1, 2)}}, {'V': {1: 2.0 + 1e-12, 3: [1, 2]}})\n"
        "assert difference({'V': {1: 2.0}}, {'V': {1: 2.1}}) == 'V: 2.0 instead of 2.1'\n"
        "assert difference({'V': {1: 2.0}}, {'V': {}}) == 'V: 1 buckets instead of 0'\n"
        "assert difference({'total': 1}, {'total': 2})\n"
        "assert difference({'V': {}}, {'W': {}})\n"
    )
    search = {"PYTHONPATH": f"{BENCHMARKS}:{BENCHMARKS.parent / 'tests'}"}
    subprocess.run([sys.executable, "-c", code], check=True, env=search, timeout=60)
