"""Bodies as they are, some at a time: a chunk is read whole, so that it is kept short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec
import numpy as np

from terrazzo_adapters.segments.numeric import decode_integers, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing, decode_frame, encode_frame

CHUNK_BYTES = {Packing.CHEAP: 64 * 1024, Packing.TIGHT: 128 * 1024}
_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])


def cut_chunks(bodies: Sequence[bytes], packing: Packing) -> Iterator[Sequence[bytes]]:
    """The bodies in runs of about ``CHUNK_BYTES``, at least one each."""
    start = size = 0
    for place, body in enumerate(bodies):
        if size and size + len(body) > CHUNK_BYTES[packing]:
            yield bodies[start:place]
            start, size = place, 0
        size += len(body) + 1
    if start < len(bodies):
        yield bodies[start:]


def encode_chunk(bodies: Sequence[bytes], packing: Packing) -> bytes:
    """A chunk as bytes."""
    lengths = np.array([len(body) for body in bodies], np.int64)
    return msgspec.msgpack.encode((encode_integers(lengths, packing), encode_frame(b"".join(bodies), packing)))


def decode_chunk(data: bytes, count: int) -> list[bytes]:
    """The reverse of ``encode_chunk``.

    Raises:
        Damaged: they are not ``count`` bodies.
    """
    try:
        numbers, frame = _pair.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"chunk: {error}") from error
    lengths = decode_integers(numbers, count).tolist()
    joined = decode_frame(frame)
    if any(length < 0 for length in lengths) or sum(lengths) != len(joined):
        raise Damaged("chunk: lengths that don't fit")
    ends = list(accumulate(lengths))
    return [joined[end - length : end] for end, length in zip(ends, lengths, strict=True)]
