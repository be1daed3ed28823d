"""A limit on failures (of logins, say) by key, against brute force; bounded in memory."""

from __future__ import annotations

from collections import OrderedDict, deque

MAX_KEYS = 10_000


class Throttle:
    """At most ``limit`` failures of one key within ``window_s``; 0 turns it off. Pure: the caller passes the time.

    The keys whose last failure is longest ago are forgotten first when there are more than ``max_keys``.
    """

    def __init__(self, limit: int, window_s: float, *, max_keys: int = MAX_KEYS) -> None:
        self._limit = limit
        self._window_s = window_s
        self._max_keys = max_keys
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, key: str, now_s: float) -> bool:
        """Whether the key may try again now."""
        return self.wait_s(key, now_s) == 0

    def wait_s(self, key: str, now_s: float) -> float:
        """Seconds until the key may try again; 0 when it may now."""
        failures = self._failures.get(key)
        if failures is None or len(failures) < self._limit:
            return 0
        return max(0.0, failures[0] + self._window_s - now_s)

    def fail(self, key: str, now_s: float) -> None:
        """Counts a failure; only the last ``limit`` ones matter."""
        if self._limit <= 0:
            return
        failures = self._failures.setdefault(key, deque(maxlen=self._limit))
        failures.append(now_s)
        self._failures.move_to_end(key)
        if len(self._failures) > self._max_keys:
            self._failures.popitem(last=False)

    def succeed(self, key: str) -> None:
        """Forgets the key's failures."""
        self._failures.pop(key, None)

    def __len__(self) -> int:
        return len(self._failures)
