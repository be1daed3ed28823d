"""Ends requests that read for longer than ``limits.reading_s``: meanwhile they hold a share of their company.

What waits for its company's turn holds nothing that others need: its time stands still.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work

LOOKS = 12  # within the time that a request has


class ReadingTime:
    """Looks now and then at what is under way; requests themselves have no clock.

    Args:
        most_s: how long one may take, give or take the time between two looks.
        clock: monotonic seconds.
    """

    def __init__(self, most_s: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most_s = most_s
        self.interval_s = most_s / LOOKS
        self._clock = clock
        self._since: dict[Work, float] = {}  # what reads -> when that was seen first, later by what it has waited since
        self._looked_s = 0.0

    async def look(self) -> None:
        """Ends those whose time is over; what changes something goes on.

        What waits now counts as having waited since the last look: as often too long as too short.
        """
        now_s = self._clock()
        between_s, self._looked_s = now_s - self._looked_s, now_s
        reading = [work for work in at_work.under_way() if work.may_end and not work.is_overdue]
        self._since = {
            work: min(now_s, self._since.get(work, now_s) + (between_s if work.waits is not None else 0.0))
            for work in reading
        }
        for work, since_s in self._since.items():
            if now_s - since_s >= self.most_s and work.task is not None:
                work.is_overdue = True
                work.task.cancel()
