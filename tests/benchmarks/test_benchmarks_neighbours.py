"""Each attack of a company from inside, beside another company that works: that one gets all that is its due.

How long it waits is the benchmark's to say: seconds are the machine's. What is bounded here is the processor time of
the loop in one go, memory, and that nothing is lost or refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from length import IS_LONG

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from attacks.table import ATTACKS  # noqa: E402

NUMBERS = range(1, 28)
SHORT = (1, 7, 19, 25)
"""A message, subscriptions, the database, and what is kept; imports take what a busy machine hasn't to spare."""

MEMORY_MB = 400
LOOP_CPU_MS = 100


def attacked(number: int, figures: Path) -> dict:
    """A second of an attack; the row of it."""
    arguments = ["--seconds", "1", "--settle", "0", "--only", str(number), "--json", str(figures)]
    command = [sys.executable, str(BENCHMARKS / "neighbours.py"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    assert f"\n| {number} |" in ended.stdout, "its line of the table"
    (row,) = json.loads(figures.read_text())
    return row


@pytest.mark.timeout(450)
@pytest.mark.parametrize("number", NUMBERS if IS_LONG else SHORT)
def test_an_attack_beside_somebody_who_works(number: int, tmp_path: Path) -> None:
    row = attacked(number, tmp_path / "figures.json")
    waits = row["waits"]
    assert row["is_alive"], row["name"]
    assert row["unready"] == []
    assert waits["failed"] == {}
    assert waits["reports"] == waits["frames"] > 100, "all reports were acknowledged and told"
    assert len(waits["puback"]) == waits["reports"]
    assert waits["ping"]
    assert waits["page"]
    assert waits["answered"] == waits["commands"] > 0
    assert MEMORY_MB >= row["memory_most"] >= row["memory_before"] > 0
    assert 0 < row["loop_cpu_ms"] <= LOOP_CPU_MS, row["held"]
    assert row["attack"], "something was done"


def test_there_is_a_test_of_each() -> None:
    assert sorted(ATTACKS) == list(NUMBERS)
