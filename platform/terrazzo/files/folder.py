"""Contents of files on disk: each complete and synced, or not there at all.

A content is written under a temporary name, synced and renamed; on any failure the temporary file is removed. Names are
random and made by the platform, so that nothing a client says becomes a path.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import BinaryIO, NamedTuple

from terrazzo.domain.file_kinds import HEAD_BYTES
from terrazzo.errors import BadParameter, Unavailable
from terrazzo.reasons import say

_log = logging.getLogger(__name__)

PIECE_BYTES = 1 << 20  # written at once
ORPHAN_AGE_S = 3_600.0  # a younger one may be an upload in progress, of this or another process
_TEMPORARY = ".part"
_NAME = re.compile(r"[0-9a-f]{32}")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Content(NamedTuple):
    """A content that was written: its uid, size in bytes and SHA-256 in hexadecimal."""

    uid: str
    size: int
    sha256: str


class FileFolder:
    """The folder of contents, each in a file named by its uid. Files are at most ``most_bytes`` long."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    def path(self, uid: str) -> Path:
        """The path of a content.

        Raises:
            ValueError: the uid has not the form of this folder's uids.
        """
        if not _NAME.fullmatch(uid):
            raise ValueError(f"not a file's uid: {uid[:64]!r}")
        return self.folder / uid

    async def write(self, pieces: AsyncIterator[bytes], check: Callable[[bytes], None]) -> Content:
        """Writes a content; it is durable on return.

        Args:
            check: is called once with the first ``HEAD_BYTES`` (or all of a shorter content), and may raise.

        Raises:
            BadParameter: it is empty or too long, or ``check`` refuses it.
            Unavailable: the disk is full or fails.
        """
        uid = secrets.token_hex(16)
        partial, is_there = self.folder / f"{uid}{_TEMPORARY}", False
        try:
            with await asyncio.to_thread(self._create, partial) as file:
                size, digest = await self._fill(file, pieces, check)
                await asyncio.to_thread(_sync, file)
            await asyncio.to_thread(self._settle, partial, uid)
            is_there = True
        except OSError as error:
            raise Unavailable(_why(error)) from error
        finally:
            if not is_there:
                await asyncio.to_thread(partial.unlink, missing_ok=True)
        return Content(uid, size, digest)

    async def _fill(
        self, file: BinaryIO, pieces: AsyncIterator[bytes], check: Callable[[bytes], None]
    ) -> tuple[int, str]:
        digest, size, is_checked = hashlib.sha256(), 0, False
        waiting = bytearray()
        async for piece in pieces:
            size += len(piece)
            if size > self.most_bytes:
                raise BadParameter("file", say("file_too_large", most=self.most_bytes))
            waiting += piece
            if not is_checked and size >= HEAD_BYTES:
                check(bytes(waiting[:HEAD_BYTES]))
                is_checked = True
            if is_checked and len(waiting) >= PIECE_BYTES:
                await asyncio.to_thread(_put, file, digest, bytes(waiting))
                waiting.clear()
        if not size:
            raise BadParameter("file", say("is_empty"))
        if not is_checked:
            check(bytes(waiting))
        await asyncio.to_thread(_put, file, digest, bytes(waiting))
        return size, digest.hexdigest()

    def _create(self, partial: Path) -> BinaryIO:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)

    def _settle(self, partial: Path, uid: str) -> None:
        partial.rename(self.path(uid))
        self._sync_folder()

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    async def remove(self, uid: str) -> None:
        """Removes a content that no record refers to any more; on failure it is left for ``remove_orphans``."""
        try:
            await asyncio.to_thread(self.path(uid).unlink, missing_ok=True)
        except OSError as error:
            _log.warning("%s stays until the next start: %s", self.path(uid), error)

    def old_names(self, *, now_s: float | None = None) -> dict[str, list[Path]]:
        """The files older than ``ORPHAN_AGE_S``, temporary ones too, by uid."""
        latest = (time.time() if now_s is None else now_s) - ORPHAN_AGE_S
        found: dict[str, list[Path]] = {}
        if not self.folder.is_dir():
            return found
        for path in self.folder.iterdir():
            uid = path.name.removesuffix(_TEMPORARY)
            if _NAME.fullmatch(uid) and path.is_file() and path.stat().st_mtime < latest:
                found.setdefault(uid, []).append(path)
        return found

    def remove_orphans(self, old: dict[str, list[Path]], known: Collection[str]) -> int:
        """Removes old files whose uid is not ``known``, and old temporary ones; returns how many."""
        doomed = [path for uid, paths in old.items() for path in paths if path.suffix == _TEMPORARY or uid not in known]
        for path in doomed:
            path.unlink(missing_ok=True)
        if doomed:
            _log.info("removed %d files of uploads that were never completed", len(doomed))
        return len(doomed)


def _put(file: BinaryIO, digest: hashlib._Hash, piece: bytes) -> None:
    digest.update(piece)
    rest = memoryview(piece)
    while rest:  # an unbuffered file may take less than all
        rest = rest[file.write(rest) :]


def _sync(file: BinaryIO) -> None:
    os.fsync(file.fileno())


def _why(error: OSError) -> str:
    if error.errno in _FULL:
        return say("file_no_space")
    return say("file_disk_fails", why=error.strerror or error)
