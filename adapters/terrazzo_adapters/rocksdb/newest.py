"""``Newest``: the newest records of series in memory, so that polling dashboards need no other thread."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from terrazzo.ports.store import Record

MOST_SERIES = 10_000
MOST_BYTES = 2_048  # of a body; a longer one is read each time


class Newest:
    """The newest records of the series that are asked for. The writer updates them, readers add them.

    ``generation`` rises with each commit: a reader notes it before its snapshot and passes it to ``fill``.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._records: dict[str, Record] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """The number of series held."""
        return len(self._records)

    def get(self, series: str) -> Record | None:
        """The newest record, None if it isn't held."""
        return self._records.get(series)

    def fill(self, record: Record, generation: int) -> None:
        """Adds the newest record in a reader's snapshot, unless something was committed since ``generation``."""
        if len(record.body) > MOST_BYTES:
            return
        with self._lock:
            if generation != self.generation:
                return
            if len(self._records) >= MOST_SERIES:
                self._records.clear()
            self._records[record.series] = record

    def on_append(self, records: Sequence[Record]) -> None:
        """Applies a commit, in order of arrival: of two records at the same time the later one is the newest."""
        held = self._records
        with self._lock:
            self.generation += 1
            for record in records if held else ():
                before = held.get(record.series)
                if before is not None and record.time_us >= before.time_us:
                    held[record.series] = record
                    if len(record.body) > MOST_BYTES:
                        del held[record.series]

    def forget(self) -> None:
        """Removes everything: after retention, and when it is not known what was stored."""
        with self._lock:
            self.generation += 1
            self._records.clear()
