"""When to try again."""

from __future__ import annotations

_FIRST_S, _MOST_S = 5, 900


def pause_us(attempts: int) -> int:
    """After so many attempts: 5 s, 20 s, 80 s, ... at most 15 minutes."""
    factor: int = 4 ** min(attempts - 1, 10)
    return min(_MOST_S, _FIRST_S * factor) * 1_000_000
