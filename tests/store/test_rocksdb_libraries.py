"""Who asks about the past first doesn't wait for libraries to be loaded; who has no past doesn't have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def has_numpy(folder: Path, settled_s: float, *, stores: bool = False) -> bool:
    """Whether a process has it that opened the store in a folder, stored a record or none, and was asked nothing."""
    child, what = Path(__file__).with_name("libraries_child.py"), "stores" if stores else "nothing"
    command = [sys.executable, str(child), str(folder), str(settled_s), what]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return {"True\n": True, "False\n": False}[said]


def test_libraries_are_loaded_some_time_after_a_start_with_a_past(tmp_path: Path) -> None:
    assert not has_numpy(tmp_path, 0.0), "there is nothing to ask about"
    assert not has_numpy(tmp_path, 3_600.0, stores=True), "a start is not the time for it"
    assert has_numpy(tmp_path, 0.0)


def test_they_are_loaded_when_the_first_records_have_come(tmp_path: Path) -> None:
    assert has_numpy(tmp_path, 0.0, stores=True)
