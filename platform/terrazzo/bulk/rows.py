"""Reads uploaded rows: CSV as spreadsheet programs write it, a JSON array, or JSON lines."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import msgspec

from terrazzo.bulk.lookahead import Lookahead
from terrazzo.csv_text import bare_text
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import Steps, at_once
from terrazzo.reasons import say

MOST_ROWS = 100_000
MOST_CELL_CHARACTERS = 1 << 20
MOST_COLUMNS = 500
MOST_NAME_CHARACTERS = 200
_ROW_CHARACTERS = MOST_CELL_CHARACTERS + (64 << 10)  # what one step of reading may take
_ROW_DELIMITERS = 50_000  # commas in a row, those in its cells included
_PIECE_BYTES = 1 << 20  # that are decoded in one step
_DELIMITERS = ",;\t"
_JSON_BLANKS = re.compile(r"[ \t\r\n]+")
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
    return read_text(*at_once(decoded(data)))


def read_text(*pieces: str) -> UploadedRows:
    """The rows of a text in pieces: CSV, JSON or JSON lines. Raises as ``read_upload``."""
    text = Lookahead(pieces)
    start = text.fill(_ROW_CHARACTERS).lstrip()[:1]
    if start == "[":
        return UploadedRows(None, _json_array(text))
    if start == "{":
        return UploadedRows(None, _json_lines(text))
    return _read_csv(text)


def read_objects(objects: list[dict[str, Any]]) -> UploadedRows:
    """The rows of a list of objects."""
    return UploadedRows(None, _numbered(objects))


def decoded(data: bytes | bytearray) -> Steps[list[str]]:
    """Text in UTF-8, or in UTF-16 with a byte order mark, which spreadsheet programs call "Unicode text"; in steps.

    Stays in pieces: to put tens of megabytes together takes tens of milliseconds in one go.

    Raises:
        BadParameter: it is neither.
    """
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16" if is_wide else "utf-8-sig")()
    marked = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    texts = []
    for at in range(0, len(data), _PIECE_BYTES):
        begun = at - len(decoder.getstate()[0]) if at else marked
        try:
            texts.append(decoder.decode(data[at : at + _PIECE_BYTES], at + _PIECE_BYTES >= len(data)))
        except UnicodeDecodeError as error:
            raise BadParameter("rows", say("file_not_utf8", byte=begun + error.start)) from None
        yield
    return texts


def _numbered(objects: list[dict[str, Any]]) -> Iterator[SourceRow]:
    if len(objects) > MOST_ROWS:
        raise BadParameter("rows", say("too_many_rows", most=MOST_ROWS))
    return (_json_row(number, values) for number, values in enumerate(objects, 1))


def _json_array(text: Lookahead) -> Iterator[SourceRow]:
    """The objects of an array one by one: none is read before the one in front of it was taken."""
    scan, decoder = json.JSONDecoder().raw_decode, msgspec.json.Decoder(dict[str, Any])
    text.at = text.stretch.index("[") + 1
    for number in count(1):
        stretch = text.fill(2 * _ROW_CHARACTERS)
        at = _skip(stretch, text.at)
        if stretch[at : at + 1] == "]" and number == 1:
            return _check_end(text, at + 1)
        if number > MOST_ROWS:
            raise BadParameter("rows", say("too_many_rows", most=MOST_ROWS))
        try:
            _, end = scan(stretch, at)
            values = decoder.decode(stretch[at:end])
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            raise BadParameter("rows", _why_not_json(number, error, len(stretch) - at)) from None
        yield _json_row(number, values)
        at = _skip(stretch, end)
        if stretch[at : at + 1] == "]":
            return _check_end(text, at + 1)
        if stretch[at : at + 1] != ",":
            raise BadParameter("rows", say("json_array_broken", object=number))
        text.at = at + 1


def _skip(text: str, at: int) -> int:
    found = _JSON_BLANKS.match(text, at)
    return found.end() if found else at


def _check_end(text: Lookahead, at: int) -> None:
    text.at = at
    if text.fill(_ROW_CHARACTERS)[text.at :].strip():
        raise BadParameter("rows", say("json_goes_on"))


def _why_not_json(number: int, error: Exception, characters: int) -> str:
    if characters > _ROW_CHARACTERS and not isinstance(error, msgspec.MsgspecError | RecursionError):
        return say("object_not_json_or_long", object=number, most=_ROW_CHARACTERS, why=error)
    return say("json_object_wrong", object=number, why=_in_words(error))


def _in_words(error: Exception) -> Exception | str:
    """A decoder's own words, but for those that speak of the interpreter's stack."""
    return say("nested_too_deeply") if isinstance(error, RecursionError) else error


def _lines(text: Lookahead) -> Iterator[str]:
    """The lines of a text, made one by one; of one that is too long no more than shows it."""
    while True:
        stretch = text.fill(_ROW_CHARACTERS + 1)
        at, most = text.at, text.at + _ROW_CHARACTERS + 1
        if at == len(stretch):
            return
        feed = stretch.find("\n", at, most)
        text.at = min(most, len(stretch)) if feed < 0 else feed + 1
        yield stretch[at : text.at]


def _json_lines(text: Lookahead) -> Iterator[SourceRow]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        if number > MOST_ROWS:
            raise BadParameter("rows", say("too_many_rows", most=MOST_ROWS))
        if len(line) > _ROW_CHARACTERS:
            raise BadParameter("rows", say("line_too_long", line=number, most=_ROW_CHARACTERS))
        try:
            values = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadParameter("rows", say("line_not_json", line=number, why=_in_words(error))) from None
        yield _json_row(number, values)


def _json_row(number: int, values: dict[str, Any]) -> SourceRow:
    if len(values) > MOST_COLUMNS:
        raise BadParameter("rows", say("row_too_many_columns", row=number, columns=len(values), most=MOST_COLUMNS))
    return SourceRow(number, values)


def _read_csv(text: Lookahead) -> UploadedRows:
    text.at = int(text.stretch.startswith("\ufeff"))
    first = text.stretch[text.at : text.at + _ROW_CHARACTERS].partition("\n")[0]
    skipped = 0
    if first.lower().startswith(_SEPARATOR_LINE):
        delimiter = first.rstrip("\r")[len(_SEPARATOR_LINE) :] or ","
        text.at, skipped = text.at + len(first) + 1, 1
    else:
        delimiter = max(_DELIMITERS, key=first.count)
    if len(delimiter) != 1:
        raise BadParameter("rows", say("expected_separator", got=delimiter[:10]))
    csv.field_size_limit(MOST_CELL_CHARACTERS)
    lines = _BoundedLines(text, delimiter)
    cells = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(next(_rows(cells, lines, 1 + skipped), (0, []))[1])
    return UploadedRows(header, _csv_rows(header, _rows(cells, lines, 2 + skipped)))


def _header(cells: list[str]) -> list[str]:
    """The column names; empty cells at the end, which spreadsheets add, are dropped."""
    header = [name.strip() for name in cells]
    while header and not header[-1]:
        header.pop()
    if not header:
        raise BadParameter("rows", say("no_header_row"))
    if len(header) > MOST_COLUMNS:
        raise BadParameter("rows", say("header_too_many_columns", columns=len(header), most=MOST_COLUMNS))
    there: set[str] = set()
    for position, name in enumerate(header, 1):
        if not name:
            raise BadParameter("rows", say("column_without_name", column=position))
        if len(name) > MOST_NAME_CHARACTERS:
            raise BadParameter("rows", say("column_name_too_long", column=position, characters=len(name)))
        if name in there:
            raise BadParameter("rows", say("column_twice", column=name))
        there.add(name)
    return header


def _csv_rows(header: list[str], lines: Iterator[tuple[int, list[str]]]) -> Iterator[SourceRow]:
    """The rows under a header; empty cells count as not given, empty rows are skipped."""
    for number, cells in lines:
        if not any(cells):
            continue
        if number > MOST_ROWS + 1:
            raise BadParameter("rows", say("too_many_rows", most=MOST_ROWS))
        values = {name: bare_text(cell) for name, cell in zip(header, cells, strict=False) if cell != ""}
        yield SourceRow(number, values, sum(map(bool, cells[len(header) :])))


class _BoundedLines:
    """The lines of a text, for ``csv.reader``, which joins those of a row however many they are.

    Raises ``csv.Error`` from ``next`` when a row gets longer than one step of reading may take.
    """

    def __init__(self, text: Lookahead, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter
        self._characters = self._delimiters = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._read_line()
        if not line:
            raise StopIteration
        self._characters += len(line)
        if self._characters > _ROW_CHARACTERS:
            raise csv.Error(f"longer than {_ROW_CHARACTERS:,} characters")
        self._delimiters += line.count(self._delimiter)
        if self._delimiters > _ROW_DELIMITERS:
            raise csv.Error(f"more than {_ROW_DELIMITERS:,} times {self._delimiter!r}")
        return line

    def _read_line(self) -> str:
        """The next line with its end, LF, CR LF or CR; of one that is too long no more than shows it."""
        stretch = self._text.fill(_ROW_CHARACTERS + 2)
        at = self._text.at
        most = at + _ROW_CHARACTERS + 1
        feed = stretch.find("\n", at, most)
        end = most if feed < 0 else feed + 1
        carriage = stretch.find("\r", at, end)
        if 0 <= carriage < end - 2 or (carriage >= 0 and stretch[carriage + 1 : carriage + 2] != "\n"):
            end = carriage + 1
        self._text.at = min(end, len(stretch))
        return stretch[at:end]

    def end_row(self) -> None:
        """The next line begins a row."""
        self._characters = self._delimiters = 0


def _rows(cells: Any, lines: _BoundedLines, first: int) -> Iterator[tuple[int, list[str]]]:
    """Each row with its number as a spreadsheet shows it: a cell with line breaks is still in one row."""
    number = first
    while True:
        lines.end_row()
        try:
            yield number, next(cells)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadParameter("rows", say("row_not_csv", row=number, why=error)) from None
        number += 1
