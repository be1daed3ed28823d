"""The CPU that a process has used, to the nanosecond: /proc tells it in steps of 10 ms, too coarse for short loads."""

from __future__ import annotations

import time

import psutil


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a running process so far, all its threads: its clock where Linux has one for each process.

    Raises:
        psutil.NoSuchProcess: there is none.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel
    except OSError:
        used = psutil.Process(pid).cpu_times()
        return float(used.user + used.system)
