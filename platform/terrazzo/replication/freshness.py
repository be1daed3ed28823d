"""``Freshness``: how old what a follower has may be, whoever leads and whether or not the log answers."""

from __future__ import annotations


class Freshness:
    """Follows from what the log says of its end, and when it was asked. Times in seconds of one steady clock.

    What the log had at a time is what had been acknowledged to anybody by then: a store that has it is as old as that
    time, at most.
    """

    def __init__(self) -> None:
        self.last = 0  # the log's newest frame, as far as is known
        self._fresh_s: float | None = None  # at this time all was in the store
        self._asked_s = 0.0
        self._goal: int | None = None  # the newest frame at ``_asked_s``, which the store hadn't yet

    def on_state(self, asked_s: float, last: int, sequence: int) -> None:
        """The log, asked at ``asked_s``, has answered that its newest frame is ``last``; the store has ``sequence``."""
        self.on_applied(sequence)
        self.last = last
        if sequence >= last:
            self._fresh_s, self._goal = asked_s, None
        elif self._goal is None:
            self._asked_s, self._goal = asked_s, last

    def on_applied(self, sequence: int) -> None:
        """The store has all frames up to ``sequence``."""
        if self._goal is not None and sequence >= self._goal:
            self._fresh_s, self._goal = self._asked_s, None

    def age_s(self, now_s: float, sequence: int) -> float | None:
        """Everything that was acknowledged so long ago is there; None: it was not at the log's end yet."""
        self.on_applied(sequence)
        return None if self._fresh_s is None else max(0.0, now_s - self._fresh_s)
