"""What happened to an object, once it is in the database: an event raised, a label opened or closed."""

from __future__ import annotations

from typing import Any, NamedTuple


class Happened(NamedTuple):
    """One thing that is in the database now."""

    kind: str  # event | opened | closed
    row: dict[str, Any]  # of the table ``event`` or ``label``
