"""How much one commit may hold, so that whoever waits for it doesn't wait long for what others have sent. Pure."""

from __future__ import annotations

_AIM_S = 0.025  # what its bytes may add to a commit
_LEAST = 256 * 1024  # bytes
_TELLING = 64 * 1024  # bytes from which on a commit's time says something about them
_WEIGHT = 0.2  # of the last commit in the mean
_FORGETS = 1.01  # how the least time of a commit grows with each one


class CommitPace:
    """Follows how long commits take for what they hold; the disk, or the server, says how much is good.

    What a commit takes in any case (a sync, a round trip) isn't counted against its bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._least_s = float("inf")
        self._seconds_per_byte = 0.0

    @property
    def allowed(self) -> int:
        """The bytes that the next commit may hold."""
        if self._seconds_per_byte * self._most <= _AIM_S:
            return self._most
        return min(self._most, max(_LEAST, int(_AIM_S / self._seconds_per_byte)))

    def expected_s(self, size: int) -> float:
        """What so many bytes will add to a commit."""
        return self._seconds_per_byte * size

    def note(self, size: int, seconds: float) -> float:
        """A commit of so many bytes took so long; returns what of that was for its bytes."""
        self._least_s = min(self._least_s * _FORGETS, seconds)
        if size >= _TELLING:
            last = (seconds - self._least_s) / size
            self._seconds_per_byte += _WEIGHT * (last - self._seconds_per_byte)
        return seconds - self._least_s
