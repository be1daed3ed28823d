"""What SQLite's write-ahead log has and SQLite will not read.

SQLite reads the log (``terrazzo.db-wal``) after a crash as far as the first frame whose checksum doesn't fit, and says
nothing of what comes after it. That is right for a transaction that was being written when the power failed; in the
middle it is committed data that the disk has damaged. A frame's checksum goes on from the one before it, so those after
a damaged one can be told from what is left of former times: https://sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct, iter_unpack
from typing import BinaryIO

KEPT = "damaged-log"
"""The folder beside the database with the log, and the database as it was with it: those of the last time."""

_HEADER = Struct(">4I 8s 8s")  # magic number, version, size of a page, number of checkpoints, salts, checksum
_FRAME = Struct(">2I 8s 8s")  # page, pages of the database where it ends a transaction, salts, checksum
_SUMMED = 8  # bytes of a frame's header
_MAGIC = 0x377F0682  # or one more: the checksums' words begin with their high byte
_NONE = bytes(8)
_PAGES = range(512, 65_537)
_SUM = Struct(">2I")
_MOST_BYTES = 64 << 20
_WORD = 0xFFFFFFFF
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LostTransactions:
    """Those behind a damaged frame; ``frame`` is its number from 1, 0: the log's own header is damaged."""

    frame: int
    count: int

    def __str__(self) -> str:
        place = f"frame {self.frame}" if self.frame else "its header"
        return f"{place} does not fit its checksum, and {self.count} committed transactions stand behind it"


def find_lost(file: Path) -> LostTransactions | None:
    """What SQLite would leave out of a log, or None: there is no log, it is whole, or its end was being written.

    What was committed last and is damaged itself can't be told from what was being written. 4 MB, which a log has as
    a rule, take 0.2 s; beyond 64 MB of its last round it is not looked at.

    Raises:
        OSError: it can't be read.
    """
    if not file.exists():
        return None
    with file.open("rb") as log:
        header = log.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        magic, _, page, _, salts, checksum = _HEADER.unpack(header)
        is_big = bool(magic & 1)
        if magic | 1 == _MAGIC | 1 and _chained(_NONE, header[: -_SUM.size], is_big=is_big) == checksum:
            return _lost(_fitting(log, page, salts, checksum, is_big=is_big))
        return _lost_behind_header(log, checksum, file)


def _lost_behind_header(log: BinaryIO, checksum: bytes, file: Path) -> LostTransactions | None:
    """All of a log whose header is damaged, as far as frames fit each other; the database knows how long they are."""
    with file.with_name(file.name.removesuffix("-wal")).open("rb") as database:
        page = int.from_bytes(database.read(18)[16:], "big")
    for is_big in (False, True):
        log.seek(_HEADER.size)
        if found := _lost(_fitting(log, page, None, checksum, is_big=is_big), behind=0):
            return found
    return None


def _fitting(
    log: BinaryIO, page: int, salts: bytes | None, checksum: bytes, *, is_big: bool
) -> Iterator[tuple[bool, bool]]:
    """Of each whole frame from there on: whether it is this round's and fits the one before it, and ends a transaction.

    ``salts``: this round's; None: the first frame's.
    """
    page = 65_536 if page == 1 else page
    size, left = _FRAME.size + page, _MOST_BYTES
    while page in _PAGES and left > 0 and len(frame := log.read(size)) == size:
        _, pages, its_salts, stored = _FRAME.unpack_from(frame)
        salts = salts or its_salts
        fits = its_salts == salts
        if fits:
            fits = _chained(checksum, frame[:_SUMMED] + frame[_FRAME.size :], is_big=is_big) == stored
            left -= size
        yield fits, pages > 0
        checksum = stored


def _lost(frames: Iterator[tuple[bool, bool]], *, behind: int | None = None) -> LostTransactions | None:
    """The transactions behind the first frame that doesn't fit, or behind one of this number."""
    count = 0
    for number, (fits, is_commit) in enumerate(frames, 1):
        if behind is not None:
            count += fits and is_commit
        elif not fits:
            behind = number
    return LostTransactions(behind or 0, count) if count else None


def _chained(checksum: bytes, data: bytes, *, is_big: bool) -> bytes:
    """SQLite's checksum of pairs of words, gone on from another one."""
    x, y = _SUM.unpack(checksum)
    for a, b in iter_unpack(">II" if is_big else "<II", data):
        x = (x + a + y) & _WORD
        y = (y + b + x) & _WORD
    return _SUM.pack(x, y)


def tell_damage(file: Path) -> None:
    """Says in the program's log what SQLite is about to leave out of a database's log, and keeps both as they are.

    For before the database is opened: who closes it last removes the log. Where another process writes to it meanwhile
    it is damaged if it is so twice.
    """
    log = file.with_name(f"{file.name}-wal")
    try:
        lost = find_lost(log)
        if lost is not None and lost != find_lost(log):
            return
    except OSError as error:
        _log.error("the log %s can't be looked at: %s", log, error.strerror)
        return
    if lost is not None:
        _log.error(
            "the log %s is damaged: %s, which are not there any more. Look after the disk, and restore from a backup. "
            "%s",
            log,
            lost,
            _kept(file, log),
        )


def _kept(file: Path, log: Path) -> str:
    """Copies both into a folder that is there only when it is whole; says so, or why not."""
    kept, part = file.with_name(KEPT), file.with_name(f"{KEPT}.new")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700)
        for each in (log, file):
            shutil.copy2(each, part / each.name)
        shutil.rmtree(kept, ignore_errors=True)
        part.rename(kept)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        return f"They can't be kept: {error.strerror}"
    return f"Log and database are kept as they were in {kept}"
