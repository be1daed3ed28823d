"""When to look at what next: one time for each subject, the earliest first."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_MOST_STALE = 1_000  # entries of the heap that are out of date, besides as many as there are subjects


class Timers(Generic[K]):
    """A heap of times with one that counts for each key; times are integers of any unit."""

    def __init__(self) -> None:
        self._due: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._number = 0  # keys need not compare

    def __len__(self) -> int:
        return len(self._due)

    @property
    def next(self) -> int | None:
        """The earliest time; None where there is none."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def set(self, key: K, due: int) -> None:
        """The key's time is this one now."""
        if self._due.get(key) == due:
            return
        self._due[key] = due
        self._push(key, due)

    def hasten(self, key: K, due: int) -> None:
        """The key's time is this one, unless it has an earlier one."""
        before = self._due.get(key)
        if before is None or due < before:
            self.set(key, due)

    def drop(self, key: K) -> None:
        """The key has no time any more."""
        self._due.pop(key, None)

    def take(self, now: int, most: int) -> list[K]:
        """Takes at most so many keys whose time has come; they have none after it."""
        taken: list[K] = []
        while self._heap and self._heap[0][0] <= now and len(taken) < most:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                taken.append(key)
        return taken

    def _push(self, key: K, due: int) -> None:
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, key))
        if len(self._heap) > 2 * len(self._due) + _MOST_STALE:
            self._heap = [(due, number, key) for number, (key, due) in enumerate(self._due.items())]
            heapq.heapify(self._heap)
