"""How much of the event loop's time sending live frames may take. Pure: times are passed in."""

from __future__ import annotations

from typing import NamedTuple

SHARE = 0.02  # of the processor time that the loop spends on other things
IDLE = 0.5  # of the time in which it has nothing to do, while the others' work doesn't wait
SLICE_S = 0.002  # of sending, before others have their turn
MOST_S = 0.01  # the largest balance
LONGEST_S = 0.25  # the longest pause, so that something is sent even where other processes take all processors

_SETTLED_S = SLICE_S / 20  # a debt this small needs no pause


class LoopMoment(NamedTuple):
    """A reading of the event loop's clocks, in seconds; only differences mean something."""

    wall_s: float
    cpu_s: float  # of the loop's thread
    held_s: float  # that it was ready to run while other threads had the processors


class SendBudget:
    """A token bucket of seconds: the loop's work on other things and its idle time fill it, sending empties it.

    Work is counted in processor time, not in the wall's: a process that is held up by others gets less done in a
    second, and sending gets its share of that. A loop that waits while there is work, for a disk or for peers that send
    only when they are answered, has no time to give away.
    """

    def __init__(self, now: LoopMoment) -> None:
        self._last = now
        self._balance_s = 0.0

    @property
    def pause_s(self) -> float:
        """Seconds until the balance may be positive again; 0 when sending may go on."""
        return -self._balance_s / IDLE if self._balance_s < -_SETTLED_S else 0.0

    def note(self, now: LoopMoment, *, own_s: float = 0.0, is_behind: bool = False) -> None:
        """Updates the balance; the time since the last call went to sending, to other work, or was idle.

        Args:
            now: the clocks.
            own_s: processor time that was spent on sending.
            is_behind: whether the other work waits longer than it should, so that idle time earns nothing.
        """
        last, self._last = self._last, now
        others_s = max(0.0, now.cpu_s - last.cpu_s - own_s)
        idle_s = max(0.0, now.wall_s - last.wall_s - (now.held_s - last.held_s) - others_s - own_s)
        earned_s = SHARE * others_s + (0.0 if is_behind else IDLE * idle_s)
        self._balance_s = min(MOST_S, self._balance_s + earned_s) - own_s

    def forgive(self) -> None:
        """Cancels a debt."""
        self._balance_s = max(0.0, self._balance_s)
