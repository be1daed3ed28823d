"""How much of the event loop's work sending may be while there is other work. Pure: times come in."""

from __future__ import annotations

SHARE = 0.05  # of what the loop spends on other things, while it is busy with them
BUSY = 0.2  # of the wall's time that sending leaves; others who use more are busy
WINDOW_S = 0.05  # over which that is judged
SLICE_S = 0.002  # spent at once before others have their turn
LONGEST_S = 0.25  # away, so that something is sent even where other processes take all processors

_SETTLED_S = SLICE_S / 20


class Share:
    """A bucket: what is spent fills it, and what others spend empties it at ``SHARE``.

    Counted in the loop's processor time, not in the wall's: a process that is held up by others gets less done in a
    second, and sending gets its share of that.

    Args:
        cpu_s, wall_s: the processor time of the loop's thread, and a monotonic clock.
    """

    def __init__(self, *, cpu_s: float, wall_s: float) -> None:
        self._debt_s = 0.0
        self._cpu_s = cpu_s
        self._others_are_busy = False
        self._others_s = self._own_s = 0.0  # in the window
        self._window_began_s = wall_s

    @property
    def is_used_up(self) -> bool:
        """Whether others should have their turn now."""
        return self._debt_s >= SLICE_S

    def spend(self, own_s: float, *, cpu_s: float) -> None:
        """Notes what was spent on sending until now; the rest of the time since the last note was others'."""
        others_s = cpu_s - self._cpu_s - own_s
        self._others_s += others_s
        self._own_s += own_s
        self._debt_s = max(0.0, self._debt_s - others_s * SHARE) + own_s
        self._cpu_s = cpu_s

    def pause_s(self, *, wall_s: float) -> float:
        """How long to stay away; 0 when all is paid back, or others have so little to do that nothing is owed."""
        passed_s = wall_s - self._window_began_s
        if passed_s >= WINDOW_S:
            self._others_are_busy = self._others_s > BUSY * (passed_s - self._own_s)
            self._others_s = self._own_s = 0.0
            self._window_began_s = wall_s
        if not self._others_are_busy or self._debt_s <= _SETTLED_S:
            self.forgive()
        return self._debt_s / SHARE

    def forgive(self) -> None:
        """Nothing is owed any more."""
        self._debt_s = 0.0
