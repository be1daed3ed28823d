"""Reproducible noise: the same seed, name and time give the same value, in any order, on any machine."""

from __future__ import annotations

import hashlib

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MOST_KNOWN = 16  # values of a stream: times that follow one another ask for the same few


class Noise:
    """A named stream of pseudo-random values, each computed from its index or time."""

    __slots__ = ("_key", "_known")

    def __init__(self, seed: int, *names: str) -> None:
        text = "\x1f".join((str(seed), *names)).encode()
        self._key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
        self._known: dict[int, float] = {}

    def uniform(self, index: int = 0) -> float:
        """A value in [0, 1) for an index (splitmix64)."""
        known = self._known.get(index)
        return self._computed(index) if known is None else known

    def _computed(self, index: int) -> float:
        x = (self._key + index * _GOLDEN) & _MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[index] = value = ((x ^ (x >> 31)) >> 11) / (1 << 53)
        return value

    def between(self, low: float, high: float, index: int = 0) -> float:
        """A value in [low, high) for an index."""
        return low + (high - low) * self.uniform(index)

    def smooth(self, time_s: float, period_s: float) -> float:
        """A value in [-1, 1] that changes smoothly, over about ``period_s`` seconds."""
        cell, part = divmod(time_s / period_s, 1.0)
        left, right = self.uniform(int(cell)), self.uniform(int(cell) + 1)
        part = part * part * (3 - 2 * part)
        return 2 * (left + (right - left) * part) - 1
