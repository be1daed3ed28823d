"""What the C library has of memory: allocated, kept though it is free, and mapped for what is large."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


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
