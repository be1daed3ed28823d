"""A test that holds its loop fails in the folders that are watched, and one that says why does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from watched_loop import LONGEST_S, WATCHED

TESTS = Path(__file__).parents[1]

HELD = f"""
import asyncio
import time

import pytest


def hold():
    began_s = time.thread_time()
    while time.thread_time() < began_s + {LONGEST_S + 0.05}:
        pass


async def test_holds():
    await asyncio.sleep(0.01)
    hold()
    await asyncio.sleep(0.01)


async def test_holds_to_its_end():
    hold()


@pytest.mark.long_turns("as it should")
async def test_says_why():
    hold()


async def test_works_in_short_turns():
    for _ in range(20):
        time.sleep(0.02)
        await asyncio.sleep(0.003)
"""


@pytest.mark.parametrize("folder", ["live", "ingest"])  # on uvloop, and on asyncio's loop
def test_who_holds_the_loop_is_told(folder: str, tmp_path: Path) -> None:
    assert folder in WATCHED
    file = tmp_path / folder / "test_held.py"
    file.parent.mkdir()
    file.write_text(HELD)
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command += ["-c", str(TESTS.parent / "pyproject.toml"), "-o", f"pythonpath={TESTS} {TESTS / 'parsers'}", str(file)]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}  # whoever runs the tests may have it print less
    ended = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=environment)
    assert "2 failed, 2 passed" in ended.stdout, ended.stdout[-3_000:] + ended.stderr[-2_000:]
    assert ended.stdout.count("the loop's thread worked for") >= 2
    for name in ("test_holds", "test_holds_to_its_end"):
        assert f"_ {name} _" in ended.stdout
