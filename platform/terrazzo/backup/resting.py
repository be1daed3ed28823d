"""Folders of a platform that does not run, as parts of a backup."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from terrazzo.errors import Unavailable

_FINAL = ".sst"  # RocksDB never changes such a file


class RestingFolder:
    """A RocksDB folder that nobody has open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def checkpoint(self, path: Path) -> None:
        """Copies it, with RocksDB's own lock held meanwhile.

        Raises:
            Unavailable: a process has it open.
        """
        await asyncio.to_thread(self._copy, path)

    def _copy(self, path: Path) -> None:
        with locked(self._folder):
            copy_folder(self._folder, path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds RocksDB's own lock of a folder. This process must not have it open besides: the lock is the process's.

    Raises:
        Unavailable: a process has it open.
    """
    with open(folder / "LOCK", "ab") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Unavailable(f"{folder}: is in use by a process that does not answer") from None
        yield


def copy_folder(folder: Path, path: Path) -> None:
    """Copies a RocksDB folder that is ``locked``; files that never change are linked where that is possible."""
    path.mkdir(mode=0o700, parents=True)
    for entry in os.scandir(folder):
        if entry.name.endswith(_FINAL):
            _link(entry.path, path / entry.name)
        elif entry.is_file(follow_symlinks=False) and entry.name not in ("LOCK", "LOG"):
            shutil.copy2(entry.path, path / entry.name)


def _link(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def resting_parts(data_dir: Path) -> dict[str, RestingFolder]:
    """All RocksDB folders in a data folder, by their path in it."""
    found = [path.parent for pattern in ("*/CURRENT", "bridges/*/CURRENT") for path in data_dir.glob(pattern)]
    return {path.relative_to(data_dir).as_posix(): RestingFolder(path) for path in sorted(found)}
