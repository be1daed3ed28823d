"""A data folder of ``terrazzo serve --demo`` whose week is there: made once in a run, by whoever needs it first.

A week of a plant's reports takes twenty seconds of a processor to simulate, to store and to map.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from running import Platform, wait_for

THERE = "The demo's week of history is there"
_READY_S = 600.0  # on a machine that has other things to do


def copy_demo(factory: pytest.TempPathFactory, data: Path) -> None:
    """Puts a copy of it to ``data``, which is not there yet."""
    of_process = factory.getbasetemp()
    folder = of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process
    with (folder / "demo-week.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a run
        made = folder / "demo-week"
        if not made.exists():
            _make(folder / "demo-week-making").rename(made)
    shutil.copytree(made / "data", data)


def _make(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)  # of one that failed
    with Platform(folder / "data", arguments=("--demo",)) as running:
        assert not running.unready_parts()
        assert THERE not in running.log.read_text(), "the platform is ready before the history is there"
        wait_for(lambda: THERE in running.log.read_text(), "the history", timeout_s=_READY_S)
        running.stop(timeout_s=60)
    return folder
