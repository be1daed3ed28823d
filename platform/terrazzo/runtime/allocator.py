"""How the C library keeps memory that was freed: what is large goes back to the system at once. And what numpy brings.

As it comes, glibc raises the size from which on an allocation is a mapping of its own with each large one that is
freed, up to 32 MiB; after that buffers lie between what stays, and their places are never given back. What a commit
writes is below the size that is set here: pages that come and go with each one cost 20,000 faults in 100,000 reports.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, MutableMapping

_OPTIONS = {  # name of the environment's variable -> glibc's number (malloc.h), value
    "MALLOC_MMAP_THRESHOLD_": (-3, 4 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": (-1, 4 * 2**20),
    "MALLOC_ARENA_MAX": (-8, 2),
}
_TUNABLES = "GLIBC_TUNABLES"
_ALGEBRA = "OPENBLAS_NUM_THREADS"


def settle_allocator(environment: Mapping[str, str] = os.environ) -> int:
    """Sets what the environment doesn't say; called before there are threads. How many options were set.

    Another C library than glibc is left as it is.
    """
    mallopt = _find_mallopt()
    if mallopt is None or _TUNABLES in environment:
        return 0
    return sum(mallopt(*option) for name, option in _OPTIONS.items() if name not in environment)


def settle_algebra(environment: MutableMapping[str, str] = os.environ) -> None:
    """Has numpy's linear algebra, of which nothing is used here, start no threads unless the environment says how many.

    As it comes, it starts one for each processor but one as it is loaded, which wait at work for some time, and keeps
    memory for all of them. Children have it from here.
    """
    environment.setdefault(_ALGEBRA, "1")


def _find_mallopt() -> Callable[[int, int], int] | None:
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return None
    return found
