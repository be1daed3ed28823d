"""Records on disk: one in an entry, or several of a series in one entry, a *block*.

The records of one commit in one series within ``SPAN_US`` and one UTC hour form a block: its key is that of its first
record with one more byte. An entry costs RocksDB and the interpreter the same whatever it holds, so that a series with
many records in a commit is written and read in a fraction of the time. Other records may later lie between those of a
block; readers put them in order. A long record is an entry of its own, shortened where that is possible.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple, cast

import msgspec

from terrazzo_adapters.keyvalue.long_values import LEAST_BYTES, lengthened, shortened
from terrazzo_adapters.keyvalue.walk import View, ascending, descending
from terrazzo_adapters.rocksdb.keys import HOUR_US, ORDER, pack_record, record_key, record_time

SPAN_US = 250_000
"""The most microseconds between a block's first and last record: as far as a reader has to look back."""


Arrivals = Sequence[tuple[int, int, bytes]]
"""Records of one series: time_us, arrival number, body; in that order."""

KeyValue = tuple[bytes, bytes]
"""A key and a value as they are on disk."""

OrderedBody = tuple[bytes, bytes]
"""A record's ``order``, that is its time and arrival number as bytes that sort, and its body."""

_LEAST_RECORDS = 4  # fewer are written as fast one by one
_MOST_RECORDS = 128
_MOST_BYTES = 32 * 1024
_PIECE_RECORDS = 64  # together, for who reads many
_ROWS, _ROWS_BYTES = 1_024, 1 << 20  # the same for who reads thousands: with more at once their memory is a new one
_ORDER_BYTES = 16
_BLOCK = b"\x01"  # the last byte of a block's key
_SHORTENED = b"\x02"  # of a record's whose body is a frame of zstd
_SINGLE = 21  # bytes of a record's key
_pack_order = Struct(">QQ").pack
_KEY, _VALUE = itemgetter(0), itemgetter(1)


class _Block(NamedTuple):
    """The value of a block: times, arrival numbers and bodies, column by column."""

    times_us: list[int]
    arrivals: list[int]
    bodies: list[bytes]

    def within(self, least: bytes, end: bytes) -> list[OrderedBody]:
        """Its records from the ``order`` in ``least`` on, and before that in ``end``; mostly all."""
        ordered = list(zip(map(_pack_order, self.times_us, self.arrivals), self.bodies, strict=True))
        if least <= ordered[0][0] and ordered[-1][0] < end:
            return ordered
        return [each for each in ordered if least <= each[0] < end]

    def columns(self, least: bytes, end: bytes) -> Piece:
        """The same as ``within`` column by column."""
        orders = list(map(_pack_order, self.times_us, self.arrivals))
        if least <= orders[0] and orders[-1] < end:
            return orders, self.bodies
        first, last = bisect_left(orders, least), bisect_left(orders, end)
        return orders[first:last], self.bodies[first:last]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Block).decode


def pack(series_id: int, run: Arrivals) -> list[KeyValue]:
    """The entries of a run of records, in key order."""
    if len(run) < _LEAST_RECORDS:
        return _alone(series_id, run)
    first_us, first_arrival, _ = run[0]
    if len(run) <= _MOST_RECORDS and run[-1][0] <= _last_of_block(first_us):  # as most of a commit are: one block
        whole = tuple(zip(*run))  # noqa: B905 - the hot path, and all are triples
        if sum(map(len, whole[2])) <= _MOST_BYTES:
            return [(pack_record(b"r", series_id, first_us, first_arrival) + _BLOCK, _encode(whole))]
    entries: list[KeyValue] = []
    start = packed = 0  # what is before ``packed`` is in ``entries``
    while start <= len(run) - _LEAST_RECORDS:
        first_us = run[start][0]
        columns = () if run[start + _LEAST_RECORDS - 1][0] - first_us > SPAN_US else _block_from(run, start)
        if columns:
            entries += _alone(series_id, run[packed:start])
            entries.append((pack_record(b"r", series_id, first_us, run[start][1]) + _BLOCK, _encode(columns)))
            start = packed = start + len(columns[0])
        else:
            start += 1
    entries += _alone(series_id, run[packed:])
    return entries


def _alone(series_id: int, run: Arrivals) -> list[KeyValue]:
    return [
        (pack_record(b"r", series_id, time_us, arrival), body)
        if len(body) < LEAST_BYTES
        else _long(pack_record(b"r", series_id, time_us, arrival), body)
        for time_us, arrival, body in run
    ]


def _long(key: bytes, body: bytes) -> KeyValue:
    frame = shortened(body)
    return (key, body) if frame is None else (key + _SHORTENED, frame)


def _is_block(key: bytes) -> bool:
    return len(key) > _SINGLE and key[_SINGLE:] == _BLOCK


def records_in(key: bytes, value: bytes) -> int:
    """How many records an entry has."""
    return len(_decode(value).times_us) if _is_block(key) else 1


def _body(key: bytes, value: bytes) -> bytes:
    """The body of an entry that is one record."""
    return value if len(key) == _SINGLE else lengthened(value)


def _last_of_block(first_us: int) -> int:
    """The latest time in a block that begins at a time."""
    return min(first_us + SPAN_US, first_us - first_us % HOUR_US + HOUR_US - 1)


def _block_from(run: Arrivals, start: int) -> Sequence[Sequence[Any]]:
    """The columns of the block that begins at ``start``; empty if it would have too few records."""
    first_us, end = run[start][0], min(start + _MOST_RECORDS, len(run))
    end_us = _last_of_block(first_us)
    if run[end - 1][0] > end_us:
        end = bisect_left(run, (end_us + 1,), start, end)
    columns = tuple(zip(*run[start:end]))  # noqa: B905 - the hot path, and all are triples
    if sum(map(len, columns[2])) > _MOST_BYTES:
        most = bisect_right(list(accumulate(map(len, columns[2]))), _MOST_BYTES)
        columns = tuple(column[:most] for column in columns)
    return columns if len(columns[0]) >= _LEAST_RECORDS else ()


def up(view: View, series_id: int, start_us: int, end_us: int, *, after: bytes = b"") -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, oldest first; only those after the ``order`` in ``after``."""
    least, end = max(_order(start_us), after + b"\0" if after else b""), _order(end_us + 1)
    held: list[OrderedBody] = []  # of blocks, the next one last
    for key, value in ascending(view, record_key(series_id, _look_back(start_us)), record_key(series_id, end_us + 1)):
        order = key[ORDER:_SINGLE]
        while held and held[-1][0] < order:
            yield held.pop()
        if not _is_block(key):
            if order >= least:
                yield order, _body(key, value)
        else:
            held += _decode(value).within(least, end)
            held.sort(reverse=True)
    yield from reversed(held)


class Rows(NamedTuple):
    """Records of one series, oldest first.

    ``orders``: times and arrival numbers, in the last 16 of ``stride`` bytes for each.
    """

    orders: bytes
    stride: int
    bodies: Sequence[bytes]


def rows(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[Rows]:
    """The records of a range, both ends inclusive, many at a time: in half the time that ``up`` takes."""
    start, end = record_key(series_id, start_us), record_key(series_id, end_us + 1)
    entries = cast("Iterator[KeyValue]", view.items(from_key=record_key(series_id, _look_back(start_us))))
    after, together = b"", _PIECE_RECORDS
    while some := list(islice(entries, together)):
        keys = list(map(_KEY, some))
        first, stop = bisect_left(keys, start), bisect_left(keys, end)
        if not set(map(len, keys[:stop])) <= {_SINGLE}:
            yield from _rows_of_blocks(view, series_id, start_us, end_us, after)
            return
        if first < stop:
            bodies = list(map(_VALUE, some[first:stop]))
            yield Rows(b"".join(keys[first:stop]), _SINGLE, bodies)
            after, together = keys[stop - 1][ORDER:], _next_length(bodies)
        if stop < len(keys):
            return


def _next_length(bodies: Sequence[bytes]) -> int:
    """How many records to read after these: as many as are not too long if they are alike."""
    return max(1, min(_ROWS, _ROWS_BYTES * len(bodies) // (sum(map(len, bodies)) or 1)))


def _rows_of_blocks(view: View, series_id: int, start_us: int, end_us: int, after: bytes) -> Iterator[Rows]:
    """The same where entries are blocks, or not as they came, from behind the ``order`` in ``after`` on."""
    orders: list[bytes] = []
    bodies: list[bytes] = []
    size = 0
    for more, further in pieces(view, series_id, int.from_bytes(after[:8]) if after else start_us, end_us):
        behind = bisect_right(more, after)
        orders += more[behind:]
        bodies += further[behind:]
        size += sum(map(len, further))
        if len(orders) >= _ROWS or size >= _ROWS_BYTES:
            yield Rows(b"".join(orders), _ORDER_BYTES, bodies)
            orders, bodies, size = [], [], 0
    if orders:
        yield Rows(b"".join(orders), _ORDER_BYTES, bodies)


def down(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[OrderedBody]:
    """The records of a range, both ends inclusive, newest first."""
    least, end = _order(start_us), _order(end_us + 1)
    held: list[OrderedBody] = []  # that an entry further down may have others before, the next one last
    next_us = 0  # its time
    for key, value in descending(view, record_key(series_id, end_us + 1), record_key(series_id, _look_back(start_us))):
        time_us = record_time(key)
        while held and next_us - time_us > SPAN_US:
            yield held.pop()
            next_us = int.from_bytes(held[-1][0][:8]) if held else 0
        if not _is_block(key):
            if time_us >= start_us:
                insort(held, (key[ORDER:_SINGLE], _body(key, value)))
                next_us = max(next_us, time_us)
        else:
            held += _decode(value).within(least, end)
            held.sort()
            next_us = int.from_bytes(held[-1][0][:8]) if held else 0
    yield from reversed(held)


Piece = tuple[list[bytes], list[bytes]]
"""Records that follow each other: the ``order`` of each, and the bodies."""


def pieces(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[Piece]:
    """The records of a range, both ends inclusive, oldest first, for who reads all of them: in half of ``up``'s time.

    Whole blocks go on as they are. A piece has 64 records or more, but for the last.
    """
    least, end = _order(start_us), _order(end_us + 1)
    orders: list[bytes] = []
    bodies: list[bytes] = []
    for key, value in ascending(view, record_key(series_id, _look_back(start_us)), record_key(series_id, end_us + 1)):
        order = key[ORDER:_SINGLE]
        if len(orders) >= _PIECE_RECORDS and (whole := bisect_left(orders, order)):  # what comes is not before it
            yield orders[:whole], bodies[:whole]
            del orders[:whole], bodies[:whole]
        behind = orders[-1] if orders else b""
        if _is_block(key):
            found = _decode(value).columns(least, end)
            orders += found[0]
            bodies += found[1]
        elif order >= least:
            orders.append(order)
            bodies.append(_body(key, value))
        if order < behind:
            in_order = sorted(zip(orders, bodies, strict=True))
            orders, bodies = [each for each, _ in in_order], [body for _, body in in_order]
    if orders:
        yield orders, bodies


def count(view: View, series_id: int, start_us: int, end_us: int) -> int:
    """The number of records in a range, both ends inclusive."""
    return sum(len(times) for _, times in _entries(view, series_id, start_us, end_us))


def cut(
    view: View, series_id: int, start_us: int, end_us: int
) -> Iterator[tuple[KeyValue, Sequence[int], list[KeyValue]]]:
    """For each entry with records in a range: the entry, their times, and the entries that keep its other records."""
    for entry, times in _entries(view, series_id, start_us, end_us):
        yield entry, times, _without(series_id, entry, start_us, end_us)


def behind(view: View, series_id: int, time_us: int) -> list[KeyValue]:
    """The entries that keep the records from a time on of blocks that begin before it."""
    start = record_key(series_id, time_us)
    parts = cut(view, series_id, max(0, time_us - SPAN_US), time_us - 1)
    return [entry for _, _, kept in parts for entry in kept if entry[0] >= start]


class Edges(NamedTuple):
    """What a removal of a range must change beside it: blocks that lie across one of its ends.

    ``gone``: keys before the range; ``kept``: entries that keep their other records.
    """

    gone: list[bytes]
    kept: list[KeyValue]


def edges(view: View, series_id: int, start_us: int, end_us: int) -> Edges:
    """The blocks that lie across the ends of a range; both ends are inclusive."""
    found = Edges([], [])
    start = record_key(series_id, start_us)
    for entry, _ in _entries(view, series_id, start_us, min(end_us, start_us + SPAN_US)):
        if entry[0] < start:
            found.gone.append(entry[0])
            found.kept.extend(_without(series_id, entry, start_us, end_us))
    for entry in ascending(
        view, max(start, record_key(series_id, _look_back(end_us))), record_key(series_id, end_us + 1)
    ):
        if _is_block(entry[0]) and _decode(entry[1]).times_us[-1] > end_us:
            found.kept.extend(_without(series_id, entry, start_us, end_us))
    return found


def _entries(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[tuple[KeyValue, Sequence[int]]]:
    """The entries that have records in a range, each with those records' times."""
    for entry in ascending(view, record_key(series_id, _look_back(start_us)), record_key(series_id, end_us + 1)):
        key, value = entry
        times = _decode(value).times_us if _is_block(key) else [record_time(key)]
        if times[0] < start_us or times[-1] > end_us:
            times = [time_us for time_us in times if start_us <= time_us <= end_us]
        if times:
            yield entry, times


def _without(series_id: int, entry: KeyValue, start_us: int, end_us: int) -> list[KeyValue]:
    """The entries that replace one when its records in a range are removed."""
    if not _is_block(entry[0]):
        return []
    every = zip(*_decode(entry[1]), strict=True)
    return list(pack(series_id, [each for each in every if not start_us <= each[0] <= end_us]))


def _look_back(time_us: int) -> int:
    """The earliest time at which a block that reaches ``time_us`` can begin."""
    return max(time_us - SPAN_US, time_us - time_us % HOUR_US)


def _order(time_us: int) -> bytes:
    """The lowest ``order`` of that time: below all its records, above those of every earlier time."""
    return time_us.to_bytes(8)
