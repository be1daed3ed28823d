"""The registry's benchmark on a small one: it measures all that it says, and nothing that it asks for is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_small_registry_is_measured() -> None:
    sizes = {"terminals": 1_200, "objects": 300, "returning": 60, "addresses": 20, "repeats": 2}
    options = [text for name, size in sizes.items() for text in (f"--{name}", str(size))]
    command = [sys.executable, str(BENCHMARKS / "registry.py"), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if line.startswith("| ")][2:]
    figures = {name.removeprefix("| "): float(now.replace(",", "")) for name, _, now, *_ in rows}
    for name in ("both imports, s", "ready after a restart, s", "memory once ready, MB", "p95 of search: a name, ms"):
        assert figures[name] > 0, name
    assert figures["terminals that come back"] == 60
    assert figures["refusals of all"] == 0
