"""Exported CSV has no formulas, and an import takes everything back as it was."""

from __future__ import annotations

import csv
import io
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.bulk.exporting import _Csv
from terrazzo.bulk.rows import read_upload
from terrazzo.csv_text import bare_text, csv_lines, guard_formula
from terrazzo.influxql.answers import Listing, encoder_of
from terrazzo.mosaic.files import Row, file_encoder

FORMULAS = ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x","y")', "＝1+1", "－1"]
BEGINS = tuple("=+-@\t\r\n＝＋－＠")


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_gets_an_apostrophe_and_an_import_takes_it_away(formula: str) -> None:
    written = _Csv({"uid": "uid", "name": "name"})
    data = written.begin() + written.encode([{"uid": "t1", "name": formula}, {"uid": "t2", "name": f"'{formula}"}])
    cells = [*csv.reader(io.StringIO(data.decode(), newline=""))]
    assert [row[1] for row in cells[1:]] == [f"'{formula}", f"''{formula}"]
    assert [row.values["name"] for row in read_upload(data).rows] == [formula, f"'{formula}"]


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    cell = guard_formula(text)
    assert bare_text(cell) == text
    assert not cell.startswith(BEGINS)


@pytest.mark.parametrize("plain", ["", "'", "''", "it's", "'quoted'", "5", "x=1", " =1", "'1", "a-b"])
def test_other_texts_stay_as_they_are(plain: str) -> None:
    assert guard_formula(plain) == plain
    assert bare_text(plain) == plain


def test_numbers_and_structures_are_no_formulas() -> None:
    row: dict[str, Any] = {"n": -5, "none": None, "json": ["=1"]}
    assert _Csv({name: name for name in row}).encode([row]) == b'-5,,"[""=1""]"\r\n'


def test_headers_of_ours_begin_with_letters() -> None:
    from terrazzo.bulk.entities import BULK_ENTITIES

    for entity in BULK_ENTITIES:
        assert all(name[0].isalpha() for name in entity.entity.fields)


def cells_of(text: bytes) -> list[str]:
    return [cell for line in csv.reader(io.StringIO(text.decode(), newline="")) for cell in line]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_name_and_no_value_of_a_time_series_is_a_formula(formula: str) -> None:
    encoder = file_encoder("csv", [formula, "n", "b", "none"])
    row = Row(0, {formula: formula, "n": -2.5, "b": True, "none": None}, {})
    text = encoder.begin() + encoder.encode([row])
    guarded, time = f"'{formula}", "1970-01-01T00:00:00.000000Z"
    assert cells_of(text)[1:] == [guarded, "n", "b", "none", time, guarded, "-2.5", "true", ""]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_part_of_an_answer_of_influxql_is_a_formula(formula: str) -> None:
    """Objects and variables are called as somebody likes, and a column as the question says."""
    encoder = encoder_of(epoch="ns", chunk=0, is_csv=True)
    listing = Listing(formula, [formula, "n"], [[formula, -3]], {formula: formula})
    text = b"".join([*encoder.result(0, [listing], "", UTC), *encoder.result(1, [], formula, UTC)])
    cells = cells_of(text)
    assert not [cell for cell in cells if cell.startswith(BEGINS) and cell != "-3"]
    assert cells[4:8] == [f"'{formula}", f"'{formula}={formula}", f"'{formula}", "-3"]


def test_lines_are_csv() -> None:
    assert csv_lines([["a,b", -1, -2.5, True, False, None, '"', "=1"]]) == b'"a,b",-1,-2.5,true,false,,"""",\'=1\r\n'
    assert csv_lines([["a"], ["b"]], end="\n") == b"a\nb\n"


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("text", ["x\r=1", "x\n=1", "x\r\n=1"])
def test_no_text_begins_a_line_of_its_own(text: str, end: str) -> None:
    assert csv_lines([[text, "y"]], end=end) == f'"{text}",y{end}'.encode()
