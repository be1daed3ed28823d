"""The parts of a segment: read by name, each once its checksum was compared."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from terrazzo_adapters.segments.head import Head, decode_head
from terrazzo_adapters.segments.packing import Damaged

S = TypeVar("S")
T = TypeVar("T")

_HEAD_FACTOR = 8  # a decoded head, to its bytes

HEAD, TIMES, SHAPES = b"", b"t", b"s"


def body_part(number: int) -> bytes:
    """The name of the part with the bodies of one chunk."""
    return b"b%d" % number


def template_part(number: int) -> bytes:
    """The name of the part with one template; they are numbered from 1."""
    return b"g%d" % number


def value_part(name: str) -> bytes:
    """The name of the part with one name's values."""
    return b"v" + name.encode()


def exact_part(name: str) -> bytes:
    """What one name's values are kept under in memory as they were, not as points."""
    return b"e" + name.encode()


def rollup_part(name: str) -> bytes:
    """The name of the part with one name's rollup."""
    return b"h" + name.encode()


def made_part(name: str, slot_us: int) -> bytes:
    """What one name's rollup is kept under in memory that no segment stores."""
    return b"q%d/" % slot_us + name.encode()


class SegmentDamaged(Exception):
    """A part of a segment is missing, or is not what was written; the others may still be read."""

    def __init__(self, part: bytes, reason: str) -> None:
        super().__init__(f"part {part!r} of a segment: {reason}")
        self.part = part
        self.reason = reason


class Memory(Protocol):
    """What was decoded of a segment before, for all who read it. Nobody changes what is in it."""

    def find(self, part: bytes) -> Any:
        """What was decoded of a part; None if that isn't kept."""

    def keep(self, part: bytes, value: object, size: int) -> None:
        """May keep what was decoded of a part, of ``size`` bytes."""


class Parts:
    """What reads the parts of one segment; whatever it does may raise ``SegmentDamaged``."""

    def __init__(self, read: Callable[[bytes], bytes | None], memory: Memory | None = None) -> None:
        """Reads the head, unless somebody did before.

        Args:
            read: gives a part by its name, None if there is none.
            memory: of this segment.
        """
        self._read, self._memory = read, memory
        found: Head | None = None if memory is None else memory.find(HEAD)
        self.head = self._decoded_head() if found is None else found

    def _decoded_head(self) -> Head:
        data = self._raw(HEAD)
        head = self.checked(HEAD, data, decode_head)
        if self._memory is not None:
            self._memory.keep(HEAD, head, _HEAD_FACTOR * len(data))
        return head

    def once(self, part: bytes, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What ``make`` decodes of a part, unless somebody did before. ``size``: of it, in bytes."""
        if self._memory is None:
            return make()
        found: T | None = self._memory.find(part)
        if found is None:
            found = make()
            self._memory.keep(part, found, size(found))
        return found

    def has(self, name: bytes) -> bool:
        """Whether the segment has such a part."""
        return name in self.head.parts

    def decoded(self, name: bytes, decode: Callable[[bytes], T]) -> T:
        """A part as ``decode`` makes it of its bytes."""
        data = self._raw(name)
        if zlib.crc32(data) != self.head.parts.get(name):
            raise SegmentDamaged(name, "checksum")
        return self.checked(name, data, decode)

    def checked(self, name: bytes, stored: S, decode: Callable[[S], T]) -> T:
        """What ``decode`` makes of something that came from this part."""
        try:
            return decode(stored)
        except Damaged as error:
            raise SegmentDamaged(name, str(error)) from error

    def _raw(self, name: bytes) -> bytes:
        data = self._read(name)
        if data is None:
            raise SegmentDamaged(name, "is missing")
        return data
