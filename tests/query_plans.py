"""Statements as they are asked, and the tables of which their plans read more than they ask for, on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection

FEW = 300  # rows that a plan may expect to read of a long table

OF_FEW = {"ix_object_with_objects": "objects that name objects, which few do"}
"""Indexes of a part of a table alone that is what is asked for: reading all of one is no scan of the table."""

_SHORT = ("json_each", "CONSTANT", "anon_")  # lists that were given, and what another part of the statement has found


class Asked(list[tuple[str, Any]]):
    """Statements with their parameters, as the driver gets them."""


@contextmanager
def asked(of: Callable[[], bool] = lambda: True, *, once: bool = True) -> Iterator[Asked]:
    """The statements of the block, each text once unless told otherwise; ``of`` says, while one runs, if it counts."""
    found, known = Asked(), set[str]()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if re.match(r"\s*(SELECT|UPDATE|DELETE|WITH)\b", statement) and not (once and statement in known) and of():
            known.add(statement)
            found.append((statement, parameters[0] if many and parameters else parameters))

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", note)


async def scans(
    connection: AsyncConnection, kind: str, statement: str, parameters: Any, *, by_company: bool = False
) -> set[str]:
    """The long tables that a statement reads far more of than it asks for.

    ``by_company``: all that a company has is what it asks for.
    """
    if kind == "sqlite":
        rows = (
            await connection.run_sync(sa.Connection.exec_driver_sql, f"EXPLAIN QUERY PLAN {statement}", parameters)
        ).all()
        return {table for row in rows if (table := scanned(str(row[-1]), by_company=by_company))}
    plan = (
        await connection.run_sync(sa.Connection.exec_driver_sql, f"EXPLAIN (FORMAT JSON) {statement}", parameters)
    ).scalar()
    return set(expected((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


def scanned(line: str, *, by_company: bool = False) -> str:
    """The table of a line of SQLite's plan that reads a whole table, or all of a company; empty for any other."""
    found = re.fullmatch(r"SCAN (\w+)(?! VIRTUAL)(?: USING .*INDEX ?(.*))?", line)
    if found and found[2] in OF_FEW:
        return ""
    if not found and not by_company:
        found = re.fullmatch(r"SEARCH (\w+) USING .*INDEX \w+ \((?:permission_)?company_id=\?\)", line)
    if not found:
        found = re.fullmatch(r"SEARCH (\w+) USING INTEGER PRIMARY KEY \(rowid[<>]\?.*", line)
    return found[1] if found and not found[1].startswith(_SHORT) else ""


def expected(node: dict[str, Any]) -> Iterator[str]:
    """The tables of which a plan of PostgreSQL expects to read more than a few rows."""
    if "Relation Name" in node and (node["Plan Rows"] > FEW or node["Node Type"] == "Seq Scan"):
        yield node["Relation Name"]
    for child in node.get("Plans", ()):
        yield from expected(child)
