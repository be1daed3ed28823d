"""How much of the event loop's time sending may take. Pure: times come in."""

from __future__ import annotations

from typing import NamedTuple

SHARE = 0.02  # of the processor time that the loop spends on other things
IDLE = 0.5  # of the time in which it has nothing to do, while the others' work doesn't wait
SLICE_S = 0.002  # spent at once before others have their turn
MOST_S = 0.01  # saved up
LONGEST_S = 0.25  # away, so that something is sent even where other processes take all processors

_SETTLED_S = SLICE_S / 20  # still to be paid, which the next pause will


class LoopMoment(NamedTuple):
    """What clocks say, in seconds; only differences mean something."""

    wall_s: float
    cpu_s: float  # of the loop's thread
    held_s: float  # it was ready to run, and other threads had the processors


class SendBudget:
    """A purse: what the loop spends on other things and the time when it waits fill it, and sending empties it.

    Work is counted in processor time, not in the wall's: a process that is held up by others gets less done in a
    second, and sending gets its share of that. A loop that waits while there is work, for a disk or for peers that send
    only when they are answered, has no time to give away.
    """

    def __init__(self, now: LoopMoment) -> None:
        self._last = now
        self._purse_s = 0.0

    @property
    def pause_s(self) -> float:
        """How long to stay away at least before there may be enough; 0 when sending may go on."""
        return -self._purse_s / IDLE if self._purse_s < -_SETTLED_S else 0.0

    def note(self, now: LoopMoment, *, own_s: float = 0.0, is_behind: bool = False) -> None:
        """Notes what was spent on sending since the last note; the rest of that time was others', or nobody's.

        Args:
            is_behind: whether the others' work waits longer than it should.
        """
        last, self._last = self._last, now
        others_s = max(0.0, now.cpu_s - last.cpu_s - own_s)
        idle_s = max(0.0, now.wall_s - last.wall_s - (now.held_s - last.held_s) - others_s - own_s)
        earned_s = SHARE * others_s + (0.0 if is_behind else IDLE * idle_s)
        self._purse_s = min(MOST_S, self._purse_s + earned_s) - own_s

    def forgive(self) -> None:
        """Nothing is owed any more."""
        self._purse_s = max(0.0, self._purse_s)
