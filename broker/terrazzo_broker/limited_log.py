"""Rate-limited loggers, for log lines that peers can provoke."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

INTERVAL_S = 10.0
_TEMPLATES = 256


class RateLimit(logging.Filter):
    """Passes one record of each message template every ``interval_s``; the next one says how many were left out."""

    def __init__(self, interval_s: float = INTERVAL_S, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}  # template: not before, left out since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; as ``logging.Filter.filter``."""
        template, now_s = str(record.msg), self._clock()
        next_s, left_out = self._seen.get(template, (now_s, 0))
        if now_s < next_s:
            self._seen[template] = next_s, left_out + 1
            return False
        if len(self._seen) >= _TEMPLATES:
            self._seen.clear()
        self._seen[template] = now_s + self._interval_s, 0
        if left_out:
            record.msg = f"{template} (and {left_out} more like it before)"
        return True


def limited_logger(name: str) -> logging.Logger:
    """The logger of this name, limited to one line of each template every ``INTERVAL_S``."""
    logger = logging.getLogger(name)
    if not any(isinstance(each, RateLimit) for each in logger.filters):
        logger.addFilter(RateLimit())
    return logger
