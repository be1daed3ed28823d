"""``Rests``: what failed for a reason of its own is left alone for a while, so that the others go on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

REST_US = 60 * 1_000_000


class Rests(Generic[K]):
    """Keys that have failed, and until when each rests. ``clock``: UTC microseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._until_us: dict[K, int] = {}

    def begin(self, key: K) -> None:
        """The key has failed: it rests for ``REST_US`` from now on."""
        self._until_us[key] = self._clock() + REST_US

    def end(self, key: K) -> None:
        """The key has not failed this time, or is gone."""
        self._until_us.pop(key, None)

    def has_failed(self, key: K) -> bool:
        """Whether it failed the last time; it may be tried again by now."""
        return key in self._until_us

    def is_resting(self, key: K) -> bool:
        """Whether it isn't to be tried yet."""
        return self._until_us.get(key, 0) > self._clock()
