"""How a campaign's terminals are divided into waves. Pure."""

from __future__ import annotations

from typing import Any

MOST_WAVES = 20


def check_waves(waves: Any) -> None:
    """Checks a campaign's waves: whole percentages of all terminals, one for each wave, that add up to 100.

    Raises:
        ValueError: says what is wrong.
    """
    if not isinstance(waves, list) or not 1 <= len(waves) <= MOST_WAVES:
        raise ValueError(f"expected an array of 1 to {MOST_WAVES} per cents")
    for position, share in enumerate(waves, 1):
        if isinstance(share, bool) or not isinstance(share, int) or not 1 <= share <= 100:
            raise ValueError(f"element {position}: expected a whole per cent from 1 to 100")
    if sum(waves) != 100:
        raise ValueError(f"the per cents add up to {sum(waves)}, not to 100")


def wave_numbers(count: int, waves: list[int]) -> list[int]:
    """The wave of each of ``count`` terminals, from 1; the first has at least one terminal."""
    numbers: list[int] = []
    share = 0
    for number, percent in enumerate(waves, 1):
        share += percent
        until = -(-count * share // 100)
        numbers += [number] * (until - len(numbers))
    return numbers
