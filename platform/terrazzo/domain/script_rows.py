"""Checks of the rows of retainer, statistics and calculation scripts. ``ValueError`` names row and column, from 1."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from terrazzo.expressions.expression import parse_expression
from terrazzo.expressions.tokens import ExpressionError
from terrazzo.loop_pauses import Steps
from terrazzo.reasons import Said, say, told_by

MAX_ROWS = 1_000
MAX_CODES = 100
MAX_CODE = 64  # characters of a code, as of a mapping's
MAX_CELL = 2_000  # characters of a cell, as of an expression
MAX_PARTS = 50_000  # names, numbers and signs of all expressions: half a second to read
_PART = re.compile(r"\w+|[^\w\s]")
STATISTICS = ("avg", "sum", "min", "max", "count", "delta", "first", "last")
_DURATION = "duration("
_OF_DURATION = frozenset("=()")  # neither a code nor a value has these


class Duration(NamedTuple):
    """``duration(code==value)``: for how long a code had a value."""

    code: str
    value: str


def parse_duration(text: str) -> Duration | None:
    """The code and the value of ``duration(code==value)``; None for any other text."""
    text = text.strip()
    if not text.startswith(_DURATION) or not text.endswith(")"):
        return None
    code, equals, value = text[len(_DURATION) : -1].partition("==")
    code, stripped = code.strip(), value.strip()
    if not equals or not code or not value or not _OF_DURATION.isdisjoint(code + stripped):
        return None
    return Duration(code, (stripped or " ").strip("'\""))


def check_cells(rows: list[Any]) -> None:
    """Checks that no text in an array of rows is longer than ``MAX_CELL``. Raises ``ValueError``."""
    for number, row in enumerate(rows, 1):
        for column, cell in enumerate(row if isinstance(row, list) else (), 1):
            if isinstance(cell, str) and len(cell) > MAX_CELL:
                raise ValueError(_at(number, column, say("too_many_characters", most=MAX_CELL, got=len(cell))))


def parts_check(rows: list[Any], first: int) -> Steps[None]:
    """Checks that expressions, which are in the columns from ``first`` on, have at most ``MAX_PARTS`` parts together.

    Raises:
        ValueError: names the row with which there are more.
    """
    parts = 0
    for number, row in enumerate(rows, 1):
        for cell in row[first - 1 :] if isinstance(row, list) else ():
            parts += len(_PART.findall(cell)) if isinstance(cell, str) else 1
        if parts > MAX_PARTS:
            raise ValueError(_at(number, 0, say("too_many_tokens", most=MAX_PARTS)))
        yield


def check_rows(rows: Any, widths: tuple[int, ...]) -> None:
    """Checks that rows are arrays of one of these lengths, each beginning with a code. Raises ``ValueError``."""
    if not isinstance(rows, list):
        raise ValueError(say("expected_rows"))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) not in widths:
            got = f"{len(row)}" if isinstance(row, list) else "something else"
            raise ValueError(_at(number, 0, say("expected_elements", expected=" or ".join(map(str, widths)), got=got)))
        if not isinstance(row[0], str) or not row[0].strip():
            raise ValueError(_at(number, 1, say("expected_a_code")))


def check_retainer_rows(rows: Any) -> None:
    """Checks rows of 5 texts: code, English and Chinese label, open and close value (section 1 "Retainer script")."""
    check_texts(rows, 5)
    check_distinct(rows)
    for number, row in enumerate(rows, 1):
        if not row[3].strip():
            raise ValueError(_at(number, 4, say("expected_open_value")))


def check_statistics_rows(rows: Any) -> None:
    """Checks rows of 3 texts: variable name, function, code."""
    check_texts(rows, 3)
    check_distinct(rows)
    for number, (_, function, code) in enumerate(rows, 1):
        duration = parse_duration(function) is not None
        if function.strip() not in STATISTICS and not duration:
            told = say("expected_statistic", expected=", ".join(STATISTICS), got=function[:60])
            raise ValueError(_at(number, 2, told))
        if not code.strip() and not duration:  # which names its code itself
            raise ValueError(_at(number, 3, say("expected_a_code")))


def calculate_rows_check(rows: Any) -> Steps[None]:
    """Checks rows of 2 texts, row by row: variable name, expression over the names of statistics."""
    check_texts(rows, 2)
    check_distinct(rows)
    yield from parts_check(rows, 2)
    for number, row in enumerate(rows, 1):
        if not row[1].strip():
            raise ValueError(_at(number, 2, say("expected_expression")))
        try:
            parse_expression(row[1])
        except ExpressionError as error:
            raise ValueError(_at(number, 2, told_by(error))) from None
        yield


def check_codes(codes: Any) -> None:
    """Checks a list of codes: 1 to ``MAX_CODES``, none twice. Raises ``ValueError``."""
    if not isinstance(codes, list) or not codes:
        raise ValueError(say("expected_codes"))
    if len(codes) > MAX_CODES:
        raise ValueError(say("too_many_codes_got", most=MAX_CODES, got=len(codes)))
    for number, code in enumerate(codes, 1):
        if not isinstance(code, str) or not code.strip():
            raise ValueError(say("element_expected_code", element=number))
        if len(code) > MAX_CODE:
            raise ValueError(say("element_too_long", element=number, most=MAX_CODE))
        if code in codes[: number - 1]:
            raise ValueError(say("element_twice", element=number, code=code[:60]))


def check_object(value: Any) -> None:
    """Checks that a JSON value is an object, not an array. Raises ``ValueError``."""
    if not isinstance(value, dict):
        raise ValueError(say("expected_object_got_array"))


def check_texts(rows: Any, width: int) -> None:
    """Checks that there are at most ``MAX_ROWS`` rows of ``width`` texts, none too long. Raises ``ValueError``."""
    check_rows(rows, (width,))
    if len(rows) > MAX_ROWS:
        raise ValueError(say("too_many_rows_got", most=MAX_ROWS, got=len(rows)))
    for number, row in enumerate(rows, 1):
        for column, text in enumerate(row, 1):
            if not isinstance(text, str):
                raise ValueError(_at(number, column, say("expected_text")))
    check_cells(rows)


def check_distinct(rows: list[list[str]]) -> None:
    """Checks that no two rows begin with the same code. Raises ``ValueError``."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        before = first.setdefault(row[0], number)
        if before != number:
            raise ValueError(_at(number, 1, say("name_of_other_row", name=row[0][:60], row=before)))


def _at(row: int, column: int, reason: str) -> Said:
    """The reason behind its place, counted from 1; column 0: the row as a whole."""
    if not column:
        return say("row_wrong", row=row, reason=reason)
    return say("row_column_wrong", row=row, column=column, reason=reason)
