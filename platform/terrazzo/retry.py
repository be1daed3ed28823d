"""Backoff: how long to wait before trying again something that failed."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec


class Retry(msgspec.Struct, frozen=True):
    """A backoff schedule: ``first_s`` after the first failure, then ``factor`` times the last pause, up to ``most_s``.

    ``jitter`` is the share of a pause that chance may take away, so that many who failed together don't come back
    together. After ``attempts`` failures (``None``: never) there is no further pause: give up.
    """

    first_s: float
    most_s: float
    factor: float = 2.0
    jitter: float = 0.0
    attempts: int | None = None

    def pause_s(self, failures: int, *, chance: Callable[[], float] = random.random) -> float | None:
        """Seconds to wait after ``failures`` (1 or more) in a row; ``None`` to give up."""
        if self.attempts is not None and failures >= self.attempts:
            return None
        exponent = min(failures - 1, 64)  # beyond it any pause is the longest, and powers stay finite
        pause_s = min(self.most_s, self.first_s * self.factor**exponent)
        return pause_s * (1.0 - self.jitter * chance())


class Attempts:
    """Counts the failures in a row of one thing, and gives the pause after each by its ``Retry``."""

    __slots__ = ("failures", "retry")

    def __init__(self, retry: Retry) -> None:
        self.retry = retry
        self.failures = 0

    def failed(self) -> float | None:
        """Counts a failure; seconds until the next attempt, ``None`` to give up."""
        self.failures += 1
        return self.retry.pause_s(self.failures)

    def succeeded(self) -> None:
        """Resets the count: the next failure is the first again."""
        self.failures = 0
