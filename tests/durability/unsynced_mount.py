"""Disks that forget what was not synced, mounted for a test."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path

import pytest

from running import ServerProcess

_START_S = 120


@contextmanager
def mounted(work: Path, folder: Path, *, heeds_syncs: bool = True) -> Iterator[Path]:
    """A disk that has what is in ``folder``; where it is mounted. ``work``: a new folder for what it needs."""
    require_fuse()
    mount = work / "mount"
    mount.mkdir(parents=True)
    command = [
        sys.executable,
        str(Path(__file__).with_name("unsynced_server.py")),
        str(mount),
        str(work / "backing"),
        str(folder),
        "heeds" if heeds_syncs else "claims",
    ]
    with ServerProcess(command, log=work / "mount.log") as server:
        server.wait_ready(mount.is_mount, timeout_s=_START_S)
        try:
            yield mount
        finally:
            server.process.terminate()  # which unmounts
            server.process.wait(_START_S)
    shutil.rmtree(work / "backing")


def power_failure(mount: Path, target: Path, *, seed: int, some: bool) -> None:
    """Writes into ``target`` what would be there."""
    os.setxattr(mount, "user.power", f"{'some' if some else 'drop'} {seed} {target}".encode())


def set_full(mount: Path, is_full: bool) -> None:
    """Whether there is no room for anything more."""
    os.setxattr(mount, "user.full", b"1" if is_full else b"0")


def set_slow(mount: Path, times: int) -> None:
    """So many times as long does it take to write and to sync; 1: as it is."""
    os.setxattr(mount, "user.slow", str(times).encode())


def require_fuse() -> None:
    """Skips where nothing can be mounted."""
    pytest.importorskip("mfusepy", reason="mfusepy is not installed", exc_type=ImportError)
    for missing, what in (
        (not Path("/dev/fuse").exists(), "there is no /dev/fuse"),
        (os.geteuid() != 0, "mounting needs root"),
        (find_library("fuse3") is None, "libfuse3 is not installed"),
    ):
        if missing:
            pytest.skip(what)
