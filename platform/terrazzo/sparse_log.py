"""A rate-limited logger, for what may happen thousands of times a second."""

from __future__ import annotations

import logging
import time


class SparseLog:
    """Writes at most one line per ``interval_s``; the next one says how many were left out."""

    __slots__ = ("_interval_s", "_logger", "_next_s", "_skipped")

    def __init__(self, logger: logging.Logger, interval_s: float = 10.0) -> None:
        self._logger = logger
        self._interval_s = interval_s
        self._next_s = 0.0
        self._skipped = 0

    @property
    def is_due(self) -> bool:
        """Whether a line would be written now; one that isn't is counted as left out."""
        if time.monotonic() >= self._next_s:
            return True
        self._skipped += 1
        return False

    def warning(self, message: str, *args: object, exc_info: bool = False) -> None:
        """As ``Logger.warning``, unless a line was written less than ``interval_s`` ago."""
        self._write(logging.WARNING, message, args, exc_info=exc_info)

    def error(self, message: str, *args: object, exc_info: bool = False) -> None:
        """As ``Logger.error``, unless a line was written less than ``interval_s`` ago."""
        self._write(logging.ERROR, message, args, exc_info=exc_info)

    def _write(self, level: int, message: str, args: tuple[object, ...], *, exc_info: bool) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            self._skipped += 1
            return
        self._next_s = now_s + self._interval_s
        if self._skipped:
            message, args, self._skipped = message + " (and %d more like it)", (*args, self._skipped), 0
        self._logger.log(level, message, *args, exc_info=exc_info)
