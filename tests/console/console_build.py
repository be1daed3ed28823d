"""The console as it stands in the source, built for the tests."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "platform" / "console"


def builder() -> ModuleType:
    """``platform/console/build.py``, which is no package's module."""
    spec = importlib.util.spec_from_file_location("console_build_py", CONSOLE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_console() -> None:
    """Builds what has changed; skips without Node.js, fails where CI promises it."""
    found = builder()
    if found.find_tools() is None:
        if os.environ.get("TERRAZZO_REQUIRE_SERVERS") == "1":
            pytest.fail("no Node.js, and this run promises it")
        pytest.skip("no Node.js")
    found.build(only_if_stale=True)
