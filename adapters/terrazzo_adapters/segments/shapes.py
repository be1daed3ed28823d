"""Shapes: which names a record carries, in which order, and whether its body follows from their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame


class Shape(msgspec.Struct, array_like=True, frozen=True):
    """Some records alike. ``names``: by their places in the head's list."""

    rendered: bool
    names: tuple[int, ...]


_MOST_CARRIED = 2_048 * 4_096  # names by shapes: what a reader makes room for
_SHAPE_BYTES = 100  # of Python's own
_MOST_LEADERS = 16  # that a shape is compared with
_SPARE = 16  # names that a leader may have beside four times as many as a shape

_encode = msgspec.msgpack.Encoder().encode
_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_shapes = msgspec.msgpack.Decoder(list[Shape])


class Shapes:
    """The shapes of a segment, and each record's by its number."""

    def __init__(self, shapes: Sequence[Shape], ids: NDArray[np.int64]) -> None:
        self.shapes = shapes
        self.ids = ids
        self.rendered = np.array([shape.rendered for shape in shapes], np.bool_)[ids]

    def nbytes(self) -> int:
        """How much memory they take, with what is made of them when it is needed first."""
        names = sum(len(shape.names) for shape in self.shapes)
        carried = len(self.shapes) * (max((max(shape.names, default=0) for shape in self.shapes), default=0) + 1)
        return self.ids.nbytes + self.rendered.nbytes + carried + _SHAPE_BYTES * len(self.shapes) + 8 * names

    def carriers(self, name: int) -> NDArray[np.bool_] | None:
        """Which records carry the name; None: all."""
        carried = self._carried[:, name] if name < self._carried.shape[1] else np.zeros(len(self.shapes), np.bool_)
        return None if carried.all() else carried[self.ids]

    def carrying(self, names: Sequence[int], start: int, stop: int) -> NDArray[np.int64]:
        """Which of the records from ``start`` to ``stop``, exclusive, carry at least one of the names."""
        return self._with(names)[self.ids[start:stop]].nonzero()[0] + start

    def ranks(
        self, start: int, stop: int, names: Sequence[int] | None = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Of the records from ``start`` to ``stop`` (rows) which names (columns) they carry, and as the how manieth.

        ``names``: the columns; None: all names that a record has.
        """
        of_shapes = self._carried if names is None else self._carried[:, names]
        before = np.bincount(self.ids[:start], minlength=len(self.shapes)) @ of_shapes
        carried = of_shapes[self.ids[start:stop]]
        return carried, before + carried.cumsum(axis=0) - 1

    def count_carrying(self, names: Sequence[int], start: int, stop: int) -> int:
        """How many of the records from ``start`` to ``stop``, exclusive, carry at least one of the names."""
        return int(np.count_nonzero(self._with(names)[self.ids[start:stop]]))

    def known(self, names: Iterable[int]) -> list[int]:
        """Those of some names that a record has, perhaps."""
        return [name for name in names if name < self._carried.shape[1]]

    def _with(self, names: Sequence[int]) -> NDArray[np.bool_]:
        """Which shapes have at least one of the names."""
        known = self.known(names)
        if len(known) == 1:
            return self._carried[:, known[0]]
        return np.asarray(self._carried[:, known].any(axis=1))

    @cached_property
    def _carried(self) -> NDArray[np.bool_]:
        """A row for each shape, a column for each name."""
        places = np.fromiter(chain.from_iterable(shape.names for shape in self.shapes), np.intp)
        sizes = [len(shape.names) for shape in self.shapes]
        carried = np.zeros((len(self.shapes), int(places.max(initial=-1)) + 1), np.bool_)
        carried[np.repeat(np.arange(len(sizes)), sizes), places] = True
        return carried

    def leaders(self, numbers: Iterable[int]) -> Mapping[int, int]:
        """For each of some shapes one among them that has its names and more, in the same order: often itself.

        Their bodies are rendered together: what a leader costs is shared.
        """
        leaders: list[int] = []
        found: dict[int, int] = {}
        for number in sorted(numbers, key=lambda each: -len(self.shapes[each].names)):
            leader = next((each for each in leaders[:_MOST_LEADERS] if self._leads(each, number)), number)
            found[number] = leader
            if leader == number:
                leaders.append(number)
        return found

    def _leads(self, leader: int, number: int) -> bool:
        """Whether a shape has the names of another one in the same order, and not many others."""
        longer, shorter = self.shapes[leader].names, self.shapes[number].names
        rest = iter(longer)
        return len(longer) <= 4 * len(shorter) + _SPARE and all(name in rest for name in shorter)

    def encode(self, packing: Packing) -> bytes:
        """The shapes as bytes."""
        return _encode((encode_frame(_encode(list(self.shapes)), packing), encode_integers(self.ids, packing)))


def decode_shapes(data: bytes, count: int, names: int) -> Shapes:
    """The reverse of ``Shapes.encode``, for ``count`` records and as many ``names``.

    Raises:
        Damaged: they are not shapes of as many records.
    """
    try:
        frame, numbers = _pair.decode(data)
        shapes = _shapes.decode(decode_frame(frame))
    except msgspec.MsgspecError as error:
        raise Damaged(f"shapes: {error}") from error
    if len(shapes) * names > _MOST_CARRIED:
        raise Damaged("shapes: too many for so many names")
    ids = decode_integers(numbers, count)
    if not shapes or not (ids.min() >= 0 and ids.max() < len(shapes)):
        raise Damaged("shapes: a number beyond the list")
    if any(not 0 <= name < names for shape in shapes for name in shape.names):
        raise Damaged("shapes: a name beyond the list")
    if any(len(set(shape.names)) != len(shape.names) for shape in shapes):
        raise Damaged("shapes: a name twice")
    return Shapes(shapes, ids)
