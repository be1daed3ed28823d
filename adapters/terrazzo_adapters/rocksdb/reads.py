"""The queries, on one snapshot. Each record that is passed over costs about half a microsecond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import NamedTuple

from terrazzo.ports.store import ANY_SIZE, Page, Record, RecordsTooLarge
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.keyvalue.walk import View, ascending, ascending_keys
from terrazzo_adapters.rocksdb import blocks, sealed
from terrazzo_adapters.rocksdb.blocks import OrderedBody
from terrazzo_adapters.rocksdb.counts import Counts
from terrazzo_adapters.rocksdb.extents import Extent, extents_up, open_segment
from terrazzo_adapters.rocksdb.hours import walk_hours
from terrazzo_adapters.rocksdb.keys import LATEST_US, name_key, parse_number, record_key
from terrazzo_adapters.rocksdb.merge import ALL, OrderedRecord, newest_first, oldest_first

_PIECE_RECORDS = 2_000
_PIECE_BYTES = 512 * 1024


def series_names(view: View, prefix: str) -> list[str]:
    """The names that start with ``prefix``, sorted (UTF-8 sorts as text does)."""
    start = name_key(prefix)
    names: list[str] = []
    for key in ascending_keys(view, start, b"o"):
        if not key.startswith(start):
            break
        names.append(key[1:].decode())
    return names


def series_ids(view: View, series: Sequence[str]) -> dict[str, int]:
    """The ids of the named series; unknown ones are left out."""
    ids: dict[str, int] = {}
    for name in series:
        # A miss on a snapshot raises; an iterator says it without.
        key = name_key(name)
        for _, value in ascending(view, key, key + b"\0"):
            ids[name] = parse_number(value)
    return ids


def latest(
    view: View, series: Sequence[str], limit: int, keys: Set[str] = ALL, most_bytes: int = ANY_SIZE
) -> list[Record]:
    """The newest ``limit`` records of all the series."""
    found = newest_first(view, series_ids(view, series), 0, LATEST_US, keys, wanted=limit)
    return _take(islice(found, max(0, limit)), most_bytes)


def _take(found: Iterable[OrderedRecord], most_bytes: int) -> list[Record]:
    records: list[Record] = []
    for order, series, body in found:
        most_bytes -= len(body)
        if most_bytes < 0:
            raise RecordsTooLarge
        records.append(Record(series, int.from_bytes(order[:8]), body))
    return records


def _taken(pieces: Iterable[sealed.Piece], series: str, most_bytes: int) -> list[Record]:
    records: list[Record] = []
    for times_us, bodies in pieces:
        most_bytes -= sum(map(len, bodies))
        if most_bytes < 0:
            raise RecordsTooLarge
        records += [Record(series, time_us, body) for time_us, body in zip(times_us, bodies, strict=True)]
    return records


def latest_each(
    view: View, series: str, keys: Set[str], until_us: int = LATEST_US, most_bytes: int = ANY_SIZE
) -> dict[str, Record]:
    """For each name the newest record that carries it, of those that are not later than ``until_us``."""
    if until_us < 0:
        return {}
    each: dict[str, Record] = {}
    wanted = set(keys)
    for series_id in series_ids(view, [series]).values():
        for time_us, body in _newest_carrying(view, series_id, wanted, min(until_us, LATEST_US)):
            hits = wanted & parse_points(body).keys()
            most_bytes -= len(body) if hits else 0
            if most_bytes < 0:
                raise RecordsTooLarge
            each.update(dict.fromkeys(hits, Record(series, time_us, body)))
            wanted -= hits
    return each


def _newest_carrying(view: View, series_id: int, wanted: Set[str], until_us: int) -> Iterator[tuple[int, bytes]]:
    """Times and bodies of records, newest first, as long as there is a name in ``wanted``.

    Segments and hours without such names are left out.
    """
    rows = _rows_down(view, series_id, wanted, until_us)
    found = sealed.down(view, series_id, 0, until_us, rows=rows, keys=wanted, wanted=len(wanted))
    while wanted and (each := next(found, None)) is not None:
        yield int.from_bytes(each[0][:8]), each[1]


def _rows_down(view: View, series_id: int, wanted: Set[str], until_us: int) -> Iterator[OrderedBody]:
    """Records that are not sealed, newest first, without hours that carry none of ``wanted``, which may shrink."""
    for hour in walk_hours(view, series_id, 0, until_us, backwards=True):
        if hour.tally is None or not wanted.isdisjoint(hour.tally.names):
            yield from blocks.down(view, series_id, *hour.cut(0, until_us))


def first_after(view: View, series: Sequence[str], time_us: int, keys: Set[str] = ALL) -> Record | None:
    """The first record strictly later than ``time_us``."""
    start_us = max(0, time_us + 1)
    if start_us > LATEST_US:
        return None
    found = oldest_first(view, series_ids(view, series), start_us, LATEST_US, keys)
    return next((each.record() for each in found if not keys or each.carries(keys)), None)


def page(
    view: View,
    series: Sequence[str],
    start_us: int,
    end_us: int,
    *,
    offset: int,
    limit: int,
    keys: Set[str] = ALL,
    most_bytes: int = ANY_SIZE,
    whole: bool = True,
) -> Page:
    """Records of a range, newest first; ``offset`` skips whole segments and hours by their counters.

    Where all are sealed the segments that were counted are read, and nothing is looked for among them.
    """
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return Page([], 0)
    ids = series_ids(view, series)
    counts = Counts(view, ids.values(), start_us, end_us, keys)
    total = counts.total
    if offset >= total or limit <= 0:
        return Page([], total)
    segments = counts.segments
    if segments is not None and len(ids) == 1:
        (name,), asked = ids, sealed.Newest(start_us, end_us, keys, offset, limit, whole)
        return Page(_taken(sealed.newest(view, segments, asked), name, most_bytes), total)
    end_us, offset = counts.skip(offset)
    found = newest_first(view, ids, start_us, end_us, keys, wanted=limit, skip=offset)
    return Page(_take(islice(found, limit), most_bytes), total)


class Piece(NamedTuple):
    """A piece of a scan. ``after``: the order after which the next piece begins; empty at the end."""

    records: list[Record]
    after: bytes


def scan(view: View, series: Sequence[str], start_us: int, end_us: int, *, keys: Set[str], after: bytes) -> Piece:
    """The next records of a range, oldest first; of at most ``_PIECE_RECORDS``, those that carry the names."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return Piece([], b"")
    if after:
        start_us = max(start_us, int.from_bytes(after[:8]))
    records: list[Record] = []
    size = 0
    every = oldest_first(view, series_ids(view, series), start_us, end_us, keys, after=after)
    for looked_at, found in enumerate(every, 1):
        if not keys or found.carries(keys):
            records.append(found.record())
            size += len(found.body)
        if looked_at >= _PIECE_RECORDS or size >= _PIECE_BYTES:
            return Piece(records, found.order)
    return Piece(records, b"")


def carried_names(view: View, series: str, start_us: int, end_us: int) -> list[str]:
    """The names that the records of a range carry, sorted."""
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    names: set[str] = set()
    for series_id in series_ids(view, [series]).values() if start_us <= end_us else ():
        for extent in extents_up(view, series_id, start_us, end_us):
            _add_sealed_names(names, view, extent, start_us, end_us)
        for hour in walk_hours(view, series_id, start_us, end_us):
            if hour.tally is not None and (hour.is_within(start_us, end_us) or names.issuperset(hour.tally.names)):
                names.update(hour.tally.names)
            else:
                _add_names(names, blocks.down(view, series_id, *hour.cut(start_us, end_us)))
    return sorted(names)


def _add_names(names: set[str], records: Iterable[tuple[bytes, bytes]]) -> None:
    """Adds what records carry. Most carry what the one before did, which is seen sooner than each name is looked up."""
    last: tuple[str, ...] = ()
    for _, body in records:
        carried = tuple(parse_points(body))
        if carried != last:
            names.update(carried)
            last = carried


def _add_sealed_names(names: set[str], view: View, extent: Extent, start_us: int, end_us: int) -> None:
    with sealed.guarded(extent):
        carried = open_segment(view, extent).names
        if names.issuperset(carried):
            return
        if extent.is_whole and extent.is_within(start_us, end_us):
            names.update(carried)
            return
    _add_names(names, sealed.down_of(view, extent, start_us, end_us))


def has_record_before(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has a record earlier than ``time_us``."""
    keys = ascending_keys(view, record_key(series_id, 0), record_key(series_id, time_us))
    return any(True for _ in keys) or any(True for _ in extents_up(view, series_id, 0, time_us - 1))


def has_record_from(view: View, series_id: int, time_us: int) -> bool:
    """Whether the series has a record at ``time_us`` or later."""
    rows = blocks.up(view, series_id, time_us, LATEST_US)
    return any(True for _ in rows) or any(True for _ in extents_up(view, series_id, time_us, LATEST_US))
