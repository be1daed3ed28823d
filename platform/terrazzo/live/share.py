"""How busy the process is with other things, so that sending can give way. Pure: times come in."""

from __future__ import annotations

WINDOW_S = 0.05  # over which it is judged
BUSY = 0.3  # of a processor that others use


class Share:
    """Compares the process's processor time with what its user has spent itself.

    Args:
        now_s, cpu_s: the wall's and the process's clock.
    """

    def __init__(self, *, now_s: float, cpu_s: float) -> None:
        self.others_are_busy = False
        self._began_s = now_s
        self._cpu_began_s = cpu_s
        self._own_s = 0.0

    def spend(self, own_s: float, *, now_s: float, cpu_s: float) -> None:
        """Notes what the user has spent; after each window it is judged anew."""
        self._own_s += own_s
        passed_s = now_s - self._began_s
        if passed_s < WINDOW_S:
            return
        others_s = cpu_s - self._cpu_began_s - self._own_s
        self.others_are_busy = others_s > BUSY * passed_s
        self._began_s, self._cpu_began_s, self._own_s = now_s, cpu_s, 0.0
