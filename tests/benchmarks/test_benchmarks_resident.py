"""Whose memory counts as a server's: a child that has not begun its own program has its parent's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from resident import children_of

PROGRAM = """
import os, subprocess, sys
forked = os.fork()
if not forked:
    sys.stdin.read()
    os._exit(0)
program = "import sys; print(flush=True); sys.stdin.read()"
other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
other.stdout.readline()
print(forked, other.pid, flush=True)
sys.stdin.read()
"""


def test_a_forked_child_is_none_until_it_is_another_program() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        forked, other = map(int, server.stdout.readline().split())
        process = psutil.Process(server.pid)
        assert {each.pid for each in process.children()} == {forked, other}
        assert [each.pid for each in children_of(process)] == [other]
        assert server.stdin is not None
        server.stdin.close()
        psutil.wait_procs([psutil.Process(other)] if psutil.pid_exists(other) else [], timeout=10)
