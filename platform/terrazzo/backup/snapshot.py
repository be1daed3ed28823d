"""One moment of a running platform, in a folder: databases as checkpoints, files as links, the rest copied.

Writes to the database wait meanwhile, for some hundred milliseconds. The order is that of a crash, which the platform
survives: sessions before records, so that a message whose receipt is noted is stored; the database in the same moment
as the records, because what follows from them is written there. What was acknowledged before it began is in it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from terrazzo.backup.database_copy import begin_copy
from terrazzo.database.database import FILE, Database

STAGING = ".backup"
"""The folder in the data folder where a backup is put together. What a crash has left of one is removed at a start."""

UPLOADS = "files"
"""The folder of uploaded files, which are never changed once they are there."""

NOT_KEPT = frozenset({"control.sock", "LOCK", "backup-status", f"{FILE}-wal", f"{FILE}-shm", FILE})
"""Names in the data folder that no backup has as they are."""


class Checkpointed(Protocol):
    """A part that keeps something on disk."""

    async def checkpoint(self, path: Path) -> None:
        """Makes a consistent copy of it in ``path``, which does not exist; none where it has nothing on disk."""


class Moment(NamedTuple):
    """What was taken: the kind of database, its rows by table, and for how long writes waited, in milliseconds."""

    database: str
    rows: dict[str, int]
    held_ms: float


async def take_snapshot(database: Database, parts: Mapping[str, Checkpointed], data_dir: Path, folder: Path) -> Moment:
    """Puts one moment of the data folder into ``folder``, which is in the data folder.

    Args:
        parts: by their folder in the data folder, in the order in which they are taken; the store last.

    Raises:
        Unavailable, StoreUnavailable, StorageError, OSError: something can't be read or written.
    """
    async with database.held():
        began = time.perf_counter()
        copy = await begin_copy(database)
        try:
            for name, part in parts.items():
                await part.checkpoint(folder / name)
            await asyncio.to_thread(_link_rest, data_dir, folder, frozenset(parts))
        except BaseException:
            await copy.close()
            raise
        held_ms = (time.perf_counter() - began) * 1e3
    try:
        rows = await copy.write(folder)
    finally:
        await copy.close()
    return Moment(copy.kind, rows, held_ms)


def rest_of(data_dir: Path, without: Collection[str]) -> Iterator[Path]:
    """The files of a data folder, relative to it, that no part of the platform has open.

    A link that lies in the folder itself is followed, as the platform does: to files on another disk, to a key that
    somebody mounts. Deeper there are none, unless somebody else made them.

    Args:
        without: folders in it that are left out.
    """
    waiting = [Path()]
    while waiting:
        inside = waiting.pop()
        for entry in os.scandir(data_dir / inside):
            below = inside / entry.name
            if below.as_posix() in without or (not inside.parts and _is_left_out(entry.name)):
                continue
            if entry.is_symlink() and (inside.parts or _is_around(data_dir, Path(entry.path))):
                continue
            if entry.is_dir():
                waiting.append(below)
            elif entry.is_file():
                yield below


def _is_around(data_dir: Path, link: Path) -> bool:
    """Whether a link leads to the data folder itself, or to one that it is in."""
    return data_dir.resolve().is_relative_to(link.resolve())


def _is_left_out(name: str) -> bool:
    return name in NOT_KEPT or name.startswith(".")


def _link_rest(data_dir: Path, folder: Path, taken: frozenset[str]) -> None:
    """Links or copies what no part has taken: uploaded files, keys, and what was seen last."""
    for path in rest_of(data_dir, taken):
        _bring(data_dir / path, folder / path, is_final=path.parts[0] == UPLOADS)


def _bring(source: Path, target: Path, *, is_final: bool) -> None:
    """``is_final``: the file is never changed once it is there, so that a link is a copy."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if is_final:
            os.link(source, target)
        else:
            shutil.copy2(source, target)
    except FileNotFoundError:
        pass  # removed just now
    except OSError:
        if not is_final:
            raise
        shutil.copy2(source, target)  # a file system without links
