"""Slows down whoever guesses the codes of a user's second factor. Pure: the caller passes the time.

Six digits are guessed soon by whoever knows the password, from however many addresses: the count is the user's alone.
"""

from __future__ import annotations

from collections import OrderedDict, deque

LIMIT = 5  # wrong codes of a user within the window
WINDOW_S = 900.0

_MOST_USERS = 10_000  # the one who tried longest ago makes room; who gets here has proven a password


class CodeLimiter:
    """Counts tries by user; one counts as wrong from its beginning until it is proven."""

    def __init__(self) -> None:
        self._tries: OrderedDict[int, deque[float]] = OrderedDict()

    def begin(self, user_id: int, now_s: float) -> float:
        """Counts a try; 0.0 where it may go on, else the seconds until the next may, and it isn't counted."""
        times = self._tries.setdefault(user_id, deque(maxlen=LIMIT))
        self._tries.move_to_end(user_id)
        if len(self._tries) > _MOST_USERS:
            self._tries.popitem(last=False)
        if len(times) == LIMIT and 0 <= now_s - times[0] < WINDOW_S:
            return times[0] + WINDOW_S - now_s
        times.append(now_s)
        return 0.0

    def forget(self, user_id: int) -> None:
        """A code was right, or the user has other credentials."""
        self._tries.pop(user_id, None)
