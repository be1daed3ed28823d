"""A look at the counters of all series, some at a time: which have records that are due to be sealed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from rocksdict import Snapshot

from terrazzo_adapters.keyvalue.walk import ascending, descending
from terrazzo_adapters.rocksdb.keys import HOUR_US, count_hour, count_key, parse_number
from terrazzo_adapters.rocksdb.sealing import Rule

_PIECE = 5_000  # counters, which takes a few milliseconds


class Found(NamedTuple):
    """``due``: ids of series; ``rest``: where to go on, None at the end; ``rows``: how many records are not sealed."""

    due: list[int]
    rest: Sweep | None
    rows: int


class Sweep(msgspec.Struct, frozen=True):
    """Where a look has come to: the next counter, and what was counted of the series that it is in."""

    rule: Rule
    start: bytes = count_key(0, 0)
    series_id: int = 0
    of_series: int = 0
    aged: int = 0
    rows: int = 0
    last_id: int = 0

    @property
    def part(self) -> float:
        """How much of all series it has seen, from 0 to 1."""
        return self.series_id / self.last_id if self.last_id else 0.0

    def on(self, view: Snapshot) -> Found:
        """Looks at the next counters."""
        due: set[int] = set()
        series_id, of_series, aged, rows = self.series_id, self.of_series, self.aged, self.rows
        cutoff_hour = self.rule.cutoff_us // HOUR_US
        key = b""
        for looked_at, (key, value) in enumerate(ascending(view, self.start, b"d")):
            if looked_at == _PIECE:
                rest = replace(self, start=key, series_id=series_id, of_series=of_series, aged=aged, rows=rows)
                return Found(sorted(due), replace(rest, last_id=self.last_id or _last_id(view)), rows)
            if key[1:5] != series_id.to_bytes(4):
                series_id, of_series, aged = int.from_bytes(key[1:5]), 0, 0
            count = parse_number(value)
            rows += count
            of_series += count
            aged += count if count_hour(key) < cutoff_hour else 0
            if of_series >= self.rule.due or aged >= self.rule.least:
                due.add(series_id)
        return Found(sorted(due), None, rows)


def _last_id(view: Snapshot) -> int:
    """The highest id of a series with counters."""
    last = next(descending(view, b"d", b"c"), None)
    return int.from_bytes(last[0][1:5]) if last else 0
