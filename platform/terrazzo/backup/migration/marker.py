"""The file in a target that says whose half-done migration it is; ``serve`` refuses to start while it is there."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from terrazzo.crypto.key_file import replace_private
from terrazzo.errors import Unavailable

MIGRATING = ".migrating"
"""The marker's name in the data folder of a target."""

_MOST_BYTES = 65_536


class Unmovable(Unavailable):
    """Source or target can't be used for a migration; ``str()`` names what, and says what to do."""


class Marker(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One migration. ``source``, ``target``: what it reads and writes, in words; ``is_verified``: all is equal."""

    id: str
    source: str
    target: str
    is_verified: bool = False

    def write(self, folder: Path) -> None:
        """Writes the file, whole."""
        replace_private(folder / MIGRATING, msgspec.json.encode(self).decode())

    def remove(self, folder: Path) -> None:
        """Ends the migration: from now on ``serve`` starts there."""
        (folder / MIGRATING).unlink(missing_ok=True)


def claim(folder: Path, source: str, target: str) -> Marker:
    """The marker of this migration, made where the folder is empty.

    Raises:
        Unmovable: there is something else in the folder, or the half-done target of another source.
        OSError: it can't be made.
    """
    if not (folder / MIGRATING).exists():
        if any(folder.iterdir()):
            raise Unmovable(f"--to-data: {folder} is not empty; name a folder that is empty or not there")
        made = Marker(id=secrets.token_hex(8), source=source, target=target)
        made.write(folder)
        return made
    found = _read(folder / MIGRATING)
    for was, now in ((found.source, source), (found.target, target)):
        if was != now:
            what = f"{folder} has a half-done migration with {was}, not {now}"
            raise Unmovable(f"--to-data: {what}; name another folder, or remove this one and begin anew")
    return found


def _read(path: Path) -> Marker:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=Marker)
    except msgspec.MsgspecError as error:
        raise Unmovable(f"{path}: {error}; remove the folder and begin anew") from None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps another migration out of a folder, which is made where it isn't there.

    Raises:
        Unmovable: one works on it.
        OSError: it can't be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Unmovable(f"--to-data: another migration works on {folder}") from None
        yield
    finally:
        os.close(handle)
