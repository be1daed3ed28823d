"""Random content through every entry, for a while: no turn of the loop is long, no task ends, nothing is a fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from length import rounds

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS.parent / "tests" / "parsers")]

from nonsense.large import MOST_BYTES, large_report, large_request  # noqa: E402
from nonsense.values import Values  # noqa: E402

LARGE = "requests,reports"
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


def test_large_content_is_large_and_no_larger_than_may_come() -> None:
    values = Values(Random(1))
    example = {"action": "get_terminal_list", "where_in": ["uid", ["a"]], "page_size": 1}
    requests = [len(large_request(values, example)) for _ in range(20)]
    assert min(requests) > 400_000
    assert max(requests) <= 1 << 20
    reports = [len(large_report(values, ("p0", "text"))) for _ in range(20)]
    assert sorted(reports)[10] > 500_000
    assert max(reports) <= MOST_BYTES
