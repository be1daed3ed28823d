"""How much of a replay is written at once, by how long others' commits had to wait for the last piece. Pure."""

from __future__ import annotations

_AIM_S = 0.02  # for a piece: everybody's reports wait while it is written
_GROWS = 1.25
_MOST_REST_S = 0.5


class PiecePace:
    """Halves the next piece after one that took long, and lets it grow again.

    Args:
        most: bytes of what is made of the reports of a piece, which the first has.
        least: of a piece however long it takes: a sync has its time with any.
    """

    def __init__(self, most: int, least: int) -> None:
        self._most = most
        self._least = min(least, most)
        self.allowed = most

    def note(self, seconds: float) -> float:
        """A piece took so long to be written; returns how long to wait with the next, so that others get on."""
        allowed = self.allowed / 2 if seconds > _AIM_S else self.allowed * _GROWS
        self.allowed = int(min(self._most, max(self._least, allowed)))
        return min(seconds, _MOST_REST_S)
