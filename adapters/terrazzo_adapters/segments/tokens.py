"""Numbers in texts, found without parsing: runs of digits, with the sign and the fraction that belong to them.

Many texts are looked through at once, in arrays of their bytes. Whatever is no number here, an exponent or a date's
hyphen, stays text; that is as exact and only longer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

MARK = 4
"""The byte that stands in a skeleton for a number or a literal."""

LITERALS = (b"null", b"false", b"true")
"""What else may stand for a number; by their bytes in ``shorten`` and by their kinds: 1, 2, 3."""

MOST_DIGITS = 18
"""Of a number, so that it fits an integer of 64 bits."""

RESERVED = bytes(range(6))
"""Bytes that the texts must not have: separator, literals, marks."""

_POWERS = 10 ** np.arange(MOST_DIGITS + 1, dtype=np.int64)
_MINUS, _DOT, _ZERO = ord("-"), ord("."), ord("0")
_BEFORE_SIGN = np.zeros(256, np.bool_)
_BEFORE_SIGN[[0, *b":,[ \t\r\n"]] = True


class Tokens(NamedTuple):
    """The numbers and literals of all texts, in order.

    ``kinds``: 0 a number, otherwise the literal; ``value``: the digits as an integer, without sign and point;
    ``whole``, ``fraction``: how many digits stand before and after the point.
    """

    starts: Places
    kinds: Bytes
    minus: NDArray[np.bool_]
    value: NDArray[np.int64]
    whole: NDArray[np.int64]
    fraction: NDArray[np.int64]


class Found(NamedTuple):
    """``skeletons``: the texts with ``MARK`` for each token; ``first``: the number of each text's first token."""

    skeletons: list[bytes]
    first: Places
    tokens: Tokens


def find_tokens(texts: list[bytes]) -> Found:
    """The tokens of texts, which must have no byte of ``RESERVED``."""
    joined = b"\0" + b"\0".join(texts) + b"\0"
    for number, literal in enumerate(LITERALS, 1):
        joined = joined.replace(literal, bytes([number]))
    data = np.frombuffer(joined, np.uint8)
    numbers, kept = _numbers(data)
    tokens = _with_literals(data, numbers)
    marked = data.copy()
    marked[tokens.starts] = MARK
    kept[tokens.starts] = True
    first = np.searchsorted(tokens.starts, np.flatnonzero(data == 0)[:-1])
    return Found(marked[kept].tobytes()[1:-1].split(b"\0"), first, tokens)


def _numbers(data: Bytes) -> tuple[Tokens, NDArray[np.bool_]]:
    """The numbers, and which bytes are in none."""
    digit = (data - _ZERO) < 10  # bytes wrap around
    edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    lengths, fraction = ends - starts, _fractions(data, starts, ends)
    whole = np.flatnonzero(~fraction)
    follows = np.zeros(len(whole), np.bool_)
    follows[:-1] = np.diff(whole) == 2
    if len(whole):
        follows[-1] = whole[-1] == len(starts) - 2
    fractions = np.where(follows, lengths[np.minimum(whole + 1, len(lengths) - 1)], 0)
    kept = ~digit
    long = lengths[whole] + fractions > MOST_DIGITS
    if long.any():
        _keep(kept, starts, lengths, [*whole[long], *(whole[long & follows] + 1)])
        whole, follows, fractions = whole[~long], follows[~long], fractions[~long]
    values = _integers(data, ends, np.minimum(lengths, MOST_DIGITS))
    value = values[whole]
    if follows.any():
        parts = whole[follows] + 1
        value[follows] = value[follows] * _POWERS[fractions[follows]] + values[parts]
        kept[starts[parts] - 1] = False  # the points
    begins = starts[whole]
    minus = (data[begins - 1] == _MINUS) & _BEFORE_SIGN[data[begins - 2]]
    kinds = np.zeros(len(whole), np.uint8)
    return Tokens(begins - minus, kinds, minus, value, lengths[whole], fractions), kept


def _fractions(data: Bytes, starts: Places, ends: Places) -> NDArray[np.bool_]:
    """Which runs of digits are the fraction of the one before; of 1.2.3.4 the second and the fourth."""
    joined = np.zeros(len(starts), np.bool_)
    joined[1:] = (starts[1:] == ends[:-1] + 1) & (data[starts[1:] - 1] == _DOT)
    if not (joined[1:] & joined[:-1]).any():
        return joined
    places = np.arange(len(starts))
    return np.asarray((places - np.maximum.accumulate(np.where(joined, 0, places))) % 2 == 1)


def _keep(kept: NDArray[np.bool_], starts: Places, lengths: Places, runs: list[np.int64]) -> None:
    for run in runs:
        kept[starts[run] : starts[run] + lengths[run]] = True


def _integers(data: Bytes, ends: Places, lengths: Places) -> NDArray[np.int64]:
    """The runs of digits as integers; of longer ones the last ``MOST_DIGITS`` digits."""
    values = np.zeros(len(ends), np.int64)
    if not len(ends):
        return values
    values += data[ends - 1] - _ZERO
    for place in range(1, int(lengths.max())):
        runs = np.flatnonzero(lengths > place)
        values[runs] += (data[ends[runs] - 1 - place].astype(np.int64) - _ZERO) * 10**place
    return values


def _with_literals(data: Bytes, numbers: Tokens) -> Tokens:
    places = np.flatnonzero((data - 1) < len(LITERALS))
    if not len(places):
        return numbers
    zeros = np.zeros(len(places), np.int64)
    both = Tokens(places, data[places], zeros.astype(np.bool_), zeros, zeros, zeros)
    order = np.argsort(np.concatenate((numbers.starts, places)), kind="stable")
    ours: tuple[NDArray[Any], ...] = numbers
    theirs: tuple[NDArray[Any], ...] = both
    return Tokens(*(np.concatenate(each)[order] for each in zip(ours, theirs, strict=True)))
