"""What SQLite's write-ahead log has and SQLite will not read.

SQLite reads the log (``terrazzo.db-wal``) after a crash as far as the first frame whose checksum doesn't fit, and says
nothing of what comes after it. That is right for a transaction that was being written when the power failed; in the
middle it is committed data that the disk has damaged. A frame's checksum goes on from the one before it, so those after
a damaged one can be told from what is left of former times: https://sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = "damaged-log"
"""The folder beside the database with the log, and the database as it was with it: those of the last time."""

_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = 0x377F0682  # or one more: the checksums' words begin with their high byte
_AT_ONCE = 256  # frames that are looked at together
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

    What was committed last and is damaged itself can't be told from what was being written.

    Raises:
        OSError: it can't be read.
    """
    if not file.exists() or file.stat().st_size <= _HEADER + _FRAME_HEADER:
        return None
    import numpy as np  # costs 0.2 s, and only after a crash there is a log

    with file.open("rb") as log:
        header = np.frombuffer(log.read(_HEADER), np.uint8).copy()
        is_big = bool(header[3] & 1)
        fits = _chained(_words(header[None, :24], is_big=is_big), np.zeros((1, 2), np.uint32)) == _sums(
            header[None, 24:]
        )
        if fits.all() and int(_sums(header[:4])[0]) | 1 == _MAGIC | 1:
            frames = _Frames(log, header, is_big=is_big)
            return _lost(frames, header[16:24])
        return _lost_behind_header(log, header, file)


def _lost_behind_header(log: BinaryIO, header: NDArray[np.uint8], file: Path) -> LostTransactions | None:
    """All of a log whose header is damaged, as far as frames fit each other; the database knows how long they are."""
    with file.with_name(file.name.removesuffix("-wal")).open("rb") as database:
        size = int.from_bytes(database.read(18)[16:], "big") or 4_096
    header[8:12] = list(size.to_bytes(4, "big"))
    for is_big in (False, True):
        log.seek(_HEADER)
        frames = _Frames(log, header, is_big=is_big)
        if len(frames.salts) and (found := _lost(frames, frames.salts[0], behind=-1)):
            return found
    return None


class _Frames:
    """All frames of a log: whether each goes on from the one before it, is a transaction's last, and of which salts."""

    def __init__(self, log: BinaryIO, header: NDArray[np.uint8], *, is_big: bool) -> None:
        import numpy as np

        page = int(_sums(header[8:12])[0])
        size = _FRAME_HEADER + (65_536 if page == 1 else page)
        before = header[None, 24:]
        salts, commits, follows = [np.empty((0, 8), np.uint8)], [np.empty(0, bool)], [np.empty(0, bool)]
        while 512 <= size - _FRAME_HEADER <= 65_536 and (some := log.read(_AT_ONCE * size)):
            rows = np.frombuffer(some, np.uint8, len(some) // size * size).reshape(-1, size)
            sums = np.concatenate([before, rows[:, 16:24]])
            words = _words(np.concatenate([rows[:, :8], rows[:, _FRAME_HEADER:]], axis=1), is_big=is_big)
            salts.append(rows[:, 8:16].copy())
            commits.append(np.any(rows[:, 4:8], axis=1))
            follows.append(np.all(_chained(words, _sums(sums[:-1])) == _sums(sums[1:]), axis=1))
            before = sums[-1:]
        self.salts, self.commits, self.follows = np.concatenate(salts), np.concatenate(commits), np.concatenate(follows)


def _lost(frames: _Frames, salts: NDArray[np.uint8], *, behind: int | None = None) -> LostTransactions | None:
    """Of the frames with these salts: the transactions that end behind the first that doesn't fit, or ``behind``."""
    is_ours = (frames.salts == salts).all(axis=1)
    if behind is None:
        unfit = ~(frames.follows & is_ours)
        behind = int(unfit.argmax()) if unfit.any() else len(unfit)
    count = int((frames.follows & is_ours & frames.commits)[behind + 1 :].sum())
    return LostTransactions(behind + 1, count) if count else None


def _sums(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The numbers that a log's headers have, which begin with their high byte."""
    return _words(data, is_big=True)


def _words(data: NDArray[np.uint8], *, is_big: bool) -> NDArray[np.uint32]:
    import numpy as np

    return np.ascontiguousarray(data).view(">u4" if is_big else "<u4").astype(np.uint32)


def _chained(words: NDArray[np.uint32], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """SQLite's checksum of each row of words, each gone on from the one beside it in ``before``."""
    of_words, of_former = _weights(words.shape[1] // 2)
    found: NDArray[np.uint32] = words @ of_words + before @ of_former
    return found


@cache
def _weights(pairs: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """What each word, and the checksum before, adds to the two numbers of a checksum.

    For two words ``a``, ``b`` it goes from ``(x, y)`` to ``(x + y + a, x + 2 y + a + b)``: what a word adds in the end
    hangs on its place alone.
    """
    import numpy as np

    power = np.eye(2, dtype=np.uint32)  # of that step, to the number of pairs that come after
    step = np.array([[1, 1], [1, 2]], np.uint32)
    weights = np.empty((pairs, 2, 2), np.uint32)
    for number in reversed(range(pairs)):
        weights[number] = power[:, 0] + power[:, 1], power[:, 1]
        power = power @ step
    return weights.reshape(pairs * 2, 2), power.T


def tell_damage(file: Path) -> None:
    """Says in the program's log what SQLite is about to leave out of a database's log, and keeps both as they are.

    For before the database is opened: who closes it last removes the log. Where another process writes to it meanwhile
    it is damaged if it is so twice.
    """
    log = file.with_name(f"{file.name}-wal")
    try:
        lost = find_lost(log)
        if lost != find_lost(log):
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
