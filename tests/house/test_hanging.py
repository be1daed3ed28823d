"""A test that hangs fails, and says where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hanging

SUITE = """
    import asyncio, time, pytest, uvloop
    pytest_plugins = ["hanging"]
    def pytest_asyncio_loop_factories():
        return {"LOOP": FACTORY}
"""
TESTS = """
    import asyncio, time, pytest
    async def never_comes():
        await asyncio.get_running_loop().create_future()
    @pytest.fixture
    async def ends_late():
        yield
        await asyncio.get_running_loop().create_future()
    async def test_waits():
        other = asyncio.create_task(never_comes(), name="the other one")
        await other
    async def test_waits_in_the_end(ends_late): ...
    def test_sleeps(): time.sleep(60)
    async def test_right(): await asyncio.sleep(0.01)
"""


@pytest.mark.parametrize("factory", ["uvloop.new_event_loop", "asyncio.new_event_loop"])
def test_a_test_that_hangs_fails_and_says_where(tmp_path: Path, factory: str) -> None:
    for name, text in (("conftest.py", SUITE.replace("FACTORY", factory)), ("test_hanging.py", TESTS)):
        (tmp_path / name).write_text("\n".join(line.removeprefix("    ") for line in text.splitlines()))
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    without = [word for each in ("schemathesis", "hypothesispytest", "xdist") for word in ("-p", f"no:{each}")]
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "--timeout", "1", *without]
    done = subprocess.run(
        [*command, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"],
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(Path(hanging.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "2 failed, 2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "the other one: never_comes (test_hanging.py:" in done.stdout
    assert "test_waits (test_hanging.py:" in done.stdout
    assert "the test took longer than 1 s" in done.stdout
