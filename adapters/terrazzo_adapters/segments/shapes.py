"""Shapes: which names a record carries, in which order, and whether its body follows from their values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame


class Shape(msgspec.Struct, array_like=True, frozen=True):
    """Some records alike. ``names``: by their places in the head's list."""

    rendered: bool
    names: tuple[int, ...]


_encode = msgspec.msgpack.Encoder().encode
_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_shapes = msgspec.msgpack.Decoder(list[Shape])


class Shapes:
    """The shapes of a segment, and each record's by its number."""

    def __init__(self, shapes: Sequence[Shape], ids: NDArray[np.int64]) -> None:
        self.shapes = shapes
        self.ids = ids
        self.rendered = np.array([shape.rendered for shape in shapes], np.bool_)[ids]

    def carriers(self, name: int) -> NDArray[np.bool_] | None:
        """Which records carry the name; None: all."""
        carried = np.array([name in shape.names for shape in self.shapes], np.bool_)
        return None if carried.all() else carried[self.ids]

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
    ids = decode_integers(numbers, count)
    if not shapes or not (ids.min() >= 0 and ids.max() < len(shapes)):
        raise Damaged("shapes: a number beyond the list")
    if any(not 0 <= name < names for shape in shapes for name in shape.names):
        raise Damaged("shapes: a name beyond the list")
    return Shapes(shapes, ids)
