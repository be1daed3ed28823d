"""What the C library has of memory: allocated, kept though it is free, and mapped for what is large.

What is freed between things that stay is never given back by itself, only what lies at a heap's end: after many buffers
of a megabyte have come and gone, a heap of 100 MB may have 40 that nobody uses. ``HeapTrimmer`` gives such pages back.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from terrazzo.memory_shares import MIB

TRIM_LOOK_S = 5.0
_LOOKS = 3  # in a row, at each of which so much was free
_LEAST_BYTES = 16 * MIB  # less is what commits need again and again
_AGAIN_BYTES = 8 * MIB  # that may have become free since the last time

_log = logging.getLogger(__name__)


class _Info(ctypes.Structure):
    """``struct mallinfo2`` of glibc's malloc.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def heap() -> dict[str, int]:
    """Bytes by part: ``allocated``, ``free`` (kept for what comes), ``mapped`` (what is large, by itself).

    Python's objects of up to 512 bytes lie elsewhere. Empty with another C library than glibc 2.33 or newer.
    """
    mallinfo = _find_mallinfo()
    if mallinfo is None:
        return {}
    info = mallinfo()
    return {"allocated": info.uordblks, "free": info.fordblks, "mapped": info.hblkhd}


def _find_mallinfo() -> Callable[[], _Info] | None:
    try:
        found = ctypes.CDLL(None).mallinfo2
    except (OSError, TypeError, AttributeError):
        return None
    found.restype = _Info
    return found


def resident_bytes() -> int:
    """Memory that this process has in the machine's; 0 where the system doesn't say (Linux does)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class HeapTrimmer:
    """Gives back to the system what the C library has kept free for some looks, and has not given back yet.

    Args:
        read: bytes that are free; what was given back stays among them.
        resident: bytes of memory that the process has.
        trim: gives back all whole pages that are free. It takes a millisecond for each 10 to 30 MB, for which nobody
            else can allocate.
    """

    def __init__(
        self,
        read: Callable[[], int] = lambda: heap().get("free", 0),
        *,
        resident: Callable[[], int] = resident_bytes,
        trim: Callable[[], object] | None = None,
    ) -> None:
        self._read = read
        self._resident = resident
        self._trim = trim or _find_trim()
        self._free: deque[int] = deque(maxlen=_LOOKS)
        self._left = 0  # free and resident together, after the last time

    async def look(self) -> None:
        """To be called each ``TRIM_LOOK_S``. Works on a thread."""
        await asyncio.to_thread(self.look_now)

    def look_now(self) -> int:
        """The same, here. Returns the bytes that were given back."""
        self._free.append(self._read())
        if len(self._free) < _LOOKS or min(self._free) < _LEAST_BYTES:
            return 0
        before = self._resident()
        if before + self._free[-1] < self._left + _AGAIN_BYTES:  # pages that were given back and are used again
            return 0
        self._trim()
        after = self._resident()
        self._left = after + self._read()
        self._free.clear()
        _log.debug("gave %d MiB of free memory back to the system", max(0, before - after) // MIB)
        return max(0, before - after)


def _find_trim() -> Callable[[], object]:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return lambda: None
    found.argtypes = (ctypes.c_size_t,)
    return lambda: found(0)
