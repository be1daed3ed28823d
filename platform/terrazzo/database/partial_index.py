"""Indexes of some of a table's rows alone: of what is open or waits, which is little of what is kept."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


def where(condition: str) -> dict[str, Any]:
    """The arguments by which both databases have such an index. Queries have to say the condition word for word."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
