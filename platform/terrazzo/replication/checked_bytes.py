"""The beginning that all frames of the log have: which kind and version it is, and a checksum of the rest."""

from __future__ import annotations

import struct
from zlib import crc32

_HEAD = struct.Struct(">3sBI")  # magic, version, checksum of all that follows
HEAD_BYTES = _HEAD.size


class FrameDamaged(ValueError):
    """Bytes that are no frame of this format; ``str()`` says why."""


class FrameTooNew(FrameDamaged):
    """A frame of a later version; this program has to be upgraded first."""


def checked_bytes(magic: bytes, version: int, rest: bytes) -> bytes:
    """A frame of all that follows its beginning."""
    return _HEAD.pack(magic, version, crc32(rest)) + rest


def check_bytes(data: bytes, *, magic: bytes, version: int, least: int) -> None:
    """Refuses what is no frame of this kind, of a version up to this one and of so many bytes at least.

    Raises:
        FrameDamaged, FrameTooNew: says why.
    """
    if len(data) < least:
        raise FrameDamaged(f"a frame of {len(data)} bytes is shorter than its header")
    found, given, checksum = _HEAD.unpack_from(data)
    if found != magic:
        raise FrameDamaged(f"a frame begins with {found!r}, expected {magic!r}")
    if given > version:
        raise FrameTooNew(f"a frame has version {given}, and this program reads {version}: upgrade this node")
    if given < 1 or crc32(memoryview(data)[HEAD_BYTES:]) != checksum:
        raise FrameDamaged("a frame's checksum doesn't fit: it was damaged on its way or on disk")
