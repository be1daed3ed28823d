"""Indexes of some of a table's rows alone: of what is open or waits, which is little of what is kept."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles


def where(condition: str) -> dict[str, Any]:
    """The arguments by which both databases have such an index. Queries have to say the condition word for word.

    It is SQLite's argument alone: one of PostgreSQL's would load its dialect, 2 MB, where nobody has such a database.
    """
    return {"sqlite_where": sa.text(condition)}


@compiles(sa.schema.CreateIndex, "postgresql")
def _create_index(element: sa.schema.CreateIndex, compiler: Any, **options: Any) -> str:
    """With SQLite's condition, which is written the same."""
    of = element.element.dialect_options
    if (condition := of["sqlite"].get("where")) is not None:
        of["postgresql"]["where"] = condition
    return str(compiler.visit_create_index(element, **options))
