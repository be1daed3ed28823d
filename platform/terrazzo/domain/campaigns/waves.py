"""How a campaign's terminals are divided into waves. Pure."""

from __future__ import annotations

from typing import Any

from terrazzo.reasons import say

MOST_WAVES = 20


def check_waves(waves: Any) -> None:
    """Checks a campaign's waves: whole percentages of all terminals, one for each wave, that add up to 100.

    Raises:
        ValueError: says what is wrong.
    """
    if not isinstance(waves, list) or not 1 <= len(waves) <= MOST_WAVES:
        raise ValueError(say("expected_waves", most=MOST_WAVES))
    for position, share in enumerate(waves, 1):
        if isinstance(share, bool) or not isinstance(share, int) or not 1 <= share <= 100:
            raise ValueError(say("wave_expected_per_cent", element=position))
    if sum(waves) != 100:
        raise ValueError(say("waves_not_100", sum=sum(waves)))


def wave_numbers(count: int, waves: list[int]) -> list[int]:
    """The wave of each of ``count`` terminals, from 1; the first has at least one terminal."""
    numbers: list[int] = []
    share = 0
    for number, percent in enumerate(waves, 1):
        share += percent
        until = -(-count * share // 100)
        numbers += [number] * (until - len(numbers))
    return numbers
