"""Runs benchmarks one after the other: each bounded in time, in a folder of its own, with nothing of it left behind."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from terrazzo_bench.measures.benchmark import Benchmark, Setting
from terrazzo_bench.measures.broker import FAN_IN, LATENCY
from terrazzo_bench.measures.commands import COMMANDS
from terrazzo_bench.measures.footprint import FOOTPRINT
from terrazzo_bench.measures.ingest import INGEST
from terrazzo_bench.processes import Failed, Processes
from terrazzo_bench.programs import seen
from terrazzo_bench.report import PeerSeen, Report
from terrazzo_bench.result import Result, Series, series_of

BENCHMARKS = (INGEST, FAN_IN, LATENCY, COMMANDS, FOOTPRINT)
_SLOWER = 5.0  # a machine may be so much slower than what is said, and
_GRACE_S = 60.0  # so much later, before a benchmark is ended


class Overdue(Exception):
    """A benchmark has taken far longer than it should."""


def estimate_s(chosen: Sequence[Benchmark], runs: int, *, is_short: bool) -> float:
    """Seconds that they take, as far as known."""
    return sum(each.seconds(runs, is_short=is_short) for each in chosen)


def run_all(chosen: Sequence[Benchmark], report: Report) -> None:
    """Fills the report with figures, and with why a benchmark has none."""
    peers = {name: seen(name) for each in chosen for name in each.peers}
    report.peers = list(peers.values())
    for peer in report.peers:
        if peer.missing:
            _say(f"{peer.name} is not installed, its figures are missing: {peer.missing}")
    began = time.monotonic()
    for number, benchmark in enumerate(chosen, 1):
        left_s = estimate_s(chosen[number - 1 :], report.runs, is_short=report.is_short)
        _say(f"[{number}/{len(chosen)}] {benchmark.name}: {benchmark.says}; about {left_s:.0f} s left")
        try:
            report.series += _run_one(benchmark, peers, report)
        except (Failed, Overdue, OSError, ValueError, KeyError) as error:
            report.failed[benchmark.name] = f"{type(error).__name__}: {error}"
            _say(f"  failed: {error}")
    report.took_s = time.monotonic() - began


def _run_one(benchmark: Benchmark, peers: dict[str, PeerSeen], report: Report) -> list[Series]:
    bound_s = _GRACE_S + _SLOWER * benchmark.seconds(report.runs, is_short=report.is_short)
    runs: list[list[Result]] = []
    with tempfile.TemporaryDirectory(prefix="terrazzo-bench-") as folder, Processes() as processes, _bounded(bound_s):
        there = frozenset(name for name in benchmark.peers if not peers[name].missing)
        setting = Setting(processes, Path(folder), there, report.is_short)
        with benchmark.prepare(setting) as run:
            for number in range(report.runs):
                runs.append(list(run(number)))
                _say(f"  run {number + 1} of {report.runs}: " + "; ".join(map(_shown, runs[-1])))
    return series_of(runs)


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raises ``Overdue`` in the block when it takes longer."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Overdue(f"not done after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _shown(result: Result) -> str:
    return f"{result.name} {result.peer} {result.value:,.4g} {result.unit}"


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
