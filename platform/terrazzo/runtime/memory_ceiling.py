"""How much memory there is for what waits or is kept: what the configuration says, or a part of the machine's."""

from __future__ import annotations

import os
from pathlib import Path

from terrazzo.memory_shares import MIB

LEAST_MIB = 256
MOST_MIB = 4_096
_PART = 4  # of the memory there is
_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_ceiling(memory_mib: int) -> int:
    """Bytes of ``limits.memory_mib``; 0: a quarter of what the machine or its control group has, 256 to 4,096 MiB."""
    return MIB * (memory_mib or sensible_mib(memory_there_is()))


def sensible_mib(there_is: int) -> int:
    """A quarter of so many bytes, in MiB, within bounds."""
    return min(MOST_MIB, max(LEAST_MIB, there_is // _PART // MIB))


def memory_there_is(groups: tuple[Path, ...] = _GROUPS) -> int:
    """Bytes of memory of this machine, or of the control group that this process is in, where that has fewer."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for group in groups:
        try:
            text = group.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # not "max"
            found.append(int(text))
    return min(found)
