"""Time series as files: CSV, JSON lines or MessagePack, encoded piece by piece.

A *row* is a record's time and named cells. CSV has a column for each name, so that the names have to be known when it
begins; the others have an object a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from terrazzo.csv_text import csv_lines
from terrazzo.ports.store import Value
from terrazzo.times import to_datetime

FileFormat = Literal["csv", "jsonl", "msgpack"]
MEDIA_TYPES: Mapping[FileFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "msgpack": "application/vnd.msgpack",
}


class UnforeseenName(Exception):
    """A record carries a name that has no column: it came while the export went on."""


class Row(NamedTuple):
    """``cells``: what a CSV has columns for; ``fields``: what an object has beside ``time``."""

    time_us: int
    cells: Mapping[str, Value]
    fields: Mapping[str, object]


class FileEncoder(Protocol):
    """Encodes one file, piece by piece: ``begin``, then ``encode`` for each piece."""

    def begin(self) -> bytes:
        """The bytes before the first row."""

    def encode(self, rows: Iterable[Row]) -> bytes:
        """The bytes of some rows."""


def file_encoder(format: FileFormat, columns: Sequence[str]) -> FileEncoder:
    """An encoder; ``columns`` are those of a CSV after ``time``."""
    if format == "csv":
        return _Csv(columns)
    return _Objects(msgspec.json.encode, b"\n") if format == "jsonl" else _Objects(msgspec.msgpack.encode, b"")


def exact_time(time_us: int) -> str:
    """``2026-03-01T08:00:00.250000Z``: always UTC, always with microseconds."""
    return to_datetime(time_us).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Csv:
    """``csv_lines``: a missing or null value is an empty cell, and nothing is a formula."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._known = frozenset(columns)

    def begin(self) -> bytes:
        """The header line of a CSV file."""
        return csv_lines([["time", *self._columns]])

    def encode(self, rows: Iterable[Row]) -> bytes:
        """Raises ``UnforeseenName``."""
        return csv_lines(map(self._line, rows))

    def _line(self, row: Row) -> list[object]:
        if not self._known.issuperset(row.cells):
            raise UnforeseenName(", ".join(sorted(row.cells.keys() - self._known)))
        return [exact_time(row.time_us), *map(row.cells.get, self._columns)]


class _Objects:
    """Encodes each row as one object."""

    def __init__(self, encode: Callable[[object], bytes], end: bytes) -> None:
        self._encode = encode
        self._end = end

    def begin(self) -> bytes:
        """No bytes: these files have no header."""
        return b""

    def encode(self, rows: Iterable[Row]) -> bytes:
        """The rows as objects, one after the other."""
        encode, end = self._encode, self._end
        return b"".join(encode({"time": exact_time(row.time_us), **row.fields}) + end for row in rows)
