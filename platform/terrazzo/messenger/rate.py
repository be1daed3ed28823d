"""A project's rate limit: at most ``per_minute`` messages within any 60 seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

MINUTE_US = 60_000_000


class RateWindow:
    """A sliding window over the times of the last attempts, in UTC microseconds. ``per_minute`` 0: no limit."""

    def __init__(self, per_minute: int, times_us: Iterable[int] = ()) -> None:
        self._per_minute = per_minute
        self._times = deque(sorted(times_us)[-per_minute:] if per_minute else (), maxlen=per_minute or 1)

    def free_us(self, now_us: int) -> int:
        """When the next message may be sent: ``now_us`` or later."""
        if not self._per_minute or len(self._times) < self._per_minute:
            return now_us
        return max(now_us, self._times[0] + MINUTE_US)

    def take(self, now_us: int) -> None:
        """Counts a message that is sent now."""
        if self._per_minute:
            self._times.append(now_us)
