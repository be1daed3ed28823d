"""What a time-series store must answer, said as plainly as possible: one SQLite table and an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec.structs import astuple

from terrazzo.ports.store import Page, Record


class Oracle:
    """The same questions as ``TimeSeriesStore``, answered by SQL."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE record (arrival INTEGER PRIMARY KEY, series TEXT, time_us INTEGER, body BLOB)")
        self._db.execute("CREATE INDEX by_time ON record (series, time_us)")

    def append(self, records: Sequence[Record]) -> None:
        self._db.executemany("INSERT INTO record (series, time_us, body) VALUES (?, ?, ?)", map(astuple, records))

    def series(self, prefix: str) -> list[str]:
        rows = self._db.execute("SELECT DISTINCT series FROM record")
        return sorted(name for (name,) in rows if name.startswith(prefix))

    def latest(self, series: Sequence[str], limit: int) -> list[Record]:
        return self._newest_first(series, 0, 2**62, offset=0, limit=limit)

    def first_after(self, series: Sequence[str], time_us: int) -> Record | None:
        rows = self._db.execute(
            f"SELECT series, time_us, body FROM record WHERE series IN ({_marks(series)}) AND time_us > ?"
            " ORDER BY time_us, arrival LIMIT 1",
            (*series, time_us),
        )
        row = rows.fetchone()
        return Record(*row) if row else None

    def page(self, series: Sequence[str], start_us: int, end_us: int, *, offset: int, limit: int) -> Page:
        rows = self._db.execute(
            f"SELECT count(*) FROM record WHERE series IN ({_marks(series)}) AND time_us BETWEEN ? AND ?",
            (*series, start_us, end_us),
        )
        return Page(self._newest_first(series, start_us, end_us, offset=offset, limit=limit), rows.fetchone()[0])

    def drop_before(self, time_us: int) -> None:
        self._db.execute("DELETE FROM record WHERE time_us < ?", (time_us,))

    def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record]) -> None:
        self._db.execute("DELETE FROM record WHERE series = ? AND time_us BETWEEN ? AND ?", (series, start_us, end_us))
        self.append(records)

    def _newest_first(self, series: Sequence[str], start_us: int, end_us: int, *, offset: int, limit: int):
        rows = self._db.execute(
            f"SELECT series, time_us, body FROM record WHERE series IN ({_marks(series)}) AND time_us BETWEEN ? AND ?"
            " ORDER BY time_us DESC, arrival DESC LIMIT ? OFFSET ?",
            (*series, start_us, end_us, limit, offset),
        )
        return [Record(*row) for row in rows]


def _marks(series: Sequence[str]) -> str:
    return ", ".join("?" * len(series))
