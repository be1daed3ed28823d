"""Where a terminal's time comes from."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The time of a terminal's reports; ``tick`` counts them from 0."""

    def time_s(self, tick: int) -> float:
        """The time in seconds since 1970 (UTC)."""


class WallClock:
    """The machine's own clock."""

    def time_s(self, tick: int) -> float:
        """The machine's time in seconds since 1970 (UTC)."""
        return time.time()


class SeededClock:
    """A clock that is a function of the report's number, so that two runs say the same, byte for byte."""

    def __init__(self, *, start_s: float, interval_s: float) -> None:
        self._start_s = start_s
        self._interval_s = interval_s

    def time_s(self, tick: int) -> float:
        """The start and as many intervals as there were reports."""
        return self._start_s + tick * self._interval_s
