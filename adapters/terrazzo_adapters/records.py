"""Checks of records that all stores share."""

from __future__ import annotations

from collections.abc import Sequence

from terrazzo.ports.store import Record


def check_records(series: str, start_us: int, end_us: int, records: Sequence[Record]) -> None:
    """Checks that all records are of one series and range, both ends inclusive (UTC microseconds).

    Raises:
        ValueError: one is not; names its place in ``records``.
    """
    for place, record in enumerate(records):
        if record.series != series or not start_us <= record.time_us <= end_us:
            raise ValueError(f"records[{place}]: not of {series} from {start_us} to {end_us}")
