"""The commit that replaces the records of a range: keys, counters and columns that it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rocksdict import WriteBatch

from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb.batch import EncodedBatch, SeriesHour, put_count
from terrazzo_adapters.rocksdb.blocks import KeyValue, cut
from terrazzo_adapters.rocksdb.keys import HOUR_US, column_key, mark_key, tally_key


@dataclass(frozen=True, slots=True)
class ReplacementBatch:
    """The commit of a replacement.

    ``gone``: keys to delete; ``kept``: entries for records of theirs that are not replaced;
    ``left``: counters of the hours that only lose records; ``touched``: all hours that change;
    ``ends``: the series has no records any more.
    """

    batch: EncodedBatch
    gone: Sequence[bytes]
    kept: Sequence[KeyValue]
    left: Mapping[SeriesHour, int]
    touched: Collection[SeriesHour]
    ends: bool

    def fill(self, batch: WriteBatch) -> None:
        """Adds all changes to RocksDB's batch.

        Columns are deleted first: the hour may end up with as many records as before, but others.
        """
        for key in self.gone:
            batch.delete(key)
        for entry in self.kept:
            batch.put(*entry)
        for slot in self.touched:
            series_id, hour = divmod(slot, 1 << 32)
            batch.delete(tally_key(series_id, hour))
            batch.delete_range(column_key(series_id, hour), column_key(series_id, hour + 1))
        for slot, count in self.left.items():
            put_count(batch, slot, count)
            mark = mark_key(*divmod(slot, 1 << 32))
            if count:
                batch.put(mark, b"")
            else:
                batch.delete(mark)
        self.batch.fill(batch)


@dataclass(frozen=True, slots=True)
class ReplacedRange:
    """The content of a range: ``counts`` of records by counter, the keys of its entries, and the others' entries.

    ``kept`` are the entries for records outside of the range that share an entry with some inside.
    """

    counts: Counter[SeriesHour]
    keys: list[bytes]
    kept: list[KeyValue]


def find_replaced(view: View, series_id: int, start_us: int, end_us: int) -> ReplacedRange:
    """What a replacement of a range removes, both ends inclusive (UTC microseconds)."""
    found = ReplacedRange(Counter(), [], [])
    for (key, _), times, kept in cut(view, series_id, start_us, end_us):
        found.counts.update(series_id << 32 | time_us // HOUR_US for time_us in times)
        found.keys.append(key)
        found.kept.extend(kept)
    return found
