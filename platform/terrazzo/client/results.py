"""Types of the results of the clients' own methods: plain dicts."""

from __future__ import annotations

from typing import Any, TypedDict


class GridRecord(TypedDict):
    """One message of a terminal; ``time`` is ``YYYY-MM-DD HH:MM:SS``."""

    payload: dict[str, Any]
    time: str
    topic: str


class ImportIssue(TypedDict):
    """An error in an imported file."""

    row: int
    column: str
    reason: str


class ImportReport(TypedDict):
    """What an import did, or would do in a dry run."""

    dry_run: bool
    total: int
    created: int
    updated: int
    unchanged: int
    failed: int  # rows with errors
    errors: list[ImportIssue]
    errors_omitted: int


Record = dict[str, Any]
"""A record of an entity, or of the time-series store with the columns that the caller chose."""
