"""Mappings that are refused: row, column and reason."""

from __future__ import annotations

import pytest

from row_checks import check_mapping_rows
from terrazzo.domain.mapping_table import parse_table

P = "$AdapterID-1.t"


def sta(code: str, expression: str = "") -> list:
    return [code, "", "", "STA", P, expression]


def func(code: str, expression: str) -> list:
    return [code, "", "", "FUNC", "", expression]


WRONG = [
    ({"a": 1}, "expected an array of rows"),
    ([["A"] * 5], "row 1: expected an array of 6, 7 or 8 elements, got 5"),
    ([sta("A"), "row"], "row 2: expected an array of 6, 7 or 8 elements, got something else"),
    ([sta("")], "row 1, column 1: expected a code"),
    ([sta("x")], "row 1, column 1: 'x' has a meaning of its own"),
    ([sta("A" * 65)], "row 1, column 1: longer than 64 characters"),
    ([sta("{A}")], "row 1, column 1: contains a brace or a control character"),
    ([sta("A"), sta("B"), sta("A")], "row 3, column 1: 'A' is the code of row 1 too"),
    ([["A", None, "", "STA", P, ""]], "row 1, column 2: expected text"),
    ([["A", "", "l" * 300, "STA", P, ""]], "row 1, column 3: longer than 255 characters"),
    ([["A", "", "", "VAR", P, ""]], "row 1, column 4: expected one of STA, EVNT, FUNC, COL, STT, got 'VAR'"),
    ([["A", "", "", "STA", "", ""]], "row 1, column 5: is empty"),
    ([["A", "", "", "STA", "$AdapterID-0.t", ""]], "row 1, column 5: '$AdapterID-0.t': terminals are numbered from 1"),
    ([["A", "", "", "STA", "$AdapterID-1", ""]], "row 1, column 5: '$AdapterID-1' names a terminal"),
    ([["A", "", "", "STA", "Often", P, "", ""]], "row 1, column 5: expected Changed or Cycled, got 'Often'"),
    ([["A", "", "", "STA", "", P, "@Sum", ""]], "row 1, column 7: expected @Expr, got '@Sum'"),
    ([["A", "", "", "STA", P, "", "x > 1"]], "row 1, column 7: only an EVNT row has a condition"),
    ([sta("A", "x +")], "row 1, column 6: character 4: expected a value, found the end"),
    ([sta("A", "x + B")], "row 1, column 6: no row has the code 'B'"),
    ([func("A", "")], "row 1, column 6: a FUNC row needs an expression"),
    ([func("A", "x")], "row 1, column 6: a FUNC row has no point and so no x"),
    ([["A", "", "", "FUNC", P, "1"]], "row 1, column 5: a FUNC row has no point; expected nothing"),
    ([["A", "", "", "FUNC", "Cycled", "-1", "", "1"]], "row 1, column 6: expected seconds, more than 0"),
    ([func("A", "B"), func("B", "C"), func("C", "A")], "row 1, column 6: goes in circles: "),
    ([func("A", "A + 1")], "row 1, column 6: goes in circles: A -> A"),
    ([["A", "", "", "STT", "", "60", "", {"fn": "avg", "of": "A"}]], "row 1, column 8: goes in circles: A -> A"),
    ([["A", "", "", "STT", "", "60", "", {"fn": "avg"}]], 'row 1, column 8: expected {"fn": ..., "of": code}'),
    ([["A", "", "", "STT", "", "60", "", {"fn": "mode", "of": "B"}]], "row 1, column 8: fn: expected one of avg"),
    ([["A", "", "", "STT", "", "long", "", {}]], "row 1, column 6: expected a window in seconds"),
    ([["A", "", "", "COL", "", ""]], "row 1, column 5: expected the project that collects the value"),
    ([["A", "", "", "EVNT", P, ""]], "row 1, column 6: an EVNT row needs a condition"),
    ([["A", "", "", "EVNT", "", "", "x > 1"]], "row 1, column 7: x is used and the row has no point"),
    ([["A", "", "", "EVNT", "", P, "@Compare", ["~", 1]]], "row 1, column 8: expected [operator, value] with one of"),
    ([["A", "", "", "EVNT", "", P, "==", [1]]], "row 1, column 8: expected a value to compare with"),
    ([["A", "", "", "EVNT", P, "", "x > 1"], func("B", "A")], "row 2, column 6: 'A' is an event, not a variable"),
    ([["A", "", "", "EVNT", P, "", "x > Q"]], "row 1, column 7: no row has the code 'Q'"),
    ([sta(f"A{number}") for number in range(1001)], "at most 1000 rows, got 1001"),
]


@pytest.mark.parametrize(("rows", "reason"), WRONG)
def test_bad_rows_say_where_and_why(rows: object, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_mapping_rows(rows)
    assert str(caught.value).startswith(reason)


def test_derived_rows_stand_after_those_that_they_name() -> None:
    table = parse_table([func("A", "B + C"), func("B", "C"), sta("S"), func("C", "S")])
    assert [row.code for row in table.derived] == ["C", "B", "A"]
