"""Texts and other bodies from pieces and what stands between them, many at once in a matrix of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_BATCH_BYTES = 4 * 2**20  # rendered at once


class Hole(Protocol):
    """What stands between two pieces in some records."""

    def width(self) -> int:
        """The most bytes that stand there; in some records less may."""

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Writes what stands there, a row for each record, and which bytes of it count; returns how many do."""


class Column(Protocol):
    """What stands between two pieces in all records."""

    def most(self) -> int:
        """A bound on the width of any of its holes."""

    def at(self, places: NDArray[np.int64]) -> Hole:
        """What stands there in some."""


def render(pieces: Sequence[bytes], columns: Sequence[Column], places: NDArray[np.int64]) -> list[bytes]:
    """The bodies of some records. ``pieces``: one more than columns; ``places``: of the records in the columns."""
    bodies: list[bytes] = []
    step = max(1, _BATCH_BYTES // (sum(map(len, pieces)) + sum(column.most() for column in columns) + 1))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        bodies += _render(pieces, [column.at(some) for column in columns], len(some))
    return bodies


def _render(pieces: Sequence[bytes], holes: Sequence[Hole], count: int) -> list[bytes]:
    widths = [hole.width() for hole in holes]
    row = b"".join(piece + bytes(width) for piece, width in zip(pieces, [*widths, 0], strict=True))
    text = np.frombuffer(bytearray(row * count), np.uint8).reshape(count, len(row))
    counts = np.ones(text.shape, np.bool_)
    lengths = np.full(count, sum(map(len, pieces)), np.int64)
    start = 0
    for piece, hole, width in zip(pieces, holes, widths, strict=False):
        start += len(piece)
        lengths += hole.write(text[:, start : start + width], counts[:, start : start + width])
        start += width
    ends = np.cumsum(lengths)
    joined = text if int(ends[-1]) == text.size else text.ravel()[np.flatnonzero(counts)]
    data = joined.tobytes()
    return [data[before:end] for before, end in pairwise([0, *ends.tolist()])]
