"""The shapes of results, as far as the client's own methods return them: plain dicts, typed."""

from __future__ import annotations

from typing import Any, TypedDict


class GridRecord(TypedDict):
    """One message of a terminal; ``time`` is ``YYYY-MM-DD HH:MM:SS``."""

    payload: dict[str, Any]
    time: str
    topic: str


class ImportIssue(TypedDict):
    """One thing that is wrong with an imported file."""

    row: int
    column: str
    reason: str


class ImportReport(TypedDict):
    """What an import did, or would do."""

    dry_run: bool
    total: int
    created: int
    updated: int
    unchanged: int
    failed: int  # rows with errors
    errors: list[ImportIssue]
    errors_omitted: int


Record = dict[str, Any]
"""A stored entity's record, or one of the store's whose columns the caller chose."""
