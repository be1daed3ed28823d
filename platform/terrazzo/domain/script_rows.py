"""Checks of the rows of retainer, statistics and calculation scripts. ``ValueError`` names row and column, from 1."""

from __future__ import annotations

import re
from typing import Any

from terrazzo.expressions.expression import parse_expression
from terrazzo.expressions.tokens import ExpressionError

MAX_ROWS = 1_000
MAX_CODES = 100
STATISTICS = ("avg", "sum", "min", "max", "count", "delta", "first", "last")
_DURATION = re.compile(r"duration\(\s*[^\s=()][^=()]*==[^=()]+\)")


def check_rows(rows: Any, widths: tuple[int, ...]) -> None:
    """Checks that rows are arrays of one of these lengths, each beginning with a code. Raises ``ValueError``."""
    if not isinstance(rows, list):
        raise ValueError("expected an array of rows")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) not in widths:
            got = f"{len(row)}" if isinstance(row, list) else "something else"
            raise ValueError(f"row {number}: expected an array of {' or '.join(map(str, widths))} elements, got {got}")
        if not isinstance(row[0], str) or not row[0].strip():
            raise ValueError(f"row {number}, column 1: expected a code")


def check_retainer_rows(rows: Any) -> None:
    """Checks rows of 5 texts: code, English and Chinese label, open and close value (section 1 "Retainer script")."""
    check_texts(rows, 5)
    check_distinct(rows)
    for number, row in enumerate(rows, 1):
        if not row[3].strip():
            raise ValueError(f"row {number}, column 4: expected an open value")


def check_statistics_rows(rows: Any) -> None:
    """Checks rows of 3 texts: variable name, function, code."""
    check_texts(rows, 3)
    check_distinct(rows)
    for number, (_, function, code) in enumerate(rows, 1):
        duration = _DURATION.fullmatch(function.strip()) is not None
        if function.strip() not in STATISTICS and not duration:
            raise ValueError(
                f"row {number}, column 2: expected one of {', '.join(STATISTICS)}, duration(code==value), "
                f"got {function[:60]!r}"
            )
        if not code.strip() and not duration:  # which names its code itself
            raise ValueError(f"row {number}, column 3: expected a code")


def check_calculate_rows(rows: Any) -> None:
    """Checks rows of 2 texts: variable name, expression over the names of statistics."""
    check_texts(rows, 2)
    check_distinct(rows)
    for number, row in enumerate(rows, 1):
        if not row[1].strip():
            raise ValueError(f"row {number}, column 2: expected an expression")
        try:
            parse_expression(row[1])
        except ExpressionError as error:
            raise ValueError(f"row {number}, column 2: {error}") from None


def check_codes(codes: Any) -> None:
    """Checks a list of codes: 1 to ``MAX_CODES``, none twice. Raises ``ValueError``."""
    if not isinstance(codes, list) or not codes:
        raise ValueError("expected an array of codes")
    if len(codes) > MAX_CODES:
        raise ValueError(f"at most {MAX_CODES} codes, got {len(codes)}")
    for number, code in enumerate(codes, 1):
        if not isinstance(code, str) or not code.strip():
            raise ValueError(f"element {number}: expected a code")
        if code in codes[: number - 1]:
            raise ValueError(f"element {number}: {code[:60]!r} is listed twice")


def check_object(value: Any) -> None:
    """Checks that a JSON value is an object, not an array. Raises ``ValueError``."""
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object, got an array")


def check_texts(rows: Any, width: int) -> None:
    """Checks that there are at most ``MAX_ROWS`` rows, of ``width`` texts each. Raises ``ValueError``."""
    check_rows(rows, (width,))
    if len(rows) > MAX_ROWS:
        raise ValueError(f"at most {MAX_ROWS} rows, got {len(rows)}")
    for number, row in enumerate(rows, 1):
        for column, text in enumerate(row, 1):
            if not isinstance(text, str):
                raise ValueError(f"row {number}, column {column}: expected text")


def check_distinct(rows: list[list[str]]) -> None:
    """Checks that no two rows begin with the same code. Raises ``ValueError``."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        before = first.setdefault(row[0], number)
        if before != number:
            raise ValueError(f"row {number}, column 1: {row[0][:60]!r} is the name of row {before} too")
