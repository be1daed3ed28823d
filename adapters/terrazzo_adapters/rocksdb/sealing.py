"""Which records of a series are to be sealed, and the commit that puts segments in their place. All of it is pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import NamedTuple

import msgspec
from rocksdict import WriteBatch

from terrazzo.ports.store import Record
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks, sealed
from terrazzo_adapters.rocksdb.batch import SeriesHour, put_count
from terrazzo_adapters.rocksdb.blocks import OrderedBody, Piece
from terrazzo_adapters.rocksdb.extents import Extent, extents_down, extents_up, mark_of
from terrazzo_adapters.rocksdb.keys import (
    HOUR_US,
    LATEST_US,
    column_key,
    mark_key,
    part_key,
    record_key,
    segment_key,
    tally_key,
)
from terrazzo_adapters.segment_process.chunk import Chunk

BLOCK_RECORDS = 4_096
_BLOCK_BYTES = 4 << 20
_TIGHT = 4
"""How many blocks are merged into one."""
_LATE_PART = 16
_MOST_RECORDS, _MOST_BYTES = 65_536, 64 << 20  # of one microsecond, which is never divided
_PIECE = 16
"""Records that are read between two looks at how many there are."""


class TooDense(Exception):
    """So many records have one time that they can't be in one segment. They stay as they are."""


class Changed(Exception):
    """There are other segments than when a job was found."""


class Rule(msgspec.Struct, frozen=True):
    """When records are sealed.

    ``block``: that many make a segment, whatever their age; ``least``: fewer never do; what is from before
    ``cutoff_us`` (UTC microseconds) doesn't wait for more.
    """

    cutoff_us: int
    block: int = BLOCK_RECORDS
    least: int = 16

    @property
    def slack(self) -> int:
        """The newest records beyond a block: they stay, as those that come a little late lie among them."""
        return max(1, self.block // 4)

    @property
    def due(self) -> int:
        """From so many records on a series has a block to seal."""
        return self.block + self.slack


class Job(NamedTuple):
    """A range (UTC microseconds, both ends inclusive) whose records are to be segments of about ``records`` each."""

    series_id: int
    start_us: int
    end_us: int
    records: int
    tight: bool

    def slots(self) -> tuple[SeriesHour, SeriesHour]:
        """The first and the last hour of the range."""
        base = self.series_id << 32
        return base | self.start_us // HOUR_US, base | self.end_us // HOUR_US


class Watch:
    """Says whether records came into a range since it was read, or were replaced in it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.is_broken = False
        self._first, self._last = job.slots()

    def on_append(self, records: Sequence[Record], hours: Iterable[SeriesHour], ids: Mapping[str, int]) -> None:
        """Takes note of a commit, and of the hours that it added to. ``ids``: of series by their names."""
        if not self.is_broken and any(self._first <= slot <= self._last for slot in hours):
            self.is_broken = any(
                self.job.start_us <= record.time_us <= self.job.end_us
                for record in records
                if ids.get(record.series) == self.job.series_id
            )

    def on_replace(self, series_id: int, first_us: int, last_us: int) -> None:
        """Takes note of a replacement, and of the times of the entries that it has changed."""
        overlaps = first_us <= self.job.end_us and last_us >= self.job.start_us
        self.is_broken = self.is_broken or (series_id == self.job.series_id and overlaps)


def next_job(view: View, series_id: int, from_us: int, rule: Rule) -> Job | None:
    """What is to be sealed next of a series, from a time on."""
    while from_us <= LATEST_US:
        first = next(blocks.up(view, series_id, from_us, LATEST_US), None)
        if first is None:
            return None
        time_us = int.from_bytes(first[0][:8])
        extent = next(extents_up(view, series_id, time_us, LATEST_US), None)
        job = _merge_of_late(view, extent, time_us, rule) or _block(view, series_id, time_us, extent, rule)
        if job is not None or extent is None:
            return job
        from_us = extent.last_us + 1
    return None


def _merge_of_late(view: View, extent: Extent | None, time_us: int, rule: Rule) -> Job | None:
    """A segment among whose records enough others lie."""
    if extent is None or extent.first_us > time_us:
        return None
    enough = max(rule.least, extent.total // _LATE_PART)
    late = islice(blocks.up(view, extent.series_id, extent.first_us, extent.last_us), enough)
    if sum(1 for _ in late) < enough:
        return None
    records = (_TIGHT if extent.tight else 1) * rule.block
    return Job(extent.series_id, extent.first_us, extent.last_us, records, tight=extent.tight)


def _block(view: View, series_id: int, start_us: int, extent: Extent | None, rule: Rule) -> Job | None:
    """Records between segments, or behind the last one."""
    if extent is not None and extent.first_us <= start_us:
        return None
    orders: list[bytes] = []
    sizes: list[int] = []
    size = 0
    behind_start = _least_order(start_us + 1)
    for found, bodies in blocks.pieces(view, series_id, start_us, LATEST_US if extent is None else extent.first_us - 1):
        orders += found
        sizes += map(len, bodies)
        size += sum(sizes[-len(bodies) :])
        full = _full(sizes, size, rule.block)
        enough = max(full + rule.slack - 1, bisect_left(orders, behind_start))
        if full and enough < len(orders):
            break
    else:
        return _aged(view, series_id, orders[: bisect_left(orders, _least_order(rule.cutoff_us))], rule)
    behind = orders[full] if orders[full] >= behind_start else orders[enough]
    last = bisect_left(orders, behind[:8]) - 1
    return Job(series_id, start_us, _time_us(orders[last]), rule.block, tight=False)


def _full(sizes: Sequence[int], size: int, block: int) -> int:
    """How many records make a block, given the sizes of their bodies and the sum; 0: they are too few yet."""
    if size >= _BLOCK_BYTES:
        return min(block, _count_to_size(sizes, _BLOCK_BYTES))
    return block if len(sizes) >= block else 0


def _count_to_size(sizes: Iterable[int], size: int) -> int:
    """How many of the first come to a size, which all of them do."""
    return next(count for count, each in enumerate(accumulate(sizes), 1) if each >= size)


def _pieces(records: Iterator[OrderedBody]) -> Iterator[Piece]:
    while piece := list(islice(records, _PIECE)):
        yield [order for order, _ in piece], [body for _, body in piece]


def _least_order(time_us: int) -> bytes:
    """Sorts before the records of a time, and behind all that are earlier."""
    return max(0, time_us).to_bytes(8)


def _time_us(order: bytes) -> int:
    return int.from_bytes(order[:8])


def _aged(view: View, series_id: int, orders: Sequence[bytes], rule: Rule) -> Job | None:
    """Old records that are no block, with small segments before them: a record is merged a few times, not each day."""
    if len(orders) < rule.least:
        return None
    first_us, last_us, count = _time_us(orders[0]), _time_us(orders[-1]), len(orders)
    start_us = first_us
    for extent in extents_down(view, series_id, 0, start_us - 1) if start_us else ():
        if extent.total > 2 * count or extent.total + count > rule.block:
            break
        start_us, count = extent.first_us, extent.total + count
    return Job(series_id, start_us, last_us, rule.block, tight=start_us < first_us)


def next_merge(view: View, series_id: int, from_us: int, rule: Rule) -> Job | None:
    """Which segments of a series are to be merged next, from a time on: neighbours that are not packed tightly."""
    run: list[Extent] = []
    for extent in extents_up(view, series_id, from_us, rule.cutoff_us):
        is_loose = not extent.tight or extent.total < rule.block
        if is_loose and sum(each.total for each in run) + extent.total <= _TIGHT * rule.block:
            run.append(extent)
        elif _is_worth(run, rule):
            break
        else:
            run = [extent] if is_loose else []
    if not _is_worth(run, rule):
        return None
    return Job(series_id, run[0].first_us, run[-1].last_us, _TIGHT * rule.block, tight=True)


def _is_worth(run: Sequence[Extent], rule: Rule) -> bool:
    count = sum(extent.total for extent in run)
    return count >= _TIGHT * rule.block * 3 // 4 and any(not extent.tight for extent in run)


class NewSegment(NamedTuple):
    """A segment that was made: where it lies, its parts."""

    extent: Extent
    parts: Mapping[bytes, bytes]


class SealedRange(msgspec.Struct, frozen=True):
    """The segments that take the place of a range. ``rows``: how many unsealed records of each hour they take in."""

    job: Job
    segments: Sequence[NewSegment]
    rows: Mapping[SeriesHour, int]
    edges: blocks.Edges

    def fill(self, batch: WriteBatch, left: Mapping[SeriesHour, int], *, mosaic: bool) -> None:
        """Adds the change to RocksDB's batch. ``left``: the new counters of the hours in ``rows``."""
        series_id, start_us, end_us = self.job[:3]
        batch.delete_range(record_key(series_id, start_us), record_key(series_id, end_us + 1))
        delete_segments(batch, series_id, start_us, end_us)
        for key in self.edges.gone:
            batch.delete(key)
        for entry in self.edges.kept:
            batch.put(*entry)
        for segment in self.segments:
            put_segment(batch, segment)
        for slot, count in left.items():
            put_count(batch, slot, count)
            if mosaic:
                delete_columns(batch, slot)
                if count:
                    batch.put(mark_key(*divmod(slot, 1 << 32)), b"")


def put_segment(batch: WriteBatch, segment: NewSegment) -> None:
    """Stores a segment."""
    series_id, last_us = segment.extent.series_id, segment.extent.last_us
    batch.put(segment.extent.key, segment.extent.value())
    for name, part in segment.parts.items():
        batch.put(part_key(series_id, last_us, name), part)


def delete_segments(batch: WriteBatch, series_id: int, start_us: int, end_us: int) -> None:
    """Deletes the segments that end in a range, both ends inclusive."""
    for key in (segment_key, part_key):
        batch.delete_range(key(series_id, start_us), key(series_id, end_us + 1))


def delete_columns(batch: WriteBatch, slot: SeriesHour) -> None:
    """Deletes the columns of an hour, and the mark that they are to be made."""
    series_id, hour = divmod(slot, 1 << 32)
    batch.delete(tally_key(series_id, hour))
    batch.delete(mark_key(series_id, hour))
    batch.delete_range(column_key(series_id, hour), column_key(series_id, hour + 1))


Encode = Callable[[Chunk, bool], Mapping[bytes, bytes]]
"""Makes the parts of a segment of a chunk; the second argument: packed tightly."""


def seal(view: View, job: Job, encode: Encode) -> SealedRange:
    """The segments of a range. No more than one is held unpacked.

    Raises:
        Changed: a segment lies across an end of the range.
        TooDense: it has too many records of one time.
        SegmentDamaged: a segment in the range can't be read.
    """
    before = list(extents_up(view, job.series_id, job.start_us, job.end_us))
    if not all(extent.is_within(job.start_us, job.end_us) for extent in before):
        raise Changed
    rows: Counter[SeriesHour] = Counter()
    base, (series_id, start_us, end_us) = job.series_id << 32, job[:3]
    if before:
        unsealed = _counted(blocks.up(view, series_id, start_us, end_us), base, rows)
        pieces = _pieces(sealed.up(view, series_id, start_us, end_us, rows=unsealed, strict=True))
    else:
        pieces = blocks.pieces(view, series_id, start_us, end_us)
    chunks = _chunks(pieces, job.records, None if before else partial(_count_hours, base, rows))
    segments = [_segment(job, chunk, encode) for chunk in chunks]
    return SealedRange(job, segments, rows, blocks.edges(view, series_id, start_us, end_us))


def _counted(rows: Iterator[OrderedBody], base: SeriesHour, counts: Counter[SeriesHour]) -> Iterator[OrderedBody]:
    for each in rows:
        counts[base | _time_us(each[0]) // HOUR_US] += 1
        yield each


def _chunks(pieces: Iterator[Piece], most: int, count: Callable[[Sequence[bytes]], None] | None) -> Iterator[Chunk]:
    """The records in runs of ``most`` or half as many more, divided between times.

    Args:
        count: is told of the orders of each.
    """
    orders: list[bytes] = []
    bodies: list[bytes] = []
    size = 0
    for piece in pieces:
        orders += piece[0]
        bodies += piece[1]
        size += sum(map(len, piece[1]))
        while end := _end_of_chunk(orders, bodies, size, most):
            yield _chunk(orders[:end], bodies[:end], count)
            del orders[:end], bodies[:end]
            size = sum(map(len, bodies))
    if orders:
        yield _chunk(orders, bodies, count)


def _end_of_chunk(orders: Sequence[bytes], bodies: Sequence[bytes], size: int, most: int) -> int:
    """How many records are the next chunk; 0: more have to be read first. ``size``: of all the bodies."""
    end = (3 * most + 1) // 2
    if size >= _BLOCK_BYTES:
        end = min(end, _count_to_size(map(len, bodies), _BLOCK_BYTES))
    if end >= len(orders):
        return 0
    end = bisect_left(orders, _least_order(_time_us(orders[end - 1]) + 1), end)
    if end > _MOST_RECORDS or (size > _MOST_BYTES and sum(map(len, bodies[:end])) > _MOST_BYTES):
        raise TooDense
    return end if end < len(orders) else 0


def _chunk(orders: Sequence[bytes], bodies: Sequence[bytes], count: Callable[[Sequence[bytes]], None] | None) -> Chunk:
    if count is not None:
        count(orders)
    return Chunk(b"".join(orders), bodies)


def _count_hours(base: SeriesHour, counts: Counter[SeriesHour], orders: Sequence[bytes]) -> None:
    """Counts records of a series by hour; ``base``: the series' hour 0."""
    start = 0
    while start < len(orders):
        hour = _time_us(orders[start]) // HOUR_US
        end = bisect_left(orders, _least_order((hour + 1) * HOUR_US), start)
        counts[base | hour] += end - start
        start = end


def _segment(job: Job, chunk: Chunk, encode: Encode) -> NewSegment:
    parts = encode(chunk, job.tight)
    size, count = sum(map(len, parts.values())), len(chunk.bodies)
    mark = mark_of(parts[b""])
    extent = Extent(job.series_id, chunk.first_us, chunk.last_us, count, 0, size, job.tight, mark)
    return NewSegment(extent, parts)
