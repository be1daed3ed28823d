"""Things that fall due: will delays and session expiries."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Deadlines:
    """Names by due time, one a name; setting one again moves it."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def set(self, name: str, due_us: int) -> None:
        """Makes ``name`` fall due at ``due_us`` and at no other time."""
        self._due[name] = due_us
        heapq.heappush(self._heap, (due_us, name))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(due, each) for each, due in self._due.items()]
            heapq.heapify(self._heap)

    def cancel(self, name: str) -> None:
        """Forgets ``name``."""
        self._due.pop(name, None)

    def pop_due(self, now_us: int) -> Iterator[str]:
        """The names that are due, earliest first; they are forgotten."""
        while self._heap and self._heap[0][0] <= now_us:
            due_us, name = heapq.heappop(self._heap)
            if self._due.get(name) == due_us:
                del self._due[name]
                yield name
