"""One name's figures of many stretches of stored history in one piece, so that a long question doesn't put it together.

What a strip is made of are *stones*, in order of time: the figures of one block of records that never changes, known by
a mark that no other block has. Whoever asks says which stones there are now; a strip is used as far as it has these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from terrazzo.ports.store import Figures

_STONE_BYTES = 150  # of Python's own: mark, end, offset


class Stone(NamedTuple):
    """``mark``: of the block; ``end_us``: the time of its last record (UTC microseconds), which orders stones."""

    mark: bytes
    end_us: int
    figures: Figures


class Strip(NamedTuple):
    """Stones laid together. ``offsets``: where the figures of each begin, and where the last one's end."""

    marks: tuple[bytes, ...]
    ends_us: tuple[int, ...]
    offsets: tuple[int, ...]
    figures: Figures

    def find(self, marks: Sequence[bytes], first_end_us: int) -> Figures | None:
        """The figures of stones in a row, the first of which ends at a time; None if others are there, or not all."""
        start = bisect_left(self.ends_us, first_end_us)
        stop = start + len(marks)
        return self._cut(start, stop) if self.marks[start:stop] == tuple(marks) else None

    def stones(self) -> list[Stone]:
        """What it is made of."""
        return [
            Stone(mark, end_us, self._cut(place, place + 1))
            for place, (mark, end_us) in enumerate(zip(self.marks, self.ends_us, strict=True))
        ]

    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(array.nbytes for array in self.figures[1:]) + _STONE_BYTES * len(self.marks)

    def _cut(self, start: int, stop: int) -> Figures:
        part = slice(self.offsets[start], self.offsets[stop])
        kind, starts_us, counts, sums, values, times_us = self.figures
        return Figures(kind, starts_us[part], counts[part], sums[part], values[:, part], times_us[:, part])


def lay(stones: Sequence[Stone]) -> Strip | None:
    """The stones in one piece; None where some have numbers and others booleans. Those without figures fit any."""
    filled = [stone.figures for stone in stones if len(stone.figures.starts_us)]
    if len({figures.kind for figures in filled}) > 1:
        return None
    arrays = [
        np.concatenate(each, axis=-1) for each in list(zip(*(stone.figures for stone in stones), strict=True))[1:]
    ]
    for array in arrays:
        array.flags.writeable = False
    return Strip(
        tuple(stone.mark for stone in stones),
        tuple(stone.end_us for stone in stones),
        tuple(accumulate((len(stone.figures.starts_us) for stone in stones), initial=0)),
        Figures(filled[0].kind if filled else 0, *arrays),
    )


def beside(strip: Strip | None, stones: Iterable[Stone]) -> list[Stone]:
    """The stones, which are in a row, among those of a strip that lie before and behind them."""
    row = list(stones)
    others = strip.stones() if strip is not None else []
    before = [each for each in others if each.end_us < row[0].end_us]
    return [*before, *row, *(each for each in others if each.end_us > row[-1].end_us)]
