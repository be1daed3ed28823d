"""Numbers in a hole of a template: as a column, and as they were written.

Numbers are scaled integers. How many digits a number has follows from its value in the usual notations: a fixed number
of decimals, or as few as it needs (at least one, as Python and Java write floats, or none, as JavaScript does). Else
the numbers of digits are columns of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame
from terrazzo_adapters.segments.tokens import LITERALS, MOST_DIGITS, Tokens

_FIXED, _AT_LEAST_ONE, _AS_FEW, _GIVEN = range(4)
_POWERS = 10 ** np.arange(MOST_DIGITS + 1, dtype=np.int64)
_TIME_UNITS = (1, 1_000, 1_000_000)
_FOUR = np.array([b"%04d" % number for number in range(10_000)]).view(np.uint32)
"""Four digits each, as one number to gather by."""

_EXACT = 2**53  # up to here a float tells every whole number
_LONGEST_LITERAL = max(map(len, LITERALS))

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class Numbers(NamedTuple):
    """The numbers and literals of one hole.

    ``value``: without the sign, scaled to ``decimals``; ``whole``, ``fraction``: digits before and after the point.
    """

    kinds: NDArray[np.uint8]
    minus: NDArray[np.bool_]
    value: NDArray[np.int64]
    whole: NDArray[np.int64]
    fraction: NDArray[np.int64]
    decimals: int

    def most(self) -> int:
        """A bound on the bytes that stand there in any record."""
        return 2 * MOST_DIGITS + 2

    def at(self, places: NDArray[np.int64]) -> Numbers:
        """Some of them."""
        kinds, minus, value, whole, fraction, decimals = self
        return Numbers(kinds[places], minus[places], value[places], whole[places], fraction[places], decimals)

    def is_plain(self) -> bool:
        """Whether none has a zero too many in front."""
        return bool(np.array_equal(self.whole, _whole_digits(self.value, self.decimals)))

    def width(self) -> int:
        """The most bytes that a text has in the hole; others have less."""
        signs, whole, fraction = self._widths()
        width = signs + whole + (1 + fraction if fraction else 0)
        return max(width, _LONGEST_LITERAL) if self.kinds.any() else width

    def _widths(self) -> tuple[int, int, int]:
        return int(self.minus.any()), int(self.whole.max()), int(self.fraction.max())

    def write(self, text: Bytes, counts: Flags) -> NDArray[np.int64]:
        """Writes what stands in the hole, a row each, and which bytes of it count; returns how many do."""
        signs, whole, fraction = self._widths()
        scale = int(_POWERS[self.decimals])
        integers = self.value // scale if self.decimals else self.value
        if signs:
            text[:, 0], counts[:, 0] = ord("-"), self.minus
        self._write_whole(text[:, signs:], counts[:, signs:], integers, whole)
        if fraction:
            rest = self.value - integers * scale
            self._write_fraction(text[:, signs + whole :], counts[:, signs + whole :], rest, fraction)
        lengths = self.minus + self.whole + self.fraction + (self.fraction > 0)
        if self.kinds.any():
            counts[:, signs + whole + (1 + fraction if fraction else 0) :] = False
            self._write_literals(text, counts, lengths)
        return lengths

    def _write_whole(self, text: Bytes, counts: Flags, integers: NDArray[np.int64], whole: int) -> None:
        digits, least = _digits(integers, whole), int(self.whole.min())
        for place in range(whole):
            text[:, place] = digits[:, place]
            if whole - place > least:
                counts[:, place] = self.whole >= whole - place

    def _write_fraction(self, text: Bytes, counts: Flags, rest: NDArray[np.int64], fraction: int) -> None:
        digits, least = _digits(rest, self.decimals), int(self.fraction.min())
        text[:, 0] = ord(".")
        if not least:
            counts[:, 0] = self.fraction > 0
        for place in range(fraction):
            text[:, place + 1] = digits[:, place]
            if place >= least:
                counts[:, place + 1] = self.fraction > place

    def _write_literals(self, text: Bytes, counts: Flags, lengths: NDArray[np.int64]) -> None:
        for kind, literal in enumerate(LITERALS, 1):
            rows = np.flatnonzero(self.kinds == kind)
            text[rows, : len(literal)] = np.frombuffer(literal, np.uint8)
            counts[rows] = np.arange(text.shape[1]) < len(literal)
            lengths[rows] = len(literal)


def _digits(values: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """The last ``width`` decimal digits of each, as text."""
    groups = (width + 3) // 4
    text = np.empty((len(values), groups), np.uint32)
    for group in range(groups - 1, 0, -1):
        rest = values // 10_000
        text[:, group] = _FOUR[values - rest * 10_000]
        values = rest
    if groups:
        text[:, 0] = _FOUR[values % 10_000 if values.max(initial=0) >= 10_000 else values]
    return text.view(np.uint8)[:, 4 * groups - width :]


def _whole_digits(value: NDArray[np.int64], decimals: int) -> NDArray[np.int64]:
    """How many digits a number has before its point, without a zero too many."""
    digits, highest = np.ones(len(value), np.int64), value.max(initial=0)
    for power in _POWERS[decimals + 1 :]:
        if power > highest:
            break
        digits += value >= power
    return digits


def _fewest(value: NDArray[np.int64], decimals: int, least: int) -> NDArray[np.int64]:
    """How many decimals a number needs, at least ``least``."""
    needed = np.full(len(value), decimals, np.int64)
    for place in range(1, decimals - least + 1):
        scale = _POWERS[place]
        ends = value // scale * scale == value
        if not ends.any():
            break
        needed[ends] = decimals - place
    return needed


def make_numbers(tokens: Tokens, places: NDArray[np.int64]) -> Numbers:
    """The numbers of one hole, from those of all texts.

    Raises:
        ValueError: they have too many digits for one scale.
    """
    kinds = tokens.kinds[places]
    if kinds.any():  # a literal has the digits of the number before it, so that they take no room
        numbers = np.flatnonzero(kinds == 0)
        before = np.searchsorted(numbers, np.arange(len(kinds)), "right") - 1
        places = places[numbers[np.maximum(before, 0)]] if len(numbers) else places
    value, fraction, whole = tokens.value[places], tokens.fraction[places], tokens.whole[places]
    decimals = int(fraction.max())
    if (fraction != decimals).any():
        if int(whole.max()) + decimals > MOST_DIGITS:
            raise ValueError("numbers of too many digits for one scale")
        value = value * _POWERS[decimals - fraction]
    return Numbers(kinds, tokens.minus[places], value, np.maximum(whole, 1), fraction, decimals)


class _Stored(msgspec.Struct, array_like=True):
    """``values``: empty where they are the records' times by ``time_unit``, in microseconds."""

    decimals: int
    notation: int
    time_unit: int
    kinds: bytes
    minus: bytes
    values: bytes
    whole: bytes
    fraction: bytes


_decoder = msgspec.msgpack.Decoder(_Stored)


def encode_numbers(numbers: Numbers, times_us: NDArray[np.int64], packing: Packing) -> bytes:
    """The numbers as bytes; ``times_us``: of the same records."""
    value, decimals = numbers.value, numbers.decimals
    notation = _notation(numbers)
    unit = _time_unit(numbers, times_us)
    lost = numbers.minus & (value == 0)
    return msgspec.msgpack.encode(
        _Stored(
            decimals=decimals,
            notation=notation,
            time_unit=unit,
            kinds=encode_frame(numbers.kinds.tobytes(), packing) if numbers.kinds.any() else b"",
            minus=encode_frame(np.packbits(lost).tobytes(), packing) if lost.any() else b"",
            values=b"" if unit else encode_integers(np.where(numbers.minus, -value, value), packing),
            whole=b"" if numbers.is_plain() else encode_integers(numbers.whole, packing),
            fraction=encode_integers(numbers.fraction, packing) if notation == _GIVEN else b"",
        )
    )


def _notation(numbers: Numbers) -> int:
    fraction, value, decimals = numbers.fraction, numbers.value, numbers.decimals
    if (fraction == decimals).all():
        return _FIXED
    if np.array_equal(fraction, _fewest(value, decimals, 1)):
        return _AT_LEAST_ONE
    return _AS_FEW if np.array_equal(fraction, _fewest(value, decimals, 0)) else _GIVEN


def _time_unit(numbers: Numbers, times_us: NDArray[np.int64]) -> int:
    if numbers.decimals or numbers.minus.any() or numbers.value[0] < 1_000_000:
        return 0
    return next((unit for unit in _TIME_UNITS if np.array_equal(times_us // unit, numbers.value)), 0)


class NumberColumn(NamedTuple):
    """The numbers and literals of one hole as they are stored; the rest is worked out for those that are asked for.

    ``whole``, ``fraction``: None where they follow.
    """

    kinds: NDArray[np.uint8]
    minus: NDArray[np.bool_]
    value: NDArray[np.int64]
    whole: NDArray[np.int64] | None
    fraction: NDArray[np.int64] | None
    decimals: int
    notation: int

    def most(self) -> int:
        """A bound on the bytes that stand there in any record."""
        return 2 * MOST_DIGITS + 2

    def at(self, places: NDArray[np.int64]) -> Numbers:
        """Some of them."""
        value = self.value[places]
        return Numbers(
            self.kinds[places],
            self.minus[places],
            value,
            _whole_digits(value, self.decimals) if self.whole is None else self.whole[places],
            _by_notation(value, self.decimals, self.notation) if self.fraction is None else self.fraction[places],
            self.decimals,
        )

    def floats(self) -> NDArray[np.float64]:
        """The numbers as JSON reads them, for literals something."""
        numbers = self.value / 10.0**self.decimals
        large = np.flatnonzero(self.value > _EXACT) if self.decimals else ()
        for place in large:  # Python divides integers exactly
            numbers[place] = int(self.value[place]) / 10**self.decimals
        if self.minus.any():
            fraction = self.at(np.arange(len(numbers))).fraction
            numbers = np.where(self.minus & ((self.value != 0) | (fraction > 0)), -numbers, numbers)  # -0 is an integer
        return numbers


def decode_numbers(data: bytes, times_us: NDArray[np.int64]) -> NumberColumn:
    """The reverse of ``encode_numbers``.

    Raises:
        Damaged: they are not the numbers of as many records.
    """
    try:
        stored = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"numbers: {error}") from error
    count, decimals = len(times_us), stored.decimals
    if not 0 <= decimals <= MOST_DIGITS or stored.time_unit not in (0, *_TIME_UNITS):
        raise Damaged("numbers: decimals or unit")
    if not _FIXED <= stored.notation <= _GIVEN or (stored.notation == _GIVEN and not stored.fraction):
        raise Damaged(f"numbers: notation {stored.notation}")
    signed = times_us // stored.time_unit if stored.time_unit else decode_integers(stored.values, count)
    value, minus = np.abs(signed), signed < 0
    if len(value) and not 0 <= value.min() <= value.max() < _POWERS[MOST_DIGITS]:
        raise Damaged("numbers: too large")
    if stored.minus:
        minus |= _bits(decode_frame(stored.minus, count), count)
    whole = _lengths(stored.whole, count, 1, MOST_DIGITS)
    fraction = _lengths(stored.fraction, count, 0, decimals)
    return NumberColumn(_kinds(stored.kinds, count), minus, value, whole, fraction, decimals, stored.notation)


def _lengths(data: bytes, count: int, least: int, most: int) -> NDArray[np.int64] | None:
    """Numbers of digits; they say how much room the texts take."""
    if not data:
        return None
    lengths = decode_integers(data, count)
    if len(lengths) and not least <= lengths.min() <= lengths.max() <= most:
        raise Damaged("numbers: digits")
    return lengths


def _kinds(frame: bytes, count: int) -> NDArray[np.uint8]:
    if not frame:
        return np.zeros(count, np.uint8)
    kinds = np.frombuffer(decode_frame(frame, count), np.uint8)
    if len(kinds) != count or (len(kinds) and kinds.max() > len(LITERALS)):
        raise Damaged("numbers: kinds")
    return kinds


def _bits(packed: bytes, count: int) -> NDArray[np.bool_]:
    if len(packed) != (count + 7) // 8:
        raise Damaged("numbers: signs")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(np.bool_)


def _by_notation(value: NDArray[np.int64], decimals: int, notation: int) -> NDArray[np.int64]:
    if notation == _FIXED:
        return np.full(len(value), decimals, np.int64)
    return _fewest(value, decimals, 1 if notation == _AT_LEAST_ONE else 0)
