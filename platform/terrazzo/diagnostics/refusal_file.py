"""The file of refusals: a line of JSON for each terminal or address whose refusals have changed; its last one counts.

It is written in batches on a thread, and not synced: after a power cut the last seconds may be missing. A line that a
crash has torn is passed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from terrazzo.domain.refusals.entry import RefusalEntry

FILE_NAME = "refusals"
_SLACK_BYTES = 4 * 2**20  # of lines that don't count any more, beside as many bytes as count
_MOST_BYTES = 256 * 2**20  # of a file that is read at all


class KeptRefusals(msgspec.Struct, frozen=True, kw_only=True):
    """A line: the refusals of one terminal, or at one address (``share``), oldest first; without any forgotten."""

    terminal_id: int = 0
    company_id: int = 0
    uid: str = ""
    share: str = ""
    entries: tuple[RefusalEntry, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(KeptRefusals).decode


def kept_in(path: Path) -> list[KeptRefusals]:
    """What a file says of each terminal and address; nothing where there is no file.

    Raises:
        OSError: it can't be read.
    """
    found: dict[int | str, KeptRefusals] = {}
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            each = _decode(line)
            whose = each.share or each.terminal_id
            found.pop(whose, None)
            if each.entries:
                found[whose] = each
    return list(found.values())


class RefusalFile:
    """One file of mode 0600. What a thread is writing when its caller is interrupted is finished before the next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._bytes = 0
        self._most_bytes = 0

    @property
    def is_long(self) -> bool:
        """Whether most of it doesn't count any more: ``rewrite`` makes it short."""
        return self._bytes > self._most_bytes

    async def load(self) -> Sequence[KeptRefusals]:
        """What it says, of each terminal once; and makes it anew with that.

        Raises:
            OSError: it can't be read or written.
        """
        kept = await asyncio.to_thread(kept_in, self._path)
        await self.rewrite(kept)
        return kept

    async def append(self, lines: Sequence[KeptRefusals]) -> None:
        """Adds lines.

        Raises:
            OSError: the disk takes them not, or not all.
        """
        await asyncio.to_thread(self._append, lines)

    async def rewrite(self, lines: Sequence[KeptRefusals]) -> None:
        """Has these lines in the file and no others.

        Raises:
            OSError: the file can't be written.
        """
        await asyncio.to_thread(self._rewrite, lines)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, lines: Iterable[KeptRefusals]) -> None:
        with self._lock:
            if self._file is not None:
                # the first line end closes what a failed write may have left
                self._bytes += _write_all(self._file, b"\n" + _joined(lines))

    def _rewrite(self, lines: Iterable[KeptRefusals]) -> None:
        with self._lock:
            self._replace(lines)

    def _replace(self, lines: Iterable[KeptRefusals]) -> None:
        fresh = self._path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            size = _write_all(file, _joined(lines))
            os.replace(fresh, self._path)
        except OSError:
            os.close(file)
            raise
        self._close()
        self._file, self._bytes, self._most_bytes = file, size, 2 * size + _SLACK_BYTES


def _joined(lines: Iterable[KeptRefusals]) -> bytes:
    return b"".join(_encode(each) + b"\n" for each in lines)


def _write_all(file: int, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    return len(data)
