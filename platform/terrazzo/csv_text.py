"""CSV files (RFC 4180) without cells that spreadsheet programs would take for formulas (OWASP, CSV injection).

Such a text gets an apostrophe in front, and so does one that has apostrophes before a formula already: taking one away
always gives back what was there. Numbers stay numbers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four: the wide forms of = + - @
_QUOTED = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def guard_formula(text: str) -> str:
    """The text as a cell that no spreadsheet calculates."""
    return f"'{text}" if _FORMULA.match(text) else text


def bare_text(cell: str) -> str:
    """The text that ``guard_formula`` was given; other cells as they are."""
    return cell[1:] if _QUOTED.match(cell) else cell


def csv_lines(lines: Iterable[Iterable[object]], *, end: str = "\r\n") -> bytes:
    """Lines of a file, headers too: an empty cell for None, ``true`` and ``false``, and no text is a formula."""
    written = _Written()
    # The writer quotes what is in its own line end alone: a CR by itself would begin a line in a file that has LF.
    csv.writer(written, lineterminator="\r\n").writerows([_cell(each) for each in line] for line in lines)
    return "".join([line[:-2] + end for line in written.lines]).encode()


class _Written:
    """What a CSV writer has written, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        """Keeps a line with its end."""
        self.lines.append(line)


def _cell(value: object) -> object:
    if isinstance(value, str):
        return guard_formula(value)
    if value is None:
        return ""
    return ("false", "true")[value] if isinstance(value, bool) else value
