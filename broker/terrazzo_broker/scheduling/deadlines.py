"""A timer queue: the due times of will delays and session expiries."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Deadlines:
    """Names and their due times, UTC microseconds; one due time a name."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def set(self, name: str, due_us: int) -> None:
        """Sets, or moves, the due time of ``name``."""
        self._due[name] = due_us
        heapq.heappush(self._heap, (due_us, name))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(due, each) for each, due in self._due.items()]
            heapq.heapify(self._heap)

    def due(self, name: str) -> int | None:
        """The due time of ``name``; None where it isn't set."""
        return self._due.get(name)

    def cancel(self, name: str) -> None:
        """Removes ``name``; nothing happens where it isn't set."""
        self._due.pop(name, None)

    def pop_due(self, now_us: int) -> Iterator[str]:
        """Removes and yields the names that are due at ``now_us``, earliest first."""
        while self._heap and self._heap[0][0] <= now_us:
            due_us, name = heapq.heappop(self._heap)
            if self._due.get(name) == due_us:
                del self._due[name]
                yield name
