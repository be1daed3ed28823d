"""Exported CSV has no formulas, and an import takes everything back as it was."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.bulk.exporting import _Csv
from terrazzo.bulk.rows import read_upload
from terrazzo.csv_text import bare_text, guard_formula

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
