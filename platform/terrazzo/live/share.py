"""How much of the event loop's work sending may be while there is other work. Pure: times come in."""

from __future__ import annotations

SHARE = 0.03  # of the loop's processor time, while it has much else to do
SLICE_S = 0.002  # spent at once before others have their turn
LONGEST_S = 0.25  # away by the wall's clock, so that something is sent even where other processes take all processors

_SETTLED_S = SLICE_S / 20


class Share:
    """A bucket: what is spent fills it, and what others spend empties it at ``SHARE``.

    Counted in the loop's processor time, not in the wall's: a process that is held up by others gets less done in a
    second, and sending gets its share of that.
    """

    def __init__(self, *, now_s: float) -> None:
        self._debt_s = 0.0
        self._since_s = now_s

    @property
    def is_used_up(self) -> bool:
        """Whether others should have their turn now."""
        return self._debt_s >= SLICE_S

    def spend(self, own_s: float, *, now_s: float) -> None:
        """Notes what was spent on sending until now; the rest of the time since the last note was others'."""
        others_s = now_s - self._since_s - own_s
        self._debt_s = max(0.0, self._debt_s - others_s * SHARE) + own_s
        self._since_s = now_s

    def pause_s(self, turn_s: float) -> float:
        """How long to stay away, given how long one turn of the others took by the wall's clock; 0 when it is settled.

        A turn shorter than a slice says that the loop has time to spare.
        """
        if turn_s <= SLICE_S or self._debt_s <= _SETTLED_S:
            self.forgive()
        return self._debt_s / SHARE

    def forgive(self) -> None:
        """Nothing is owed any more."""
        self._debt_s = 0.0
