"""Texts by a dictionary: each different one once, and for each place its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame

_encode = msgspec.msgpack.Encoder().encode
_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_texts = msgspec.msgpack.Decoder(list[str])


class Texts(NamedTuple):
    """Texts by place: ``texts[numbers[place]]``."""

    texts: Sequence[str]
    numbers: NDArray[np.int64]


NO_TEXTS = Texts([], np.zeros(0, np.int64))


def make_texts(texts: Sequence[str]) -> Texts:
    """The dictionary of texts."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(text, len(numbers)) for text in texts]
    return Texts(list(numbers), np.array(places, np.int64))


def encode_texts(texts: Texts, packing: Packing) -> bytes:
    """Texts as bytes; none is no byte."""
    if not len(texts.numbers):
        return b""
    return _encode((encode_frame(_encode(texts.texts), packing), encode_integers(texts.numbers, packing)))


def decode_texts(data: bytes, count: int) -> Texts:
    """The reverse of ``encode_texts``.

    Raises:
        Damaged: they are not ``count`` texts.
    """
    if not data and not count:
        return NO_TEXTS
    try:
        frame, numbers = _pair.decode(data)
        texts = _texts.decode(decode_frame(frame))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Damaged(f"texts: {error}") from error
    places = decode_integers(numbers, count)
    if len(places) and not (places.min() >= 0 and places.max() < len(texts)):
        raise Damaged("texts: a number beyond the dictionary")
    return Texts(texts, places)
