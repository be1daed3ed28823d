"""Files as people have them: separators, marks, line ends, quotes, JSON in three forms; and what is none of it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.bulk.rows import MOST_ROWS, SourceRow, read_upload
from terrazzo.errors import BadParameter

ROWS = [{"uid": "a", "name": "Ä, one"}, {"uid": "b", "name": 'two "2"; two'}]


def read(data: bytes) -> list[dict[str, Any]]:
    return [row.values for row in read_upload(data).rows]


def as_csv(rows: list[dict[str, str]], **options: Any) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **options)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_spreadsheets_write_it_like_this(delimiter: str, encoding: str, line: str) -> None:
    text = as_csv(ROWS, delimiter=delimiter, lineterminator=line)
    assert read(text.encode(encoding)) == ROWS
    assert read(f"sep={delimiter}{line}{text}".encode(encoding)) == ROWS


def test_json_in_three_forms() -> None:
    for indent in (None, 2):
        assert read(json.dumps(ROWS, indent=indent).encode()) == ROWS
        assert read(b"\xef\xbb\xbf" + json.dumps(ROWS, indent=indent).encode()) == ROWS
    assert read(b"\n".join(json.dumps(row).encode() for row in ROWS)) == ROWS
    assert read(b"\n\n".join(json.dumps(row).encode() for row in ROWS) + b"\n") == ROWS


def test_empty_cells_rows_and_columns_are_not_there() -> None:
    text = 'uid,name,,\n\na,,,\n,,,\nb,"two\nlines",,\nc\n'
    assert list(read_upload(text.encode()).rows) == [
        SourceRow(3, {"uid": "a"}),
        SourceRow(5, {"uid": "b", "name": "two\nlines"}),
        SourceRow(6, {"uid": "c"}),
    ]


def test_rows_count_as_a_spreadsheet_counts_them() -> None:
    found = read_upload(b'sep=;\nuid;name\na;"x\ny"\nb;z;surplus\n')
    assert found.header == ["uid", "name"]
    assert [(row.number, row.surplus) for row in found.rows] == [(3, 0), (4, 1)]
    assert [row.number for row in read_upload(b'[{"a": 1}, {"a": 2}]').rows] == [1, 2]
    assert [row.number for row in read_upload(b'{"a": 1}\n\n{"a": 2}').rows] == [1, 3]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no header row"),
        (b"\n", "no header row"),
        (b",,\n1,2,3", "no header row"),
        (b"uid,,name\n", "row 1, column 2: a column without a name"),
        (b"uid,name,uid\n", "column uid is there twice"),
        (b"uid,name\n\xff\xfe", "not UTF-8 at byte 9"),
        (b"\xff\xfeu", "not UTF-8"),
        (b'uid,name\na,"open', "row 2: not CSV: unexpected end of data"),
        (b"sep=ab\nuid\n", "one character after sep="),
        (b"[1, 2]", "not a JSON array of objects"),
        (b"[{}", "not a JSON array of objects"),
        (b"[" * 100_000, "not a JSON array of objects"),
        (b'{"a": 1}\n[]', "line 2: not a JSON object"),
        (b'{"a": 1} {"a": 2}', "line 1: not a JSON object"),
        (b"uid\n" + b"a\n" * (MOST_ROWS + 1), f"more than {MOST_ROWS} rows"),
        (b"{}\n" * (MOST_ROWS + 1), f"more than {MOST_ROWS} rows"),
        (b"[" + b"{}," * MOST_ROWS + b"{}]", f"more than {MOST_ROWS} rows"),
    ],
)
def test_what_is_none_of_it_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadParameter, match="rows") as error:
        read(data)
    assert reason in str(error.value)


_CELL = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(_CELL, _CELL), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_whatever_a_csv_writer_writes_is_read(cells: list[tuple[str, str]], delimiter: str) -> None:
    rows = [{"uid": f"u{number}", "one": one, "two": two} for number, (one, two) in enumerate(cells)]
    wanted = [{name: value for name, value in row.items() if value} for row in rows]
    assert read(as_csv(rows, delimiter=delimiter).encode()) == wanted


@given(st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
def test_any_bytes_are_rows_or_a_bad_parameter(data: bytes) -> None:
    try:
        rows = read(data)
    except BadParameter:
        return
    assert all(isinstance(row, dict) for row in rows)
