"""The hours of a series: how many records each has, and which names they carry, where that is stored already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from rocksdict import WriteBatch

from terrazzo_adapters.columns.name_tally import HourTally
from terrazzo_adapters.keyvalue.walk import View, ascending, descending
from terrazzo_adapters.rocksdb.keys import HOUR_US, column_key, count_hour, count_key, mark_key, parse_number, tally_key

_TOGETHER = 10_000  # records that are decoded at once

_decoder = msgspec.msgpack.Decoder(HourTally)


class Hour(msgspec.Struct, frozen=True):
    """An hour with records. ``tally``: None if it has none that is valid."""

    number: int
    count: int
    tally: HourTally | None

    def cut(self, start_us: int, end_us: int) -> tuple[int, int]:
        """The part of a range that lies in the hour, both ends inclusive."""
        first_us = self.number * HOUR_US
        return max(start_us, first_us), min(end_us, first_us + HOUR_US - 1)

    def is_within(self, start_us: int, end_us: int) -> bool:
        """Whether the whole hour lies in the range."""
        return start_us <= self.number * HOUR_US and (self.number + 1) * HOUR_US - 1 <= end_us


def walk_hours(view: View, series_id: int, start_us: int, end_us: int, *, backwards: bool = False) -> Iterator[Hour]:
    """The hours of a series that have records and overlap the range."""
    first, last = start_us // HOUR_US, end_us // HOUR_US
    walk = _down if backwards else _up
    tallies, ahead = None, None  # to place a cursor costs more than what follows: where all is sealed there is no hour
    for key, value in walk(view, count_key(series_id, first), count_key(series_id, last + 1)):
        place = key[1:]
        if tallies is None:
            tallies = walk(view, tally_key(series_id, first), tally_key(series_id, last + 1))
            ahead = next(tallies, None)
        while ahead is not None and (ahead[0][1:] > place if backwards else ahead[0][1:] < place):
            ahead = next(tallies, None)
        tally = _decoder.decode(ahead[1]) if ahead is not None and ahead[0][1:] == place else None
        count = parse_number(value)
        yield Hour(count_hour(key), count, tally if tally is not None and tally.count == count else None)


def together(hours: Iterable[Hour], start_us: int, end_us: int) -> Iterator[list[Hour]]:
    """The hours that overlap a range: some in a row whose records are decoded together, others alone."""
    found: list[Hour] = []
    count = 0  # records
    for hour in hours:
        if hour.number * HOUR_US > end_us:
            break
        if (hour.number + 1) * HOUR_US <= start_us:
            continue
        if found and (hour.tally is not None or count + hour.count > _TOGETHER):
            yield found
            found, count = [], 0
        if hour.tally is not None:
            yield [hour]
        else:
            found.append(hour)
            count += hour.count
    if found:
        yield found


def _up(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    return ascending(view, start, end)


def _down(view: View, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    for entry in descending(view, end, start):
        if entry[0] != end:
            yield entry


class BuiltHour(msgspec.Struct, frozen=True):
    """An hour's tally and columns, to be stored."""

    slot: int
    tally: HourTally
    columns: Mapping[str, bytes]

    @property
    def count(self) -> int:
        """The number of records that the tally and the columns were made from."""
        return self.tally.count

    def fill(self, batch: WriteBatch) -> None:
        """Adds them to a batch, over earlier ones: an hour's names only become more until records are removed."""
        place = divmod(self.slot, 1 << 32)
        for name, column in self.columns.items():
            batch.put(column_key(*place, name), column)
        batch.put(tally_key(*place), msgspec.msgpack.encode(self.tally))
        batch.delete(mark_key(*place))
