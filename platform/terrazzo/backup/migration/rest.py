"""What is neither registry nor records: sessions, spools of bridges, uploaded files, keys; from folder to folder.

Begun anew it leaves alone what is there already. Secrets stay sealed, and the keys that open them come along.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from terrazzo.backup.resting import copy_folder
from terrazzo.backup.snapshot import UPLOADS, rest_of


def size_of_rest(data_dir: Path, without: Collection[str]) -> int:
    """How many bytes a copy of all of it takes, at most."""
    return sum((data_dir / path).stat().st_size for path in rest_of(data_dir, without))


def copy_rest(data_dir: Path, target: Path, parts: Collection[str], without: Collection[str]) -> int:
    """Copies files, and the RocksDB folders ``parts``, which are locked; returns how many files there are.

    Args:
        without: folders that go another way.
    """
    for name in parts:
        shutil.rmtree(target / name, ignore_errors=True)  # a folder is the copy of one moment
        copy_folder(data_dir / name, target / name)
    paths = list(rest_of(data_dir, {*without, *parts}))
    for path in paths:
        _bring(data_dir / path, target / path, is_final=path.parts[0] == UPLOADS)
    return len(paths)


def _bring(source: Path, target: Path, *, is_final: bool) -> None:
    """``is_final``: the file is never changed once it is there, so that a link is a copy."""
    if target.exists() and _is_copied(source, target):
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if is_final:
        try:
            os.link(source, target)
        except OSError:
            pass  # another disk, or a file system without links
        else:
            return
    draft = target.with_name(f".{target.name}.part")
    shutil.copy2(source, draft)
    with open(draft, "rb") as file:
        os.fsync(file.fileno())
    draft.rename(target)


def _is_copied(source: Path, target: Path) -> bool:
    one, other = source.stat(), target.stat()
    return one.st_size == other.st_size and one.st_mtime_ns == other.st_mtime_ns


def compare_rest(data_dir: Path, target: Path, without: Collection[str]) -> list[str]:
    """The files that are missing in the target or other than in the source, a line each."""
    wrong = []
    for path in rest_of(data_dir, without):
        if not (target / path).is_file():
            wrong.append(f"file {path}: is missing")
        elif not os.path.samefile(data_dir / path, target / path) and _sum(data_dir / path) != _sum(target / path):
            wrong.append(f"file {path}: differs")
    return wrong


def _sum(path: Path) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
