"""The records of a series, those of segments and those that are not sealed yet, in order.

A segment is opened when its turn comes, and decoded some records at a time. What can't be read of a damaged one is left
out, and said in the log; ``terrazzo doctor`` names it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.blocks import OrderedBody
from terrazzo_adapters.rocksdb.extents import Extent, extents_down, extents_up, open_segment

if TYPE_CHECKING:
    from terrazzo_adapters.segments import Segment

_log = logging.getLogger(__name__)
_sparse_log = SparseLog(_log)

_FIRST_SLICE, _LONGEST_SLICE = 64, 1024
_MOST_DAMAGED = 10_000

damaged: set[tuple[int, int]] = set()
"""The segments of which something could not be read since the start: ids of series and times of their last records."""

Wanted = Callable[[Sequence[str]], bool]
"""Whether a segment whose records carry these names is to be read."""


def up(
    view: View,
    series_id: int,
    start_us: int,
    end_us: int,
    *,
    after: bytes = b"",
    rows: Iterator[OrderedBody] | None = None,
    wanted: Wanted | None = None,
    strict: bool = False,
) -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, oldest first; only those after the ``order`` in ``after``.

    Args:
        rows: those that are not sealed, if not all of them.
        wanted: which segments are read; None: all.
        strict: whether a damaged segment raises ``SegmentDamaged``.
    """
    rest = blocks.up(view, series_id, start_us, end_us, after=after) if rows is None else rows
    row = next(rest, None)
    for extent in extents_up(view, series_id, start_us, end_us):
        first = extent.first_us.to_bytes(8)
        while row is not None and row[0] < first:
            yield row
            row = next(rest, None)
        found = _up_of(view, extent, start_us, end_us, after, wanted)
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
    wanted: Wanted | None = None,
    skip: int = 0,
) -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, newest first. ``rows`` and ``wanted`` as in ``up``.

    ``skip``: so many are passed over; those of a segment unread, if no others lie among them. Not with ``wanted``.
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
            unread = min(skip, _total(view, extent, start_us, end_us))
            skip -= unread
        for each in down_of(view, extent, start_us, end_us, wanted=wanted, skip=unread):
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


def _total(view: View, extent: Extent, start_us: int, end_us: int) -> int:
    """How many records of a segment lie in a range."""
    if extent.is_within(start_us, end_us):
        return extent.total
    with guarded(extent):
        start, end = places(open_segment(view, extent), extent, start_us, end_us)
        return max(0, end - start)
    return 0


def down_of(
    view: View, extent: Extent, start_us: int, end_us: int, *, wanted: Wanted | None = None, skip: int = 0
) -> Iterator[OrderedBody]:
    """The records of one segment in a range, newest first, without the first ``skip``."""
    return _guarded(extent, _down_of(view, extent, start_us, end_us, wanted, skip))


def _up_of(
    view: View, extent: Extent, start_us: int, end_us: int, after: bytes, wanted: Wanted | None
) -> Iterator[OrderedBody]:
    segment = open_segment(view, extent)
    if wanted is not None and not wanted(segment.names):
        return
    if after:
        start_us = max(start_us, int.from_bytes(after[:8]))
    place, end = places(segment, extent, start_us, end_us)
    length = _FIRST_SLICE
    while place < end:
        stop = min(place + length, end)
        for each in ordered(segment, place, stop):
            if each[0] > after:
                yield each
        place, length = stop, min(2 * length, _LONGEST_SLICE)


def _down_of(
    view: View, extent: Extent, start_us: int, end_us: int, wanted: Wanted | None, skip: int
) -> Iterator[OrderedBody]:
    segment = open_segment(view, extent)
    if wanted is not None and not wanted(segment.names):
        return
    start, place = places(segment, extent, start_us, end_us)
    place -= skip
    length = _FIRST_SLICE
    while place > start:
        first = max(place - length, start)
        yield from reversed(ordered(segment, first, place))
        place, length = first, min(2 * length, _LONGEST_SLICE)


def places(segment: Segment, extent: Extent, start_us: int, end_us: int) -> tuple[int, int]:
    """Where a segment's records of a range (both ends inclusive) begin and end, without those left out."""
    if extent.is_within(start_us, end_us):
        return extent.left_out, segment.count
    times_us = segment.times_us
    return max(extent.left_out, int(times_us.searchsorted(start_us, "left"))), int(
        times_us.searchsorted(end_us, "right")
    )


def ordered(segment: Segment, start: int, stop: int) -> Sequence[OrderedBody]:
    """Records of a segment by their places, each with its ``order``."""
    import numpy as np  # heavy, and loaded with the segment

    orders = np.empty((stop - start, 2), ">u8")
    orders[:, 0], orders[:, 1] = segment.times_us[start:stop], segment.arrivals[start:stop]
    packed = orders.tobytes()
    bodies = segment.bodies(start, stop)
    return [(packed[16 * place : 16 * place + 16], body) for place, body in enumerate(bodies)]


def _guarded(extent: Extent, records: Iterator[OrderedBody]) -> Iterator[OrderedBody]:
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
