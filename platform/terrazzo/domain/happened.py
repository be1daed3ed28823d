"""``Happened``: an event that was raised, or a label that was opened or closed, once the database has it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Happened(NamedTuple):
    """An event or label that the database has, for those who notify and show it live."""

    kind: str  # event | opened | closed
    row: dict[str, Any]  # of the table ``event`` or ``label``
