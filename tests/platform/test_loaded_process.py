"""A copy of a loaded process is a program like any other: what it is given, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from loaded_process import LoadedProcess
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


def test_what_it_does_not_catch_is_status_1(tmp_path: Path) -> None:
    assert started(tmp_path, RAISES).wait(20) == 1
    assert "ValueError: no" in (tmp_path / "log").read_text()
