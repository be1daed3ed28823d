"""Flat MessagePack maps, thousands at once: where in them the values of some names are, and these as columns.

All maps are walked together: a step takes the next name and value of each, with some ten operations of numpy whatever
number of maps there are. Those with the most names come first, so that each step is over a beginning of the same
arrays. A step may lead into what lies behind a map: that each ends where its last value does is looked at in the end.
Only values that are asked for are looked at; that other texts are UTF-8 nobody checks, as whoever stored them has. What
is no flat map of plain values (nested ones, arrays, binary, names or texts of 256 bytes and more) is left to
``points``, and so is what isn't well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.bodies import Bodies, Places
from terrazzo_adapters.columns.column import FLAG, NUMBER, TEXT, PointColumn

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
        last = len(words) - 1
        found = np.flatnonzero((words[np.minimum(places, last)] & self._masks[0]) == self._words[0])
        for number in range(1, len(self._words)):
            further = words[np.minimum(places[found] + _WORD * number, last)]
            found = found[(further & self._masks[number]) == self._words[number]]
        return found


def find_values(bodies: Bodies, keys: Sequence[str], *, least: int = 0) -> FlatMaps | None:
    """Where the values of some names are; None: not all bodies are flat maps of plain values, or it isn't worth it.

    Args:
        least: maps that a step must have on average: fewer, or few with many names, are faster each for itself.
    """
    try:
        names = [_Name(key) for key in keys]
    except UnicodeEncodeError:  # a lone surrogate
        return None
    walk = _Walk(bodies)
    if not bodies.sizes.all() or not walk.begin(least):
        return None
    found = walk.go(names)
    return None if found is None else FlatMaps(bodies.data, found)


class _Walk:
    """Goes through some maps. ``_order``: how they are walked, None: as they come."""

    def __init__(self, bodies: Bodies) -> None:
        self._octets, self._words = np.frombuffer(bodies.data, np.uint8), _view(bodies.data, "<u8")
        self._at, self._ends = bodies.starts, bodies.starts + bodies.sizes
        self._counts = np.zeros(0, np.uint16)
        self._order: NDArray[np.intp] | None = None

    def begin(self, least: int) -> bool:
        """Reads how many names each map has; whether all are maps, and steps have ``least`` of them on average."""
        firsts = self._octets.take(self._at)
        counts = (firsts & 15).astype(np.uint16)
        long = firsts == _MAP_16
        at = self._at + 1
        if long.any():
            high = at[long]
            counts[long] = self._octets.take(high).astype(np.uint16) << 8 | self._octets.take(high + 1, mode="clip")
            at[long] += 2
        self._at = at
        most = int(counts.max())
        if int(counts.sum(dtype=np.int64)) < least * most or not (long | (firsts >> 4 == 8)).all():
            return False
        if (counts != most).any():
            self._order = np.argsort(most - counts, kind="stable")
            counts, self._at, self._ends = counts[self._order], at[self._order], self._ends[self._order]
        self._counts = counts
        return True

    def go(self, names: Sequence[_Name]) -> Sequence[Places] | None:
        """Where each name's values are, 0: the map has none; None: not all maps are plain and whole.

        Of a name twice the last counts.
        """
        found = [np.zeros(len(self._at), np.int64) for _ in names]
        for some in self._lengths():
            if not self._step(self._at[:some], names, found):
                return None
        if (self._at != self._ends).any():
            return None
        return found if self._order is None else [_as_before(places, self._order) for places in found]

    def _lengths(self) -> list[int]:
        """Of each step over how many maps it is."""
        most = int(self._counts[0])
        if self._order is None:
            return [len(self._counts)] * most
        return [int(each) for each in np.bincount(self._counts, minlength=most + 1)[:0:-1].cumsum()[::-1]]

    def _step(self, at: Places, names: Sequence[_Name], found: Sequence[Places]) -> bool:
        """Puts in ``at`` where the maps' next names are behind those that are there; False: one isn't plain."""
        firsts = self._octets.take(at, mode="clip")
        first = int(firsts[0]) if (firsts == firsts[0]).all() else None
        values_at = self._behind_names(at, firsts, first)
        if values_at is None:
            return False
        lasts: dict[int, NDArray[np.uint8]] = {}  # by their offsets: few maps have the same first and last byte there
        for name, places in zip(names, found, strict=True):
            if first is not None and first != name.first:
                continue
            if name.offset not in lasts:
                lasts[name.offset] = self._octets.take(at + name.offset, mode="clip")
            alike = lasts[name.offset] == name.last
            hits = np.flatnonzero(alike if first is not None else alike & (firsts == name.first))
            if len(hits):
                hits = hits[name.among(self._words, at[hits])]
                places[hits] = values_at[hits]
        return self._behind_values(values_at, at)

    def _behind_names(self, at: Places, firsts: NDArray[np.uint8], first: int | None) -> Places | None:
        if first is not None and first & 0xE0 == _SHORT_TEXT:
            return at + ((first & _LONGEST_SHORT) + 1)
        sizes = self._sizes(at, firsts, _NAME_SIZES, least=_LONGEST_SHORT + 1)
        return None if sizes is None else at + sizes

    def _behind_values(self, values_at: Places, at: Places) -> bool:
        firsts = self._octets.take(values_at, mode="clip")
        if (firsts == _DOUBLE).all():
            np.add(values_at, _DOUBLE_BYTES, out=at)
            return True
        sizes = self._sizes(values_at, firsts, _VALUE_SIZES, least=0)
        if sizes is None:
            return False
        np.add(values_at, sizes, out=at)
        return True

    def _sizes(self, at: Places, firsts: NDArray[np.uint8], known: Places, *, least: int) -> Places | None:
        """Of names or values by their first byte, and of texts by their second, which are at least so long."""
        sizes = known.take(firsts)
        if sizes.all():
            return sizes
        others = np.flatnonzero(sizes == 0)
        lengths = self._octets.take(at[others] + 1, mode="clip")
        if (firsts[others] != _TEXT_8).any() or (lengths < least).any():
            return None
        sizes[others] = lengths.astype(np.int64) + 2
        return sizes


def _as_before(places: Places, order: NDArray[np.intp]) -> Places:
    found = np.empty_like(places)
    found[order] = places
    return found
