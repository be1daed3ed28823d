"""``FolderTarget``: backups in a folder, on another disk or a network share."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from terrazzo.ports.backup_target import PIECE_BYTES, Held, TargetFailed

_DRAFT = ".part"
_DRAFT_S = 86_400.0  # of an older one nobody is the writer any more


class FolderTarget:
    """``BackupTarget`` in a folder, which is made with mode 0700 where it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        """The folder's path."""
        return str(self._folder)

    def held(self, prefix: str) -> Iterator[Held]:
        """The contents whose names begin with ``prefix``; what an interrupted ``put`` left is none, and goes."""
        with self._failing():
            start = (self._folder / prefix).parent if not prefix.endswith("/") else self._folder / prefix
            for folder, _, names in os.walk(start):
                for name in names:
                    path = Path(folder, name)
                    known = path.relative_to(self._folder).as_posix()
                    if name.endswith(_DRAFT):
                        _remove_if_old(path)
                    elif known.startswith(prefix):
                        yield Held(known, path.stat().st_size)

    def put(self, name: str, source: Path) -> None:
        """Copies a file under a temporary name, syncs and renames it."""
        with self._failing(), open(source, "rb") as given:
            self._put(name, lambda file: shutil.copyfileobj(given, file, PIECE_BYTES))

    def put_bytes(self, name: str, content: bytes) -> None:
        """Writes a content as ``put`` does."""
        with self._failing():
            self._put(name, lambda file: file.write(content))

    def pieces(self, name: str) -> Iterator[bytes]:
        """A content, a mebibyte at a time."""
        try:
            with self._failing(), open(self._path(name), "rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except FileNotFoundError:
            raise KeyError(name) from None

    def delete(self, name: str) -> None:
        """Removes the file, and its folder where nothing else is in it."""
        with self._failing():
            path = self._path(name)
            path.unlink(missing_ok=True)
            if path.parent != self._folder and path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()

    def _put(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        path = self._path(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_DRAFT}")
        try:
            with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def _path(self, name: str) -> Path:
        path = self._folder / name
        if ".." in path.parts:
            raise TargetFailed(f"{self.place}: {name!r} is no name of a content")
        return path

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise TargetFailed(f"{error.filename or self.place}: {error.strerror or error}") from error


def _remove_if_old(draft: Path) -> None:
    with suppress(OSError):  # gone by now, or not ours to remove: it is no content whatever becomes of it
        if draft.stat().st_mtime < time.time() - _DRAFT_S:
            draft.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
