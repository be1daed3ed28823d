"""The newest records of the series that are asked for it, in memory: what dashboards poll needs no other thread."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from terrazzo.ports.store import Record

MOST_SERIES = 10_000
MOST_BYTES = 2_048  # of a body; a longer one is read each time


class Newest:
    """Kept right by the writer after each commit; filled by readers when nothing was committed meanwhile.

    ``generation`` rises with each commit: a reader notes it before its snapshot and hands it to ``fill``.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._records: dict[str, Record] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """How many series are held."""
        return len(self._records)

    def get(self, series: str) -> Record | None:
        """The newest record, None where it isn't held."""
        return self._records.get(series)

    def fill(self, record: Record, generation: int) -> None:
        """Holds what a reader found in a snapshot of that generation or a later one."""
        if len(record.body) > MOST_BYTES:
            return
        with self._lock:
            if generation != self.generation:
                return
            if len(self._records) >= MOST_SERIES:
                self._records.clear()
            self._records[record.series] = record

    def on_append(self, records: Sequence[Record]) -> None:
        """Takes over what was committed, in order of arrival: of two at the same time the later is the newest."""
        held = self._records
        with self._lock:
            self.generation += 1
            for record in records if held else ():
                before = held.get(record[0])
                if before is not None and record[1] >= before[1]:
                    held[record[0]] = record
                    if len(record[2]) > MOST_BYTES:
                        del held[record[0]]

    def forget(self) -> None:
        """Holds nothing any more: after retention, and when it is not known what was stored."""
        with self._lock:
            self.generation += 1
            self._records.clear()
