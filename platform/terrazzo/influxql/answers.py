"""Series as InfluxDB's JSON and CSV, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, Protocol

import msgspec

from terrazzo.csv_text import csv_lines
from terrazzo.influxql.moments import Epoch
from terrazzo.influxql.select import ResultSeries
from terrazzo.influxql.vectors import Times
from terrazzo.ports.store import Value

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
            listed = series.values[start:end]
            yield Piece(series.name, series.tags, series.columns, listed, end < len(series.values))
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


_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def _text(time_ns: int, zone: tzinfo) -> str:
    seconds, fraction = divmod(time_ns, 10**9)
    moment = (_ZERO + timedelta(seconds=seconds)).astimezone(zone)
    text = moment.isoformat(timespec="seconds")
    date, offset = text[:19], text[19:]
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{date}{digits}{'Z' if offset == '+00:00' else offset}"


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


class Encoder(Protocol):
    """Encodes an answer: ``begin``, then ``result`` for each statement, then ``end``."""

    def begin(self) -> bytes:
        """The bytes before the first result; they may be empty."""

    def result(self, number: int, found: Sequence[ResultSeries | Listing], error: str, zone: tzinfo) -> Iterator[bytes]:
        """The pieces of one statement's result, none empty; ``error`` is why it has none."""

    def end(self) -> bytes:
        """The bytes after the last result."""


def encoder_of(*, epoch: Epoch, chunk: int, is_csv: bool) -> Encoder:
    """An encoder; ``chunk``: the rows of a chunk, each of which is a document; 0: the answer is one document."""
    if is_csv:
        return _Csv(epoch)
    return _Chunked(epoch, chunk) if chunk else _Whole(epoch)


class _Whole:
    """One document with all results."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch

    def begin(self) -> bytes:
        return b'{"results":['

    def end(self) -> bytes:
        return b"]}\n"

    def result(self, number: int, found: Sequence[ResultSeries | Listing], error: str, zone: tzinfo) -> Iterator[bytes]:
        before = b"," if number else b""
        if error or not found:
            yield before + msgspec.json.encode(_empty(number, error))
            return
        yield before + f'{{"statement_id":{number},"series":['.encode()
        for place, series in enumerate(found):
            yield from self._series(b"," if place else b"", series, zone)
        yield b"]}"

    def _series(self, before: bytes, series: ResultSeries | Listing, zone: tzinfo) -> Iterator[bytes]:
        is_first, has_rows = True, False
        for piece in pieces_of(series, self._epoch, zone, ROWS_OF_PIECE):
            rows = msgspec.json.encode(piece.values)[1:-1]
            if is_first:
                head = msgspec.json.encode(_described(piece._replace(values=(), goes_on=False)))[:-1]
                yield before + head + (b',"values":[' if rows else b"") + rows
                has_rows = bool(rows)
            else:
                yield b"," + rows
            is_first = False
        yield b"]}" if has_rows else b"}"


class _Chunked:
    """A document for each chunk."""

    def __init__(self, epoch: Epoch, rows: int) -> None:
        self._epoch = epoch
        self._rows = rows

    def begin(self) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""

    def result(self, number: int, found: Sequence[ResultSeries | Listing], error: str, zone: tzinfo) -> Iterator[bytes]:
        if error or not found:
            yield msgspec.json.encode({"results": [_empty(number, error)]}) + b"\n"
        for place, series in enumerate(found):
            for piece in pieces_of(series, self._epoch, zone, self._rows):
                result: dict[str, object] = {"statement_id": number, "series": [_described(piece)]}
                if piece.goes_on or place + 1 < len(found):
                    result["partial"] = True
                yield msgspec.json.encode({"results": [result]}) + b"\n"


class _Csv:
    """InfluxDB's CSV: name, tags and columns; a new head, after an empty line, wherever the columns change."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch: Epoch = epoch or "ns"
        self._columns: Sequence[str] | None = None

    def begin(self) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""

    def result(self, number: int, found: Sequence[ResultSeries | Listing], error: str, zone: tzinfo) -> Iterator[bytes]:
        if error:
            yield self._lines(["error"], [[error]])
        for series in found:
            for piece in pieces_of(series, self._epoch, zone, ROWS_OF_PIECE):
                tags = ",".join(f"{name}={value}" for name, value in sorted(piece.tags.items()))
                rows = [[piece.name, tags, *row] for row in piece.values]
                yield self._lines(["name", "tags", *piece.columns], rows)

    def _lines(self, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> bytes:
        if columns == self._columns:
            return csv_lines(rows, end="\n")
        before = b"" if self._columns is None else b"\n"
        self._columns = columns
        return before + csv_lines([columns, *rows], end="\n")


def _empty(number: int, error: str) -> dict[str, object]:
    return {"statement_id": number, "error": error} if error else {"statement_id": number}
