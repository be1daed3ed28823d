"""Reads uploaded rows: CSV as spreadsheet programs write it, a JSON array, or JSON lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from terrazzo.csv_text import bare_text
from terrazzo.errors import BadParameter

MOST_ROWS = 100_000
MOST_CELL_CHARACTERS = 1 << 20
_DELIMITERS = ",;\t"
_SEPARATOR_LINE = "sep="  # the first line of some spreadsheet programs' files


class SourceRow(NamedTuple):
    """One record of the file; ``number`` is its row as a spreadsheet or editor shows it."""

    number: int
    values: dict[str, Any]
    surplus: int = 0  # cells beyond the header


class UploadedRows(NamedTuple):
    """The rows of a file. ``header`` is None where each row names its own columns (JSON)."""

    header: list[str] | None
    rows: Iterator[SourceRow]


def read_upload(data: bytes) -> UploadedRows:
    """The rows of a file, told apart by its first character; CSV unless that is ``[`` or ``{``.

    Raises:
        BadParameter: it can't be read at all.
    """
    return read_text(_decode(data))


def read_text(text: str) -> UploadedRows:
    """The rows of a text: CSV, JSON or JSON lines. Raises as ``read_upload``."""
    start = text.lstrip()[:1]
    if start == "[":
        return UploadedRows(None, _numbered(_json_array(text)))
    if start == "{":
        return UploadedRows(None, _json_lines(text))
    return _read_csv(text)


def read_objects(objects: list[dict[str, Any]]) -> UploadedRows:
    """The rows of a list of objects."""
    return UploadedRows(None, _numbered(objects))


def _decode(data: bytes) -> str:
    """Text in UTF-8, or in UTF-16 with a byte order mark, which spreadsheet programs call "Unicode text"."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadParameter("rows", f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None


def _numbered(objects: list[dict[str, Any]]) -> Iterator[SourceRow]:
    if len(objects) > MOST_ROWS:
        raise BadParameter("rows", f"more than {MOST_ROWS} rows")
    return (SourceRow(number, values) for number, values in enumerate(objects, 1))


def _json_array(text: str) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadParameter("rows", f"not a JSON array of objects: {error or 'nested too deeply'}") from None


def _json_lines(text: str) -> Iterator[SourceRow]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in enumerate(io.StringIO(text), 1):
        if not line.strip():
            continue
        if number > MOST_ROWS:
            raise BadParameter("rows", f"more than {MOST_ROWS} rows")
        try:
            yield SourceRow(number, decoder.decode(line))
        except (msgspec.MsgspecError, RecursionError) as error:
            reason = f"line {number}: not a JSON object: {error or 'nested too deeply'}"
            raise BadParameter("rows", reason) from None


def _read_csv(text: str) -> UploadedRows:
    text = text.removeprefix("\ufeff")
    first, _, rest = text.partition("\n")
    skipped = 0
    if first.lower().startswith(_SEPARATOR_LINE):
        delimiter, text, skipped = first.rstrip("\r")[len(_SEPARATOR_LINE) :] or ",", rest, 1
    else:
        delimiter = max(_DELIMITERS, key=first.count)
    if len(delimiter) != 1:
        raise BadParameter("rows", f"row 1: expected one character after sep=, got {delimiter[:10]!r}")
    csv.field_size_limit(MOST_CELL_CHARACTERS)
    cells = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header = _header(next(_lines(cells, 1 + skipped), (0, []))[1])
    return UploadedRows(header, _csv_rows(header, _lines(cells, 2 + skipped)))


def _header(cells: list[str]) -> list[str]:
    """The column names; empty cells at the end, which spreadsheets add, are dropped."""
    header = [name.strip() for name in cells]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise BadParameter("rows", "no header row: expected the names of the columns")
    for position, name in enumerate(header, 1):
        if not name:
            raise BadParameter("rows", f"row 1, column {position}: a column without a name")
        if header.index(name) != position - 1:
            raise BadParameter("rows", f"row 1: column {name} is there twice")
    return header


def _csv_rows(header: list[str], lines: Iterator[tuple[int, list[str]]]) -> Iterator[SourceRow]:
    """The rows under a header; empty cells count as not given, empty rows are skipped."""
    for number, cells in lines:
        if not any(cells):
            continue
        if number > MOST_ROWS + 1:
            raise BadParameter("rows", f"more than {MOST_ROWS} rows")
        values = {name: bare_text(cell) for name, cell in zip(header, cells, strict=False) if cell != ""}
        yield SourceRow(number, values, sum(map(bool, cells[len(header) :])))


def _lines(cells: Any, first: int) -> Iterator[tuple[int, list[str]]]:
    """Each row with its number as a spreadsheet shows it: a cell with line breaks is still in one row."""
    number = first
    while True:
        try:
            yield number, next(cells)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadParameter("rows", f"row {number}: not CSV: {error}") from None
        number += 1
