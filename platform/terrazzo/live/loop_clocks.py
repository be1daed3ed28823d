"""The clocks that tell how busy the event loop is."""

from __future__ import annotations

import os
from time import perf_counter, thread_time

from terrazzo.live.send_budget import LoopMoment

_SCHEDULER = "/proc/thread-self/schedstat"  # ns on a processor, ns ready but waiting for one, times
_MOST_BYTES = 100


class LoopClocks:
    """Reads wall clock, processor time and time spent waiting for a processor of the thread that made it. ``close`` it.

    Where the system does not say how long a thread had to wait for a processor, that counts as time with nothing to do.
    """

    def __init__(self) -> None:
        try:
            self._file = os.open(_SCHEDULER, os.O_RDONLY)
        except OSError:
            self._file = -1

    def now(self) -> LoopMoment:
        """The three clocks now, in seconds."""
        held_ns = int(os.pread(self._file, _MOST_BYTES, 0).split()[1]) if self._file >= 0 else 0
        return LoopMoment(perf_counter(), thread_time(), held_ns / 1e9)

    def close(self) -> None:
        """Closes the system's file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
