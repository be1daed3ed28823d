"""How much work a segment is worth, and bytes in frames: as they are, or compressed by zstd."""

from __future__ import annotations

from enum import Enum
from threading import local

import zstandard

_PLAIN, _ZSTD = b"\x00", b"\x01"
_LEAST_BYTES = 48  # fewer are not worth a frame
MOST_FRAME_BYTES = 256 * 2**20
"""The most that one frame may decompress to: a damaged or hostile one must not take all memory."""


class Packing(Enum):
    """How much work a segment is worth."""

    CHEAP = "cheap"  # when records are sealed for the first time
    TIGHT = "tight"  # when segments are merged


class Damaged(ValueError):
    """Bytes that are not what ``encode`` writes; ``str()`` says what is wrong."""


class _Compressors(local):
    """zstd's contexts, which no two threads may use at once."""

    def __init__(self) -> None:
        self.packing = {
            Packing.CHEAP: zstandard.ZstdCompressor(level=1),
            Packing.TIGHT: zstandard.ZstdCompressor(level=9),
        }
        self.unpacking = zstandard.ZstdDecompressor()


_compressors = _Compressors()


def encode_frame(data: bytes, packing: Packing) -> bytes:
    """The bytes in a frame, compressed where that is shorter."""
    if len(data) >= _LEAST_BYTES:
        compressed = _compressors.packing[packing].compress(data)
        if len(compressed) < len(data):
            return _ZSTD + compressed
    return _PLAIN + data


def decode_frame(frame: bytes, most_bytes: int = MOST_FRAME_BYTES) -> bytes:
    """The reverse of ``encode_frame``.

    Raises:
        Damaged: it is no frame, or holds more than ``most_bytes``.
    """
    form, data = frame[:1], frame[1:]
    if form == _PLAIN:
        return data
    if form != _ZSTD:
        raise Damaged(f"a frame of form {form.hex() or 'none'}")
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= most_bytes:
            raise Damaged(f"a frame of {size} bytes")
        return _compressors.unpacking.decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise Damaged(f"zstd: {error}") from error
