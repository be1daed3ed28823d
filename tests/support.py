"""What tests ask of the machine: programs, ports, the description of the interfaces."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
from glob import glob
from pathlib import Path

import pytest

from terrazzo.runtime.supervisor import Supervisor

_FURTHER_FOLDERS = ["/usr/sbin", "/sbin", "/usr/local/sbin", *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)]


def require_program(name: str) -> str:
    """The path of a program that a test needs; skips without it, fails where CI promises it."""
    path = shutil.which(name) or shutil.which(name, path=os.pathsep.join(_FURTHER_FOLDERS))
    if path is None:
        if os.environ.get("TERRAZZO_REQUIRE_SERVERS") == "1":
            pytest.fail(f"{name} is not installed, and this run promises it")
        pytest.skip(f"{name} is not installed")
    return path


def require_chromium() -> str:
    """A browser as ``require_program`` has programs: the one without windows where it is, which takes half the time."""
    light = shutil.which("chromium-headless-shell")
    return light or require_program("chromium")


def interface_description(name: str) -> str:
    """A file of the description of the interfaces, which is not in this repository; skips where there is none.

    It is looked for in the folder that ``TERRAZZO_SPEC`` names, otherwise as ``shared/spec`` beside the repository or
    beside any folder that this one lies in.
    """
    given = os.environ.get("TERRAZZO_SPEC")
    folders = [Path(given)] if given else [folder / "shared" / "spec" for folder in Path(__file__).resolve().parents]
    for path in (folder / name for folder in folders):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    if given:
        pytest.fail(f"TERRAZZO_SPEC names a folder without {name}: {given}")
    pytest.skip("no interface description: TERRAZZO_SPEC can say where it is")


def shared_modules() -> dict[str, str]:
    """The environment of a program that imports what all tests share."""
    return {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}


_PORTS = range(10_240, 32_768)  # below those that the system gives to outgoing connections, which might be faster
_pick = random.SystemRandom()  # not the one that tests seed: several runs at once go different ways
_SHARES = 8  # each process of a run has a part of the ports of its own: a port is taken a second after it was looked at
_share = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
_given: set[int] = set()


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago, and that nobody gets by chance."""
    for _ in range(100):
        port = _pick.choice(_PORTS[_share::_SHARES])
        if port in _given:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)
            return port
    raise AssertionError("no free port")


def new_tasks() -> Supervisor:
    """Runs the tasks of parts that a test builds without a platform around them."""
    return Supervisor(on_stop=lambda: None)
