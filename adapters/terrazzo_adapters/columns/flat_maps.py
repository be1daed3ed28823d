"""Flat MessagePack maps, thousands at once: where in them the values of some names are, and these as columns.

All maps are walked together: a step takes the next name and value of each, with some ten operations of numpy whatever
number of maps there are. Only values that are asked for are looked at; that other texts are UTF-8 nobody checks, as
whoever stored them has. What is no flat map of plain values (nested ones, arrays, binary, names or texts of 256 bytes
and more) is left to ``points``, and so is what isn't well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.column import FLAG, NUMBER, TEXT, PointColumn

Places = NDArray[np.int64]

_BEHIND = bytes(300)  # what a step may look at beyond the end: a name and a value's first bytes
_WORD = 8
_SHORT_TEXT, _TEXT_8, _MAP_16 = 0xA0, 0xD9, 0xDE
_NIL, _FALSE, _TRUE, _DOUBLE = 0xC0, 0xC2, 0xC3, 0xCB
_DOUBLE_BYTES = 9
_LONGEST_SHORT = 31  # bytes of a text whose length is in its first byte
_NUMBERS = {0xCA: ">f4", _DOUBLE: ">f8", 0xCC: "u1", 0xCD: ">u2", 0xCE: ">u4", 0xCF: ">u8"}
_NUMBERS |= {0xD0: "i1", 0xD1: ">i2", 0xD2: ">i4", 0xD3: ">i8"}


def _sizes(*, of_names: bool) -> NDArray[np.int64]:
    """How many bytes there are by the first one; 0: it isn't known by that."""
    sizes = np.zeros(256, np.int64)
    sizes[_SHORT_TEXT : _SHORT_TEXT + _LONGEST_SHORT + 1] = np.arange(1, _LONGEST_SHORT + 2)
    if not of_names:
        sizes[:0x80] = sizes[0xE0:] = sizes[[_NIL, _FALSE, _TRUE]] = 1
        for first, form in _NUMBERS.items():
            sizes[first] = 1 + np.dtype(form).itemsize
    return sizes


_NAME_SIZES, _VALUE_SIZES = _sizes(of_names=True), _sizes(of_names=False)


class FlatMaps(NamedTuple):
    """Some maps one after the other.

    ``places``: of each name where in ``data`` each map's value begins; 0: it has none.
    """

    data: bytes
    places: Sequence[Places]

    def carrying(self) -> NDArray[np.bool_]:
        """Which maps carry at least one of the names, be it null."""
        found: NDArray[np.bool_] = self.places[0] != 0
        for places in self.places[1:]:
            found |= places != 0
        return found

    def column(self, number: int, times_us: NDArray[np.int64]) -> PointColumn:
        """The points of one name. ``times_us``: the maps' times.

        Raises:
            UnicodeDecodeError: a text is none.
        """
        places = self.places[number]
        there = np.flatnonzero(places)
        if len(there) < len(places):
            places, times_us = places[there], times_us[there]
        firsts = np.frombuffer(self.data, np.uint8)[places]
        if (firsts == _DOUBLE).all():
            numbers = _at(self.data, ">f8", places + 1)
            column = PointColumn(times_us, np.full(len(numbers), NUMBER, np.uint8), numbers, [])
        else:
            column = self._mixed(firsts, places, times_us)
        return column.where(np.isfinite(column.numbers))

    def _mixed(self, firsts: NDArray[np.uint8], places: Places, times_us: NDArray[np.int64]) -> PointColumn:
        kinds, numbers = np.full(len(places), NUMBER, np.uint8), np.full(len(places), np.nan)
        is_text = ((firsts & 0xE0) == _SHORT_TEXT) | (firsts == _TEXT_8)
        small = (firsts < 0x80) | (firsts >= 0xE0)
        numbers[small] = firsts[small].astype(np.int8)
        flags = (firsts == _FALSE) | (firsts == _TRUE)
        numbers[flags], kinds[flags] = firsts[flags] == _TRUE, FLAG
        for first, form in _NUMBERS.items():
            some = firsts == first
            if some.any():
                numbers[some] = _at(self.data, form, places[some] + 1)
        texts: dict[str, int] = {}
        if is_text.any():
            kinds[is_text] = TEXT
            numbers[is_text] = [texts.setdefault(self._text(place), len(texts)) for place in places[is_text].tolist()]
        return PointColumn(times_us, kinds, numbers, list(texts))

    def _text(self, place: int) -> str:
        first = self.data[place]
        start, size = (place + 2, self.data[place + 1]) if first == _TEXT_8 else (place + 1, first & _LONGEST_SHORT)
        return self.data[start : start + size].decode()


def _view(data: bytes, form: str) -> NDArray[Any]:
    """What begins at each byte."""
    kind = np.dtype(form)
    return np.ndarray((len(data) - kind.itemsize + 1,), kind, data, strides=(1,))


def _at(data: bytes, form: str, places: Places) -> NDArray[np.float64]:
    return _view(data, form)[places].astype(np.float64)


class _Name:
    """A name as it stands in a map, in words of eight bytes."""

    def __init__(self, name: str) -> None:
        text = msgspec.msgpack.encode(name)
        whole = text + bytes(-len(text) % _WORD)
        mask = b"\xff" * len(text) + bytes(len(whole) - len(text))
        self._words = np.frombuffer(whole, "<u8")
        self._masks = np.frombuffer(mask, "<u8")
        self.first, self.last, self.offset = text[0], text[-1], len(text) - 1

    def among(self, words: NDArray[np.uint64], places: Places) -> NDArray[np.intp]:
        """At which of the places it begins."""
        found = np.flatnonzero((words[places] & self._masks[0]) == self._words[0])
        for number in range(1, len(self._words)):
            further = words[places[found] + _WORD * number]
            found = found[(further & self._masks[number]) == self._words[number]]
        return found


def find_values(bodies: Sequence[bytes], keys: Sequence[str], *, least: int = 0) -> FlatMaps | None:
    """Where the values of some names are; None: not all bodies are flat maps of plain values, or it isn't worth it.

    Args:
        least: maps that a step must have on average: fewer, or few with many names, are faster each for itself.
    """
    try:
        names = [_Name(key) for key in keys]
    except UnicodeEncodeError:  # a lone surrogate
        return None
    data = b"".join((*bodies, _BEHIND))
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    ends = sizes.cumsum()
    walk = _Walk(data, ends - sizes, ends)
    if not sizes.all() or not walk.begin(least):
        return None
    found = [np.zeros(len(bodies), np.int64) for _ in keys]
    return FlatMaps(data, found) if walk.go(names, found) else None


class _Walk:
    """Goes through all maps of ``data``; ``starts`` and ``ends``: where each begins and ends."""

    def __init__(self, data: bytes, starts: Places, ends: Places) -> None:
        self._octets, self._words = np.frombuffer(data, np.uint8), _view(data, "<u8")
        self._at, self._ends = starts, ends
        self._counts = np.zeros(0, np.int64)

    def begin(self, least: int) -> bool:
        """Reads how many names each map has; whether all are maps, and steps have ``least`` of them on average."""
        firsts = self._octets[self._at]
        self._counts = (firsts & 15).astype(np.int64)
        long = firsts == _MAP_16
        at = self._at + 1
        if long.any():
            high = at[long]
            self._counts[long] = self._octets[high].astype(np.int64) << 8 | self._octets[high + 1]
            at[long] += 2
        self._at = at
        is_worth = self._counts.sum() >= least * self._counts.max()
        return bool(is_worth and (long | (firsts >> 4 == 8)).all())

    def go(self, names: Sequence[_Name], found: Sequence[Places]) -> bool:
        """Notes where the names' values are; whether all maps are plain and whole. Of a name twice the last counts."""
        least = int(self._counts.min())
        for step in range(int(self._counts.max())):
            if step < least:
                at = self._step(self._at, self._ends, names, found, None)
            else:
                which = np.flatnonzero(self._counts > step)
                at = self._step(self._at[which], self._ends[which], names, found, which)
            if at is None:
                return False
            if step < least:
                self._at = at
            else:
                self._at[which] = at
        return bool((self._at == self._ends).all())

    def _step(
        self,
        at: Places,
        ends: Places,
        names: Sequence[_Name],
        found: Sequence[Places],
        which: NDArray[np.intp] | None,
    ) -> Places | None:
        """The next name and value of some maps; ``which``: their numbers, None: all. None where one is not plain."""
        if (at >= ends).any():
            return None
        firsts = self._octets[at]
        values_at = self._behind_names(at, firsts)
        if values_at is None:
            return None
        lasts: dict[int, NDArray[np.uint8]] = {}  # by their offsets: few maps have the same first and last byte there
        for name, places in zip(names, found, strict=True):
            if name.offset not in lasts:
                lasts[name.offset] = self._octets[at + name.offset]
            hits = np.flatnonzero((firsts == name.first) & (lasts[name.offset] == name.last))
            if len(hits):
                hits = hits[name.among(self._words, at[hits])]
                places[hits if which is None else which[hits]] = values_at[hits]
        return self._behind_values(values_at)

    def _behind_names(self, at: Places, firsts: NDArray[np.uint8]) -> Places | None:
        if ((firsts & 0xE0) == _SHORT_TEXT).all():
            return at + ((firsts & _LONGEST_SHORT).astype(np.int64) + 1)
        sizes = self._sizes(at, _NAME_SIZES[firsts], least=_LONGEST_SHORT + 1)
        return None if sizes is None else at + sizes

    def _behind_values(self, at: Places) -> Places | None:
        firsts = self._octets[at]
        if (firsts == _DOUBLE).all():
            return at + _DOUBLE_BYTES
        sizes = self._sizes(at, _VALUE_SIZES[firsts], least=0)
        return None if sizes is None else at + sizes

    def _sizes(self, at: Places, sizes: Places, *, least: int) -> Places | None:
        """Puts in what only a text's second byte tells; ``least``: as long as such a text is at least."""
        if sizes.all():
            return sizes
        others = np.flatnonzero(sizes == 0)
        lengths = self._octets[at[others] + 1]
        if (self._octets[at[others]] != _TEXT_8).any() or (lengths < least).any():
            return None
        sizes[others] = lengths.astype(np.int64) + 2
        return sizes
