"""The segments of a series: where each lies, and its parts.

An ``s`` entry says where a segment begins and how many records it has, so that totals need no more than a walk over
these short entries. Retention that goes through a segment only raises the number of records that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from rocksdict import RdictIter

from terrazzo_adapters.keyvalue.walk import View, ascending
from terrazzo_adapters.rocksdb.keys import LATEST_US, part_key, segment_end, segment_key
from terrazzo_adapters.rocksdb.segment_cache import cache

if TYPE_CHECKING:
    from terrazzo_adapters.segments import Segment

_MARK_BYTES = 8
_VALUE = Struct(f">BQIII?{_MARK_BYTES}s")
_VERSION = 2
_UNMARKED = Struct(">BQIII?")  # version 1


class Extent(NamedTuple):
    """Where a segment lies: the times of its first and last record (UTC microseconds), how many it has.

    ``left_out``: how many records at its beginning are deleted; ``first_us`` and ``total`` are without them.
    ``size``: bytes of its parts; ``tight``: whether it is packed as tightly as it will ever be. ``mark``: no other
    segment of the series has the same while the process runs.
    """

    series_id: int
    first_us: int
    last_us: int
    total: int
    left_out: int
    size: int
    tight: bool
    mark: bytes

    @property
    def key(self) -> bytes:
        """The key of its entry."""
        return segment_key(self.series_id, self.last_us)

    def value(self) -> bytes:
        """Its entry's value."""
        told = (self.first_us, self.total, self.left_out, self.size, self.tight)
        return _VALUE.pack(_VERSION, *told, self.mark) if len(self.mark) == _MARK_BYTES else _UNMARKED.pack(1, *told)

    @property
    def is_whole(self) -> bool:
        """Whether it has all the records that it was made of."""
        return not self.left_out

    def is_within(self, start_us: int, end_us: int) -> bool:
        """Whether all its records lie in the range, both ends inclusive."""
        return start_us <= self.first_us and self.last_us <= end_us


def _extent(series_id: int, key: bytes, value: bytes) -> Extent:
    if len(value) == _UNMARKED.size:
        _, first_us, total, left_out, size, tight = _UNMARKED.unpack(value)
        mark = key + value  # such are not written any more: whatever takes its place has another one
    else:
        _, first_us, total, left_out, size, tight, mark = _VALUE.unpack(value)
    return Extent(series_id, first_us, segment_end(key), total, left_out, size, tight, mark)


def mark_of(head: bytes) -> bytes:
    """The mark of a segment whose head, with the checksums of all its parts, has these bytes."""
    return blake2b(head, digest_size=_MARK_BYTES).digest()


def extents_up(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[Extent]:
    """The segments that overlap a range (both ends inclusive), oldest first."""
    start_us = max(start_us, 0)
    for key, value in ascending(view, segment_key(series_id, start_us), segment_key(series_id + 1, 0)):
        extent = _extent(series_id, key, value)
        if extent.first_us > end_us:
            return
        yield extent


def extents_down(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[Extent]:
    """The segments that overlap a range (both ends inclusive), newest first."""
    start, end = segment_key(series_id, max(start_us, 0)), segment_key(series_id, min(end_us, LATEST_US))
    cursor = view.iter()  # one for both ways: to place it costs more than what follows
    cursor.seek(end)
    if cursor.valid():
        if (key := cursor.key()) < segment_key(series_id + 1, 0):
            extent = _extent(series_id, key, cursor.value())
            if extent.first_us <= end_us:  # it may end behind the range
                yield extent
        cursor.prev()
    else:
        cursor.seek_to_last()
    while cursor.valid() and (key := cursor.key()) >= start:
        yield _extent(series_id, key, cursor.value())
        cursor.prev()
    cursor.status()  # raises where the walk ended because a file can't be read


class PartReader:
    """Reads the parts of a segment, from one snapshot."""

    def __init__(self, view: View, extent: Extent) -> None:
        self._view = view
        self._extent = extent
        self._cursor: RdictIter | None = None  # mostly all that is asked for was decoded before

    def __call__(self, name: bytes) -> bytes | None:
        """A part by its name, None if there is none."""
        key = part_key(self._extent.series_id, self._extent.last_us, name)
        cursor = self._cursor
        if cursor is None:
            cursor = self._cursor = self._view.iter()
        cursor.seek(key)
        if cursor.valid() and cursor.key() == key:
            value: bytes = cursor.value()
            return value
        return None


def open_segment(view: View, extent: Extent) -> Segment:
    """The segment, whose parts are read when they are needed.

    Raises:
        SegmentDamaged: its head can't be read.
    """
    from terrazzo_adapters.segments import Segment  # its libraries are heavy

    return Segment(PartReader(view, extent), cache.of((extent.series_id, extent.last_us), extent.mark))
