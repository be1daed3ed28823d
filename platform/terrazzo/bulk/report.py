"""The report of an import: counts, and errors by row and column."""

from __future__ import annotations

import msgspec

from terrazzo.errors import BadParameter
from terrazzo.reasons import Reason, reason_of, retold, say

MOST_ISSUES = 1_000  # that a report lists; the rest is counted


class Issue(msgspec.Struct, frozen=True):
    """One thing that is wrong. ``row`` counts as the file does; ``column`` is empty where it is the row as a whole."""

    row: int
    column: str
    reason: str
    told: Reason | msgspec.UnsetType = msgspec.UNSET  # the reason as code and parameters


class Report(msgspec.Struct, kw_only=True):
    """What was done, or would be; nothing, where there are errors."""

    dry_run: bool
    mode: str
    total: int = 0  # rows
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0  # rows with errors
    errors: list[Issue] = []
    errors_omitted: int = 0  # beyond the listed ones


class ImportRefused(BadParameter):
    """The file has errors, and nothing was imported. ``result`` is the report."""

    def __init__(self, report: Report) -> None:
        first = report.errors[0]
        more = len(report.errors) + report.errors_omitted - 1
        place = f"row {first.row}, column {first.column}" if first.column else f"row {first.row}"
        reason = retold(first.reason, first.told)
        super().__init__(place, say("and_more", reason=reason, more=more) if more else reason)
        self.result = report


class Issues:
    """Collects what is wrong with a file."""

    def __init__(self) -> None:
        self.listed: list[Issue] = []
        self.omitted = 0
        self._rows: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self.listed)

    @property
    def rows(self) -> int:
        """How many rows have errors."""
        return len(self._rows)

    def add(self, row: int, column: str, reason: str) -> None:
        """Adds an error."""
        self._rows.add(row)
        if len(self.listed) < MOST_ISSUES:
            self.listed.append(Issue(row, column, str(reason), reason_of(reason)))
        else:
            self.omitted += 1

    def has(self, row: int) -> bool:
        """Whether a row has errors."""
        return row in self._rows

    def put_into(self, report: Report) -> None:
        """Fills in a report's errors, in the order of the rows."""
        report.errors = sorted(self.listed, key=lambda issue: issue.row)
        report.errors_omitted = self.omitted
        report.failed = self.rows
