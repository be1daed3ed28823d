"""The records of a series, those of segments and those that are not sealed yet, in order.

A segment is opened when its turn comes, and decoded some records at a time. What can't be read of a damaged one is left
out, and said in the log; ``terrazzo doctor`` names it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.keyvalue.readers import still_wanted
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.blocks import OrderedBody
from terrazzo_adapters.rocksdb.extents import Extent, extents_down, extents_up, open_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from terrazzo_adapters.segments import Segment

    Numbers = NDArray[np.int64]
    """Records by their places in a segment."""

T = TypeVar("T")

_log = logging.getLogger(__name__)
_sparse_log = SparseLog(_log)

_FIRST_SLICE, _LEAST_SLICE, _LONGEST_SLICE = 64, 8, 1024
_MOST_DAMAGED = 10_000

damaged: set[tuple[int, int]] = set()
"""The segments of which something could not be read since the start: ids of series and times of their last records."""

_ALL: Set[str] = frozenset()


def up(
    view: View,
    series_id: int,
    start_us: int,
    end_us: int,
    *,
    after: bytes = b"",
    rows: Iterator[OrderedBody] | None = None,
    keys: Set[str] = _ALL,
    strict: bool = False,
) -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, oldest first; only those after the ``order`` in ``after``.

    Args:
        rows: those that are not sealed, if not all of them.
        keys: of segments only the records that carry one of these names; empty: all.
        strict: whether a damaged segment raises ``SegmentDamaged``.
    """
    rest = blocks.up(view, series_id, start_us, end_us, after=after) if rows is None else rows
    row = next(rest, None)
    for extent in extents_up(view, series_id, start_us, end_us):
        first = extent.first_us.to_bytes(8)
        while row is not None and row[0] < first:
            yield row
            row = next(rest, None)
        found = _up_of(view, extent, start_us, end_us, after, keys)
        for each in found if strict else _guarded(extent, found):
            while row is not None and row[0] < each[0]:
                yield row
                row = next(rest, None)
            yield each
    if row is not None:
        yield row
        yield from rest


def down(
    view: View,
    series_id: int,
    start_us: int,
    end_us: int,
    *,
    rows: Iterator[OrderedBody] | None = None,
    keys: Set[str] = _ALL,
    skip: int = 0,
    wanted: int = _FIRST_SLICE,
) -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, newest first. ``rows`` and ``keys`` as in ``up``.

    Args:
        skip: so many are passed over; those of a segment unread, if no others lie among them.
        wanted: how many will be taken, about: so many of a segment are made at first, if they are few.
    """
    rest = blocks.down(view, series_id, start_us, end_us) if rows is None else rows
    row = next(rest, None)
    for extent in extents_down(view, series_id, start_us, end_us):
        last = (extent.last_us + 1).to_bytes(8)
        while row is not None and row[0] >= last:
            if skip:
                skip -= 1
            else:
                yield row
            row = next(rest, None)
        unread = 0
        if skip and (row is None or row[0] < extent.first_us.to_bytes(8)):
            unread = min(skip, _total(view, extent, start_us, end_us, keys))
            skip -= unread
        for each in down_of(view, extent, start_us, end_us, keys=keys, skip=unread, wanted=wanted):
            while row is not None and row[0] > each[0]:
                if skip:
                    skip -= 1
                else:
                    yield row
                row = next(rest, None)
            if skip:
                skip -= 1
            else:
                yield each
    if row is not None:
        yield from islice(chain((row,), rest), skip, None)


def _total(view: View, extent: Extent, start_us: int, end_us: int, keys: Set[str]) -> int:
    """How many records of a segment lie in a range, and carry one of the names."""
    if not keys and extent.is_within(start_us, end_us):
        return extent.total
    with guarded(extent):
        segment = open_segment(view, extent)
        start, end = places(segment, extent, start_us, end_us)
        return segment.count_carrying(keys, start, end) if keys else max(0, end - start)
    return 0


def down_of(
    view: View,
    extent: Extent,
    start_us: int,
    end_us: int,
    *,
    keys: Set[str] = _ALL,
    skip: int = 0,
    wanted: int = _FIRST_SLICE,
) -> Iterator[OrderedBody]:
    """The records of one segment in a range, newest first, without the first ``skip``; ``wanted`` as in ``down``."""
    length = max(_LEAST_SLICE, min(wanted, _FIRST_SLICE))
    return _guarded(extent, _down_of(view, extent, start_us, end_us, keys, skip, length))


class Newest(NamedTuple):
    """The newest records of a range, both ends inclusive, without the first ``skip``; of ``keys`` they carry one.

    ``whole``: False: of bodies only ``keys`` are asked for.
    """

    start_us: int
    end_us: int
    keys: Set[str]
    skip: int
    limit: int
    whole: bool


Piece = tuple[Sequence[int], Sequence[bytes]]
"""Some records: their times (UTC microseconds) and bodies."""


def newest(view: View, extents: Iterable[tuple[Extent, int]], asked: Newest) -> Iterator[Piece]:
    """What is asked for of segments that no other records lie among, newest first, some records at a time.

    Args:
        extents: newest first; each with how many of its records are in the range and carry a name.
    """
    skip, left = asked.skip, asked.limit
    for extent, inside in extents:
        if left <= 0:
            return
        if skip < inside:
            for piece in _guarded(extent, _newest_of(view, extent, asked._replace(skip=skip, limit=left))):
                left -= len(piece[0])
                yield piece
        skip = max(0, skip - inside)


def _newest_of(view: View, extent: Extent, asked: Newest) -> Iterator[Piece]:
    segment = open_segment(view, extent)
    numbers, is_told = _carrying(segment, asked.keys, *places(segment, extent, asked.start_us, asked.end_us))
    if not is_told:
        found = _slices_down(segment, numbers, asked.keys, is_told, _FIRST_SLICE)
        for order, body in islice(found, asked.skip, asked.skip + asked.limit):
            yield [int.from_bytes(order[:8])], [body]
        return
    end = max(0, len(numbers) - asked.skip)
    least, length = max(0, end - asked.limit), _FIRST_SLICE
    while end > least:
        still_wanted()
        first = max(least, end - length)
        some = numbers[first:end]
        bodies = segment.bodies_at(some, _ALL if asked.whole else asked.keys)
        yield segment.times_us[some][::-1].tolist(), bodies[::-1]
        end, length = first, min(2 * length, _LONGEST_SLICE)


def _up_of(
    view: View, extent: Extent, start_us: int, end_us: int, after: bytes, keys: Set[str]
) -> Iterator[OrderedBody]:
    segment = open_segment(view, extent)
    if keys and keys.isdisjoint(segment.names):
        return
    if after:
        start_us = max(start_us, int.from_bytes(after[:8]))
    numbers, is_told = _carrying(segment, keys, *places(segment, extent, start_us, end_us))
    first, length = 0, _FIRST_SLICE
    while first < len(numbers):
        still_wanted()
        for each in _told(ordered(segment, numbers[first : first + length]), keys, is_told=is_told):
            if each[0] > after:
                yield each
        first, length = first + length, min(2 * length, _LONGEST_SLICE)


def _down_of(
    view: View, extent: Extent, start_us: int, end_us: int, keys: Set[str], skip: int, length: int
) -> Iterator[OrderedBody]:
    segment = open_segment(view, extent)
    if keys and keys.isdisjoint(segment.names):
        return
    numbers, is_told = _carrying(segment, keys, *places(segment, extent, start_us, end_us))
    left = numbers if not is_told else numbers[: max(0, len(numbers) - skip)]
    found = _slices_down(segment, left, keys, is_told, length)
    yield from found if is_told else islice(found, skip, None)


def _slices_down(
    segment: Segment, numbers: Numbers, keys: Set[str], is_told: bool, length: int
) -> Iterator[OrderedBody]:
    end = len(numbers)
    while end > 0:
        still_wanted()
        first = max(0, end - length)
        yield from _told(reversed(ordered(segment, numbers[first:end])), keys, is_told=is_told)
        end, length = first, min(2 * length, _LONGEST_SLICE)


def _carrying(segment: Segment, keys: Set[str], start: int, end: int) -> tuple[Numbers, bool]:
    """The records of a stretch that carry one of the names; False: only their bodies tell which of these do."""
    import numpy as np  # heavy, and loaded with the segment

    told = segment.carrying(keys, start, max(start, end)) if keys else None
    return (told, True) if told is not None else (np.arange(start, end), not keys)


def _told(records: Iterable[OrderedBody], keys: Set[str], *, is_told: bool) -> Iterable[OrderedBody]:
    return records if is_told else (each for each in records if not keys.isdisjoint(parse_points(each[1])))


def places(segment: Segment, extent: Extent, start_us: int, end_us: int) -> tuple[int, int]:
    """Where a segment's records of a range (both ends inclusive) begin and end, without those left out."""
    if extent.is_within(start_us, end_us):
        return extent.left_out, segment.count
    times_us = segment.times_us
    return max(extent.left_out, int(times_us.searchsorted(start_us, "left"))), int(
        times_us.searchsorted(end_us, "right")
    )


def ordered(segment: Segment, numbers: Numbers) -> Sequence[OrderedBody]:
    """Records of a segment by their numbers, which ascend, each with its ``order``."""
    import numpy as np  # heavy, and loaded with the segment

    orders = np.empty((len(numbers), 2), ">u8")
    orders[:, 0], orders[:, 1] = segment.times_us[numbers], segment.arrivals[numbers]
    packed = orders.tobytes()
    bodies = segment.bodies_at(numbers)
    return [(packed[16 * place : 16 * place + 16], body) for place, body in enumerate(bodies)]


def _guarded(extent: Extent, records: Iterator[T]) -> Iterator[T]:
    with guarded(extent):
        yield from records


@contextmanager
def guarded(extent: Extent) -> Iterator[None]:
    """Leaves out what can't be read of a damaged segment, and says so in the log."""
    from terrazzo_adapters.segments import SegmentDamaged  # its libraries are heavy

    try:
        yield
    except SegmentDamaged as error:
        _say_damaged(extent, error)


def _say_damaged(extent: Extent, error: Exception) -> None:
    if len(damaged) < _MOST_DAMAGED:
        damaged.add((extent.series_id, extent.last_us))
    _sparse_log.warning(
        "series %d, %d to %d (UTC microseconds): records can't be read: %s",
        extent.series_id,
        extent.first_us,
        extent.last_us,
        error,
    )
