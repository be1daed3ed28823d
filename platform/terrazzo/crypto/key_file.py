"""Files of mode 0600 in the data folder: keys, and the first password."""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

_DRAFT = re.compile(r"\..+\.[0-9a-f]{8}")
_DRAFT_S = 60.0  # a younger one may be another process's, which is about to give it its name


class KeyFile:
    """Says whether a file was replaced, by its identity, time and size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = (-1, -1, -1)  # differs from any at the first look

    def has_changed(self) -> bool:
        """Whether the file is another one than at the last call, or has come or gone since; true the first time."""
        try:
            found = self._path.stat()
            now = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            now = None
        changed, self._seen = now != self._seen, now
        return changed


def load_key(path: Path, *, size: int) -> bytes:
    """The key of ``size`` bytes that ``path`` holds in hexadecimal; made at random if there is no file.

    Raises:
        ValueError: the file holds something else.
        OSError: it can't be read or written.
    """
    if not path.exists():
        write_private(path, new_key_text(size))
    key = read_key(path, size=size)
    if key is None:
        raise ValueError(f"{path}: has been deleted just now")
    return key


def read_key(path: Path, *, size: int) -> bytes | None:
    """As ``load_key``, but makes none: None if there is no file."""
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except FileNotFoundError:
        return None
    except ValueError:
        key = b""
    if len(key) != size:
        raise ValueError(f"{path}: expected {2 * size} hexadecimal digits; restore the file from a backup")
    return key


def new_key_text(size: int) -> str:
    """A random key as the text of its file."""
    return secrets.token_hex(size) + "\n"


def write_private(path: Path, text: str) -> None:
    """Writes a file of mode 0600 atomically, unless another process has just written it: then that one's file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # the other process's file stands
    finally:
        draft.unlink()
    _sync_folder(path.parent)


def replace_private(path: Path, text: str) -> None:
    """Replaces a file by one of mode 0600, atomically and on disk; its owner stays, whoever the command runs as."""
    draft = _draft(path, text)
    try:
        if path.exists() and os.geteuid() == 0:
            owner = path.stat()
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def remove_drafts(folder: Path) -> int:
    """Removes what processes that were killed between two steps have left of files of this module; returns how many.

    There may be keys in them, which would outlive their replacement.
    """
    removed, latest = 0, time.time() - _DRAFT_S
    for path in folder.iterdir():
        if _DRAFT.fullmatch(path.name) and path.is_file() and path.lstat().st_mtime < latest:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
