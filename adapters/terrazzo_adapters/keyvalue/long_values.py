"""Long values are compressed before they are written: what a commit costs others is the bytes that it syncs.

A mapping may make a megabyte of a message of a few bytes, the same text two hundred times over: it repeats what there
was, and zstd makes that short again. A frame of zstd begins with four bytes that no other value of ours begins with.
"""

from __future__ import annotations

from threading import local

import zstandard

LEAST_BYTES = 16 * 1024
"""Shorter values are written as they are: most are, and they cost a commit next to nothing."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_WORTH = 0.9  # of its length: what zstd can't make shorter stays as it is
_MOST_BYTES = 256 * 1024 * 1024  # that one may have: a damaged frame must not take all memory


class _Contexts(local):
    """zstd's, which no two threads may use at once."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=1).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_contexts = _Contexts()


def shortened(value: bytes) -> bytes | None:
    """The value as a frame of zstd, if it is long and that is shorter."""
    if len(value) < LEAST_BYTES:
        return None
    frame = _contexts.compress(value)
    return frame if len(frame) < _WORTH * len(value) else None


def packed(value: bytes) -> bytes:
    """A value that ``unpacked`` gives back: as it is, or a frame."""
    frame = shortened(value)
    if frame is None:
        return _contexts.compress(value) if value.startswith(_MAGIC) else value
    return frame


def unpacked(value: bytes) -> bytes:
    """What was ``packed``, or was written as it is by an earlier version. Raises as ``lengthened``."""
    return lengthened(value) if value.startswith(_MAGIC) else value


def lengthened(frame: bytes) -> bytes:
    """The value of a frame that ``shortened`` made.

    Raises:
        ValueError: it is damaged; says how.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= _MOST_BYTES:
            raise ValueError(f"a frame of {size} bytes")
        return _contexts.decompress(frame, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(f"zstd: {error}") from error
