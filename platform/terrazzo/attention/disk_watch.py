"""``DiskWatch``: how much of the disk is free, and in how many days it is full if it goes on like this."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from terrazzo.sparse_log import SparseLog
from terrazzo.times import DAY_US, now_us

LOOK_S = 600.0
_KEPT = 7 * 144  # looks: of a week
_LEAST_US = DAY_US // 24  # of looks, before days are told


_log = SparseLog(logging.getLogger(__name__))


class DiskSpace(NamedTuple):
    """Bytes of the disk that the data folder is on; ``days_left`` is None where it isn't known, or nothing grows."""

    free: int
    total: int
    days_left: float | None


class DiskWatch:
    """Looks at the disk now and then, and reckons from what was free before."""

    def __init__(self, folder: Path, *, clock: Callable[[], int] = now_us) -> None:
        self._folder = folder
        self._clock = clock
        self._looks: deque[tuple[int, int]] = deque(maxlen=_KEPT)  # time, bytes free

    async def look(self) -> DiskSpace | None:
        """Looks, in a thread: a disk may stand. None where it can't be asked."""
        try:
            usage = await asyncio.to_thread(shutil.disk_usage, self._folder)
        except OSError as error:
            _log.warning("the disk of %s can't be asked: %s", self._folder, error)
            return None
        self.note(self._clock(), usage.free)
        return DiskSpace(usage.free, usage.total, self.days_left())

    def note(self, time_us: int, free: int) -> None:
        """So many bytes were free; two looks of one interval are one."""
        if not self._looks or time_us - self._looks[-1][0] >= LOOK_S * 500_000:
            self._looks.append((time_us, free))

    def days_left(self) -> float | None:
        """In how many days nothing is free, by what has gone since the first look of the last week."""
        if not self._looks:
            return None
        (first_us, before), (last_us, free) = self._looks[0], self._looks[-1]
        if last_us - first_us < _LEAST_US or free >= before:
            return None
        return round(free / (before - free) * (last_us - first_us) / DAY_US, 1)
