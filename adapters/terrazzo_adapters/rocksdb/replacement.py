"""Records in the place of others: what goes, what comes, and which counters and columns that touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rocksdict import WriteBatch

from terrazzo.ports.store import Record
from terrazzo_adapters.rocksdb.batch import Batch, Slot, put_count
from terrazzo_adapters.rocksdb.blocks import Entry, cut
from terrazzo_adapters.rocksdb.keys import HOUR_US, column_key, mark_key, tally_key
from terrazzo_adapters.rocksdb.walk import View


@dataclass(frozen=True, slots=True)
class Replacement:
    """One commit.

    ``gone``: keys; ``kept``: entries for what of theirs is not replaced;
    ``left``: counters of the hours that only lose records; ``touched``: all hours that change;
    ``ends``: the series has no records any more.
    """

    batch: Batch
    gone: Sequence[bytes]
    kept: Sequence[Entry]
    left: Mapping[Slot, int]
    touched: Collection[Slot]
    ends: bool

    def fill(self, batch: WriteBatch) -> None:
        """Puts everything. Columns go first: an hour may have as many records as before, and others."""
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


def check_records(series: str, start_us: int, end_us: int, records: Sequence[Record]) -> None:
    """Raises ``ValueError`` for a record that is not of this series and range."""
    for place, record in enumerate(records):
        if record.series != series or not start_us <= record.time_us <= end_us:
            raise ValueError(f"records[{place}]: not of {series} from {start_us} to {end_us}")


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a range has: ``counts`` of records by counter, the keys of its entries, and what those keep of others."""

    counts: Counter[Slot]
    keys: list[bytes]
    kept: list[Entry]


def find_replaced(view: View, series_id: int, start_us: int, end_us: int) -> Replaced:
    """The records of a range, both ends inclusive."""
    found = Replaced(Counter(), [], [])
    for (key, _), times, kept in cut(view, series_id, start_us, end_us):
        found.counts.update(series_id << 32 | time_us // HOUR_US for time_us in times)
        found.keys.append(key)
        found.kept.extend(kept)
    return found
