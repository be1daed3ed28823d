"""``Outage``: says since when the server is away and how much waits, and when it is back, seldom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

_SAY_EVERY_S = 60.0

_log = logging.getLogger(__name__)


class Outage:
    """Whether the server is away.

    Args:
        waiting: how many batches wait on disk, and their bytes.
        clock_s: Unix time in seconds.
    """

    def __init__(self, waiting: Callable[[], tuple[int, int]], *, clock_s: Callable[[], float] = time.time) -> None:
        self.since_s = 0.0  # Unix time; 0: it is there, as far as is known
        self._waiting = waiting
        self._clock_s = clock_s
        self._said_s = 0.0

    def begin(self, reason: object) -> None:
        """The server does not answer, or takes nothing; said at once, and then once a minute."""
        now_s = self._clock_s()
        self.since_s = self.since_s or now_s
        if now_s - self._said_s < _SAY_EVERY_S:
            return
        self._said_s = now_s
        batches, size = self._waiting()
        since = datetime.fromtimestamp(self.since_s, UTC).isoformat(timespec="seconds")
        told = "InfluxDB is away since %s; %d batches of records (%d bytes) wait on disk until it is back: %s"
        _log.warning(told, since, batches, size, reason)

    def end(self) -> None:
        """The server has taken something, or answered."""
        if not self.since_s:
            return
        batches, size = self._waiting()
        away_s, self.since_s, self._said_s = self._clock_s() - self.since_s, 0.0, 0.0
        _log.warning("InfluxDB is back after %.0f s; %d batches (%d bytes) are left to send", away_s, batches, size)
