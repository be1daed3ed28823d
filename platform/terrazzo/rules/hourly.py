"""So much an hour for each rule, or company: what it has done in the last sixty minutes. Times in UTC microseconds."""

from __future__ import annotations

from collections import deque

HOUR_US = 3_600 * 1_000_000


class HourlyCounts:
    """What was done when, by number (a rule's, a company's); no more is kept than the last hour has."""

    def __init__(self) -> None:
        self._times: dict[int, deque[int]] = {}

    def free_us(self, number: int, most: int, now: int) -> int:
        """When it may be done again, if it may be done so often within an hour: ``now``, or later."""
        times = self._of_last_hour(number, now)
        return now if len(times) < most else max(now, times[-most] + HOUR_US)

    def note(self, number: int, now: int) -> None:
        """It has been done."""
        self._of_last_hour(number, now)
        self._times.setdefault(number, deque()).append(now)

    def _of_last_hour(self, number: int, now: int) -> deque[int]:
        times = self._times.get(number, deque())
        while times and times[0] <= now - HOUR_US:
            times.popleft()
        if not times:
            self._times.pop(number, None)
        return times
