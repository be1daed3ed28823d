"""Series as InfluxDB's JSON and CSV, a piece at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Literal, NamedTuple

import msgspec

from terrazzo.influxql.select import ResultSeries
from terrazzo.influxql.vectors import Times
from terrazzo.ports.store import Value

Epoch = Literal["", "ns", "u", "ms", "s", "m", "h"]
"""In which unit times are told; empty: as text."""

_EPOCH_NS = {"ns": 1, "u": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
ROWS_OF_PIECE = 10_000
"""How many rows are encoded at once, and how many a chunk has unless the request says so."""


class Listing(NamedTuple):
    """A series of names, as SHOW answers: no times."""

    name: str
    columns: Sequence[str]
    values: Sequence[Sequence[Value]]
    tags: Mapping[str, str] = {}


class Piece(NamedTuple):
    """Some rows of a series. ``goes_on``: more of its rows follow."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    values: Sequence[Sequence[Value]]
    goes_on: bool


def pieces_of(series: ResultSeries | Listing, epoch: Epoch, zone: tzinfo, rows: int) -> Iterator[Piece]:
    """The rows of a series, at most so many at a time."""
    if isinstance(series, Listing):
        for start in range(0, max(1, len(series.values)), rows):
            end = start + rows
            part = series.values[start:end]
            yield Piece(series.name, series.tags, series.columns, part, end < len(series.values))
        return
    for start in range(0, len(series.times), rows):
        end = start + rows
        part = slice(start, end)
        columns = [vector.take(part).values() for vector in series.vectors]
        values = list(zip(times_as(series.times[part], epoch, zone), *columns, strict=True))
        yield Piece(series.name, series.tags, series.columns, values, end < len(series.times))


def times_as(times: Times, epoch: Epoch, zone: tzinfo) -> list[Value]:
    """Times in a unit, or as RFC 3339 by a zone's clocks."""
    if epoch:
        return (times // _EPOCH_NS[epoch]).tolist()  # type: ignore[no-any-return]
    return [_text(time_ns, zone) for time_ns in times.tolist()]


_ZERO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _text(time_ns: int, zone: tzinfo) -> str:
    seconds, fraction = divmod(time_ns, 10**9)
    moment = (_ZERO + timedelta(seconds=seconds)).astimezone(zone)
    text = moment.isoformat(timespec="seconds")
    date, offset = text[:19], text[19:]
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{date}{digits}{'Z' if offset == '+00:00' else offset}"


def series_json(piece: Piece) -> bytes:
    """A piece as JSON; of a series that goes on it says so."""
    return msgspec.json.encode(_described(piece))


def _described(piece: Piece) -> dict[str, object]:
    found: dict[str, object] = {"name": piece.name} if piece.name else {}
    if piece.tags:
        found["tags"] = piece.tags
    found["columns"] = piece.columns
    if piece.values:
        found["values"] = piece.values
    if piece.goes_on:
        found["partial"] = True
    return found


class CsvLines:
    """InfluxDB's CSV: name, tags and columns; a new head, after an empty line, wherever the columns change."""

    def __init__(self) -> None:
        self._columns: Sequence[str] | None = None

    def encode(self, piece: Piece) -> bytes:
        """The lines of a piece."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if piece.columns != self._columns:
            if self._columns is not None:
                text.write("\n")
            writer.writerow(("name", "tags", *piece.columns))
            self._columns = piece.columns
        tags = ",".join(f"{name}={value}" for name, value in sorted(piece.tags.items()))
        writer.writerows((piece.name, tags, *map(_cell, row)) for row in piece.values)
        return text.getvalue().encode()


def _cell(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value
