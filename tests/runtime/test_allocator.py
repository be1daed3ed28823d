"""Large buffers are given back to the system, though small things that stay were made among them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from terrazzo.runtime.allocator import settle_algebra, settle_allocator

MIB = 2**20
PROGRAM = """
import ctypes, os, sys
from terrazzo.runtime.allocator import settle_allocator

if not hasattr(ctypes.CDLL(None), "mallopt"):
    sys.exit("another C library")
if sys.argv[1:] == ["settle"]:
    settle_allocator()

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

first = bytearray(b"x") * (24 << 20)
del first
before = resident()
large, small = [], []
for number in range(20):
    large.append(bytearray(b"x") * (5 << 20))
    small.append(bytearray(32 << 10))
large.clear()
print(resident() - before)
"""


def kept_bytes(*arguments: str) -> int:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    if "another C library" in ended.stderr:
        pytest.skip("not glibc")
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def test_large_buffers_go_back_to_the_system() -> None:
    assert kept_bytes() > 60 * MIB, "as it comes, they stay"
    assert kept_bytes("settle") < 10 * MIB


def test_what_the_environment_says_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def mallopt(option: int, value: int) -> int:
        asked.append((option, value))
        return 1

    monkeypatch.setattr("terrazzo.runtime.allocator._find_mallopt", lambda: mallopt)
    assert settle_allocator({}) == len(asked) == 3
    asked.clear()
    assert settle_allocator({"MALLOC_ARENA_MAX": "8", "MALLOC_TRIM_THRESHOLD_": "1"}) == 1
    assert asked == [(-3, 4 * 2**20)]
    assert settle_allocator({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}) == 0
    monkeypatch.setattr("terrazzo.runtime.allocator._find_mallopt", lambda: None)
    assert settle_allocator({}) == 0


ALGEBRA = """
import os
from terrazzo.runtime.allocator import settle_algebra

settle_algebra()
import numpy

print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_numpy_starts_no_threads() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ended = subprocess.run([sys.executable, "-c", ALGEBRA], capture_output=True, text=True, env=environment)
    assert (ended.stdout, ended.stderr) == ("1\n", "")


def test_whoever_says_how_many_threads_numpy_has_is_heard() -> None:
    environment = {"OPENBLAS_NUM_THREADS": "3"}
    settle_algebra(environment)
    assert environment == {"OPENBLAS_NUM_THREADS": "3"}
