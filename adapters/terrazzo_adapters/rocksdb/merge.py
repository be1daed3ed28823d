"""Merges the records of several series in order of time, lazily.

With ``keys`` only records that carry one of these names: segments and hours whose tally shows none are skipped, the
others are decoded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Set
from functools import partial
from itertools import compress, islice
from typing import NamedTuple

from terrazzo.ports.store import Record
from terrazzo_adapters.columns.points import carrying, parse_points
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks, sealed
from terrazzo_adapters.rocksdb.blocks import OrderedBody
from terrazzo_adapters.rocksdb.hours import walk_hours

_FIRST_DECODED, _MOST_DECODED = 64, 1_024  # records

ALL: Set[str] = frozenset()
"""As ``keys``: all records, whatever names they carry."""


class OrderedRecord(NamedTuple):
    """A record in a merge. ``order``: its time and arrival number, as bytes that sort."""

    order: bytes
    series: str
    body: bytes

    @property
    def time_us(self) -> int:
        return int.from_bytes(self.order[:8])

    def record(self) -> Record:
        """The record as ``terrazzo.ports.store`` has it."""
        return Record(self.series, self.time_us, self.body)

    def carries(self, keys: Set[str]) -> bool:
        """Whether it carries at least one of the names."""
        return not keys.isdisjoint(parse_points(self.body))


def newest_first(
    view: View, ids: Mapping[str, int], start_us: int, end_us: int, keys: Set[str] = ALL, *, wanted: int, skip: int = 0
) -> Iterator[OrderedRecord]:
    """The records of all the series in a range, both ends inclusive, newest first, without the first ``skip``.

    ``wanted``: how many will be taken.
    """
    newest = partial(_newest_of_one, view, start_us=start_us, end_us=end_us, keys=keys, wanted=wanted)
    if len(ids) == 1:
        ((series, series_id),) = ids.items()
        return newest(series, series_id, skip=skip)
    return islice(heapq.merge(*(newest(*item) for item in ids.items()), reverse=True), skip, None)


def _newest_of_one(
    view: View, series: str, series_id: int, *, start_us: int, end_us: int, keys: Set[str], wanted: int, skip: int = 0
) -> Iterator[OrderedRecord]:
    rows = _rows_down(view, series_id, start_us, end_us, keys) if keys else None
    found = sealed.down(view, series_id, start_us, end_us, rows=rows, keys=keys, skip=skip, wanted=wanted)
    return (OrderedRecord(order, series, body) for order, body in found)


def _rows_down(view: View, series_id: int, start_us: int, end_us: int, keys: Set[str]) -> Iterator[OrderedBody]:
    """Records that are not sealed and carry one of the names; hours that have none of them are passed over."""
    for hour in walk_hours(view, series_id, start_us, end_us, backwards=True):
        if hour.tally is None or hour.tally.carrying(keys):
            yield from _carrying(blocks.down(view, series_id, *hour.cut(start_us, end_us)), keys)


def _carrying(records: Iterator[OrderedBody], keys: Set[str]) -> Iterator[OrderedBody]:
    """Those that carry one of the names, some decoded together."""
    length = _FIRST_DECODED
    while some := list(islice(records, length)):
        yield from compress(some, carrying([body for _, body in some], keys))
        length = min(2 * length, _MOST_DECODED)


def oldest_first(
    view: View, ids: Mapping[str, int], start_us: int, end_us: int, keys: Set[str] = ALL, *, after: bytes = b""
) -> Iterator[OrderedRecord]:
    """As ``newest_first`` in the other order, and only what comes after the ``order`` in ``after``.

    With ``keys`` records without these names may be among them: only whole hours are skipped.
    """
    each = [
        _oldest_of_one(view, *item, start_us=start_us, end_us=end_us, keys=keys, after=after) for item in ids.items()
    ]
    return each[0] if len(each) == 1 else heapq.merge(*each)


def _oldest_of_one(
    view: View, series: str, series_id: int, *, start_us: int, end_us: int, keys: Set[str], after: bytes
) -> Iterator[OrderedRecord]:
    if keys:
        rows = _rows_up(view, series_id, start_us, end_us, keys, after)
        found = sealed.up(view, series_id, start_us, end_us, after=after, rows=rows, keys=keys)
    else:
        found = sealed.up(view, series_id, start_us, end_us, after=after)
    for order, body in found:
        yield OrderedRecord(order, series, body)


def _rows_up(
    view: View, series_id: int, start_us: int, end_us: int, keys: Set[str], after: bytes
) -> Iterator[OrderedBody]:
    for hour in walk_hours(view, series_id, start_us, end_us):
        if hour.tally is None or hour.tally.carrying(keys):
            yield from blocks.up(view, series_id, *hour.cut(start_us, end_us), after=after)
