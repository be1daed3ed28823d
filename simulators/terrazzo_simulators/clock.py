"""Clocks: where a terminal takes the time of its reports from."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The time of a terminal's reports, which are numbered by ``tick`` from 0."""

    def time_s(self, tick: int) -> float:
        """The time in seconds since 1970 (UTC)."""


class WallClock:
    """The machine's clock."""

    def time_s(self, tick: int) -> float:
        """The machine's time in seconds since 1970 (UTC)."""
        return time.time()


class SeededClock:
    """A clock that depends on the report's number only, so that two runs send the same bytes."""

    def __init__(self, *, start_s: float, interval_s: float) -> None:
        self._start_s = start_s
        self._interval_s = interval_s

    def time_s(self, tick: int) -> float:
        """The start plus ``tick`` intervals."""
        return self._start_s + tick * self._interval_s
