"""Cells of CSV files that spreadsheet programs would take for formulas (OWASP, CSV injection).

Such a text gets an apostrophe in front, and so does one that has apostrophes before a formula already: taking one away
always gives back what was there.
"""

from __future__ import annotations

import re

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four: the wide forms of = + - @
_QUOTED = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def guard_formula(text: str) -> str:
    """The text as a cell that no spreadsheet calculates."""
    return f"'{text}" if _FORMULA.match(text) else text


def bare_text(cell: str) -> str:
    """The text that ``guard_formula`` was given; other cells as they are."""
    return cell[1:] if _QUOTED.match(cell) else cell
