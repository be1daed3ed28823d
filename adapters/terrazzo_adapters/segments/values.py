"""One name's values in the records that carry it, of any kind: exactly what they were, and as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.column import FLAG, NUMBER, TEXT, PointColumn
from terrazzo_adapters.segments.numeric import decode_floats, decode_integers, encode_floats, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame
from terrazzo_adapters.segments.texts import NO_TEXTS, Texts, decode_texts, encode_texts, make_texts

NULL, FALSE, TRUE, INTEGER, FLOAT, STRING = range(6)
_MIXED = 255
_KINDS: dict[type, int] = {type(None): NULL, int: INTEGER, float: FLOAT, str: STRING}
_POINTS = np.array([NUMBER, FLAG, FLAG, NUMBER, NUMBER, TEXT], np.uint8)  # by kind
_LONGEST = 2**63
_TEXT_BYTES = 49  # of a text, beside its characters


class Values(NamedTuple):
    """``kinds`` has one element for each value; the others one for each value of their kind, in order."""

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]
    texts: Texts

    def __len__(self) -> int:
        return len(self.kinds)

    def at(self, places: NDArray[np.int64]) -> list[Value]:
        """The values at these places as they were."""
        for alike in (self.floats, self.integers):
            if len(alike) == len(self.kinds):
                return list(alike[places].tolist())
        return self.some(places)._objects()

    def some(self, places: NDArray[np.int64]) -> Values:
        """Some of the values."""
        rank = np.zeros(len(self.kinds), np.int64)
        for kind in (INTEGER, FLOAT, STRING):
            of_kind = self.kinds == kind
            rank[of_kind] = np.arange(np.count_nonzero(of_kind))
        kinds, ranks = self.kinds[places], rank[places]
        texts = Texts(self.texts.texts, self.texts.numbers[ranks[kinds == STRING]])
        return Values(kinds, self.integers[ranks[kinds == INTEGER]], self.floats[ranks[kinds == FLOAT]], texts)

    def longest_text(self) -> int:
        """The most characters of a text, times 4: its bytes are no more."""
        return 4 * max(map(len, self.texts.texts), default=0)

    def nbytes(self) -> int:
        """How much memory they take."""
        kinds, integers, floats, texts = self
        arrays = kinds.nbytes + integers.nbytes + floats.nbytes + texts.numbers.nbytes
        return arrays + sum(_TEXT_BYTES + len(each) for each in texts.texts)

    def _objects(self) -> list[Value]:
        objects: NDArray[Any] = np.full(len(self.kinds), None, object)
        objects[self.kinds == FALSE] = False
        objects[self.kinds == TRUE] = True
        objects[self.kinds == INTEGER] = self.integers.tolist()
        objects[self.kinds == FLOAT] = self.floats.tolist()
        objects[self.kinds == STRING] = [self.texts.texts[number] for number in self.texts.numbers.tolist()]
        return list(objects.tolist())

    def points(self, times_us: NDArray[np.int64]) -> PointColumn:
        """The values as points at the times (UTC microseconds) of the records that carry them."""
        if len(self.floats) == len(self.kinds):
            column = PointColumn(times_us, np.zeros(len(times_us), np.uint8), self.floats, [])
        else:
            numbers = np.full(len(self.kinds), np.nan)
            numbers[self.kinds == FALSE] = 0.0
            numbers[self.kinds == TRUE] = 1.0
            numbers[self.kinds == INTEGER] = self.integers
            numbers[self.kinds == FLOAT] = self.floats
            numbers[self.kinds == STRING] = self.texts.numbers
            column = PointColumn(times_us, _POINTS[self.kinds], numbers, self.texts.texts)
        return column.where(np.isfinite(column.numbers))


def make_values(values: Sequence[Value]) -> Values:
    """The values of one name. Integers beyond 64 bits become floats, as charts have them."""
    types = set(map(type, values))
    if types == {float}:
        return Values(np.full(len(values), FLOAT, np.uint8), _NO_INTEGERS, np.array(values, np.float64), NO_TEXTS)
    if types == {int} and (integers := _integers(values)) is not None:
        return Values(np.full(len(values), INTEGER, np.uint8), integers, _NO_FLOATS, NO_TEXTS)
    plain = [_plain(value) for value in values] if int in types else values
    kinds = np.array([_kind(value) for value in plain], np.uint8)
    return Values(
        kinds,
        np.array([value for value in plain if type(value) is int], np.int64),
        np.array([value for value in plain if type(value) is float], np.float64),
        make_texts([value for value in plain if type(value) is str]),
    )


_NO_INTEGERS, _NO_FLOATS = np.zeros(0, np.int64), np.zeros(0, np.float64)


def _integers(values: Sequence[Value]) -> NDArray[np.int64] | None:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return None


def _plain(value: Value) -> Value:
    if type(value) is not int or -_LONGEST <= value < _LONGEST:
        return value
    try:
        return float(value)
    except OverflowError:
        return None


def _kind(value: Value) -> int:
    return _KINDS[type(value)] if type(value) is not bool else TRUE if value else FALSE


def frozen_values(values: Values) -> Values:
    """The same, which nobody can change."""
    for array in (values.kinds, values.integers, values.floats, values.texts.numbers):
        array.flags.writeable = False
    return values


class _Stored(msgspec.Struct, array_like=True):
    """``kind``: that of all values, or 255 where they differ."""

    count: int
    kind: int
    kinds: bytes
    integers: bytes
    floats: bytes
    texts: bytes


_decoder = msgspec.msgpack.Decoder(_Stored)


def encode_values(values: Values, packing: Packing) -> bytes:
    """The values as bytes; at least one."""
    kinds = values.kinds
    alike = bool((kinds == kinds[0]).all())
    return msgspec.msgpack.encode(
        _Stored(
            count=len(kinds),
            kind=int(kinds[0]) if alike else _MIXED,
            kinds=b"" if alike else encode_frame(kinds.tobytes(), packing),
            integers=encode_integers(values.integers, packing),
            floats=encode_floats(values.floats, packing),
            texts=encode_texts(values.texts, packing),
        )
    )


def decode_values(data: bytes, most: int) -> Values:
    """The reverse of ``encode_values``.

    Raises:
        Damaged: they are not values, or more than ``most``.
    """
    try:
        stored = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"values: {error}") from error
    if not 0 < stored.count <= most:
        raise Damaged(f"values: {stored.count} of at most {most}")
    kinds = _kinds(stored)
    counts = np.bincount(kinds, minlength=STRING + 1)
    if len(counts) > STRING + 1:
        raise Damaged("values: an unknown kind")
    return Values(
        kinds,
        decode_integers(stored.integers, int(counts[INTEGER])),
        decode_floats(stored.floats, int(counts[FLOAT])),
        decode_texts(stored.texts, int(counts[STRING])),
    )


def _kinds(stored: _Stored) -> NDArray[np.uint8]:
    if stored.kind != _MIXED:
        if not 0 <= stored.kind <= STRING:
            raise Damaged(f"values: kind {stored.kind}")
        return np.full(stored.count, stored.kind, np.uint8)
    kinds = np.frombuffer(decode_frame(stored.kinds, stored.count), np.uint8)
    if len(kinds) != stored.count:
        raise Damaged(f"values: {len(kinds)} kinds where {stored.count} are due")
    return kinds
