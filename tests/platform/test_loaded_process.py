"""A copy of a loaded process is a program like any other: what it is given, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from loaded_process import LoadedProcess, run_loaded, run_loaded_text
from running import wait_for

SAYS = """
import json, os, sys, threading, atexit
atexit.register(lambda: print("end", flush=True))
print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), __name__, threading.active_count()]), flush=True)
print("an error", file=sys.stderr)
sys.exit(3)
"""
WAITS = "import signal\nprint('waits', flush=True)\nsignal.pause()"
RAISES = "raise ValueError('no')"


def started(folder: Path, text: str, *arguments: str, **env: str) -> LoadedProcess:
    program = folder / "program.py"
    program.write_text(text)
    with (folder / "log").open("wb") as output:
        return LoadedProcess([str(program), *arguments], output, env)


def test_it_has_arguments_environment_folder_output_and_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    process = started(tmp_path, SAYS, "a", "b c", ONLY="this")
    assert process.wait(20) == 3
    assert process.poll() == 3
    said, error, end = (tmp_path / "log").read_text().splitlines()
    assert json.loads(said) == [["a", "b c"], {"ONLY": "this"}, str(tmp_path), "__main__", 1]
    assert (error, end) == ("an error", "end")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it(tmp_path: Path, number: int) -> None:
    process = started(tmp_path, WAITS)
    wait_for(lambda: "waits" in (tmp_path / "log").read_text(), "its output")
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(number)
    assert process.wait(20) == -number
    process.kill()  # there is nothing any more that would get it


def test_it_reads_what_it_is_given_and_its_output_and_errors_are_told_apart(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.stdin.read().upper())\nprint('no', file=sys.stderr)\nsys.exit(4)")
    for given in ("the first é\n", "the second", ""):
        done = run_loaded_text([str(program)], env={}, given=given)
        assert (done.returncode, done.stdout, done.stderr) == (4, f"{given.upper()}\n", "no\n")


def test_what_does_not_end_by_itself_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\nsignal.pause()")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with pytest.raises(subprocess.TimeoutExpired):
            run_loaded([str(program)], env={}, timeout_s=1)
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "its end")


def test_what_it_does_not_catch_is_status_1(tmp_path: Path) -> None:
    assert started(tmp_path, RAISES).wait(20) == 1
    assert "ValueError: no" in (tmp_path / "log").read_text()
