"""Short texts in a hole of a template, by a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame


class Words(NamedTuple):
    """The texts of one hole by a dictionary."""

    words: Sequence[bytes]
    numbers: NDArray[np.int64]

    def most(self) -> int:
        """A bound on the bytes that stand there in any record."""
        return max(map(len, self.words))

    def at(self, places: NDArray[np.int64]) -> Words:
        """Some of them."""
        return Words(self.words, self.numbers[places])

    def width(self) -> int:
        """The most bytes that a text has in the hole."""
        return max(map(len, self.words))

    def write(self, text: NDArray[np.uint8], counts: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Writes what stands in the hole, a row each, and which bytes of it count; returns how many do."""
        width = text.shape[1]
        lengths = np.array([len(word) for word in self.words], np.int64)[self.numbers]
        table = np.array(self.words, f"S{max(1, width)}").view(np.uint8).reshape(len(self.words), -1)
        text[:] = table[self.numbers, :width]
        counts[:] = np.arange(width) < lengths[:, None]
        return lengths


_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])
_words = msgspec.msgpack.Decoder(list[bytes])


def make_words(words: Sequence[bytes]) -> Words:
    """The dictionary of texts."""
    numbers: dict[bytes, int] = {}
    places = [numbers.setdefault(word, len(numbers)) for word in words]
    return Words(list(numbers), np.array(places, np.int64))


def encode_words(words: Words, packing: Packing) -> bytes:
    """The texts as bytes."""
    frame = encode_frame(msgspec.msgpack.encode(list(words.words)), packing)
    return msgspec.msgpack.encode((frame, encode_integers(words.numbers, packing)))


def decode_words(data: bytes, count: int) -> Words:
    """The reverse of ``encode_words``.

    Raises:
        Damaged: they are not ``count`` texts.
    """
    try:
        frame, numbers = _pair.decode(data)
        words = _words.decode(decode_frame(frame))
    except msgspec.MsgspecError as error:
        raise Damaged(f"texts: {error}") from error
    places = decode_integers(numbers, count)
    if not words or (len(places) and not 0 <= places.min() <= places.max() < len(words)):
        raise Damaged("texts: a number beyond the dictionary")
    return Words(words, places)
