"""``terrazzo bench``, run: a short form with real peers, and an interrupt that leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from running import wait_for
from support import require_program
from terrazzo_bench.comparison import Verdict, compare
from terrazzo_bench.report import load_report

BENCH = [sys.executable, "-m", "terrazzo", "bench"]


def marked(mark: str) -> set[int]:
    """Processes with this text in their environment."""
    found = set()
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found


def test_a_list_says_what_would_be_measured_and_how_long_it_takes() -> None:
    shown = subprocess.run([*BENCH, "--list"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert [line.split()[0] for line in shown.splitlines() if line[:1].islower()] == [
        "ingest",
        "fan-in",
        "latency",
        "commands",
        "footprint",
    ]
    assert "5 runs each, about" in shown
    named = subprocess.run([*BENCH, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert named.startswith("usage: terrazzo bench [-h] ")


def test_wrong_arguments_and_files_that_are_no_report_end_with_2(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("{}")
    for wrong in (["--only", "nothing"], ["--runs", "0"], ["--compare", str(tmp_path / "none.json")]):
        assert subprocess.run([*BENCH, *wrong], capture_output=True, timeout=60, check=False).returncode == 2, wrong


def test_a_short_run_has_figures_of_both_and_leaves_nothing(tmp_path: Path) -> None:
    require_program("mosquitto")
    mark, left = uuid.uuid4().hex, tmp_path / "left"
    left.mkdir()
    command = [
        *BENCH,
        "--short",
        "--only",
        "latency",
        "--json",
        str(tmp_path / "r.json"),
        "--write",
        str(tmp_path / "p.md"),
    ]
    environment = {**os.environ, "BENCH_MARK": mark, "TMPDIR": str(left)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = load_report(tmp_path / "r.json")
    assert {(each.name[-3:], each.peer) for each in report.series} == {
        (figure, peer) for figure in ("p50", "p99") for peer in ("Terrazzo", "Mosquitto")
    }
    assert all(value > 0 for each in report.series for value in each.values)
    assert (tmp_path / "p.md").read_text() == done.stdout
    assert marked(mark) == set()
    assert list(left.iterdir()) == []
    assert {each.verdict for each in compare(report, report)} == {Verdict.UNKNOWN}  # of one run nothing can be told


def test_a_peer_that_is_missing_is_named_and_the_rest_is_measured(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "TERRAZZO_BENCH_FOLDERS": str(tmp_path)}
    command = [*BENCH, "--short", "--only", "latency", "--json", str(tmp_path / "r.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| Mosquitto | not installed | | `apt install mosquitto` |" in done.stdout
    assert {each["peer"] for each in json.loads((tmp_path / "r.json").read_text())["series"]} == {"Terrazzo"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_that_was_started(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    environment = {**os.environ, "BENCH_MARK": mark, "TMPDIR": str(tmp_path)}
    bench = subprocess.Popen(
        [*BENCH, "--only", "commands"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        wait_for(lambda: len(marked(mark)) >= 2, "the platform runs", timeout_s=60)
        wait_for(lambda: list(tmp_path.glob("*/platform/data/*")), "its data folder", timeout_s=60)
        bench.send_signal(number)
        _, told = bench.communicate(timeout=60)
        assert bench.returncode == 130, told
        assert "interrupted: everything that was started has been ended" in told
        assert marked(mark) == set()
        assert list(tmp_path.iterdir()) == []
    finally:
        for pid in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
