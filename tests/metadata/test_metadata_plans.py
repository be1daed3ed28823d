"""What the repositories ask of long tables for one record: no statement reads what grows with the others' number.

Each statement of creating, reading, changing and deleting one record of each entity is explained, on both databases,
with tables that have thousands of rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from registry_stand import Stand, make_stand
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.database import Database
from terrazzo.database.entity import Entity
from terrazzo.database.tables.registry import OBJECT_TERMINAL

MANY = 3_000
FEW = 300  # rows that a plan may expect to read of a long table
ROW = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", ""]
KNOWN = {
    ("objects", "delete", "retainer"): "lists of objects are texts of scripts; there are few scripts",
    ("objects", "delete", "statistics"): "the same",
    ("objects", "delete", "calculate"): "the same",
    ("objects", "delete", "balance"): "the same",
    ("objects", "delete", "object"): "objects that name objects have a text, too",
}
"""Scans that there are, by repository, what is done and table, and why they are put up with."""


class Asked(list[tuple[str, Any]]):
    """Statements with their parameters, as the driver gets them."""


@contextmanager
def asked(database: Database) -> Iterator[Asked]:
    """All statements of the block."""
    found = Asked()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if re.match(r"\s*(SELECT|UPDATE|DELETE|WITH)\b", statement):
            found.append((statement, parameters[0] if many and parameters else parameters))

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", note)


async def scans(connection: AsyncConnection, kind: str, statement: str, parameters: Any) -> set[str]:
    """The long tables that a statement reads far more of than it asks for."""
    if kind == "sqlite":
        rows = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)).all()
        return {table for row in rows if (table := scanned(str(row[-1])))}
    plan = (await connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters)).scalar()
    return set(expected((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


def scanned(line: str) -> str:
    """The table of a line of SQLite's plan that reads a whole table, or all of a company; empty for any other."""
    whole = re.fullmatch(r"SCAN (\w+)(?! VIRTUAL)(?: USING .*INDEX.*)?", line)
    company = re.fullmatch(r"SEARCH (\w+) USING .*INDEX \w+ \(permission_company_id=\?\)", line)
    found = whole or company
    return found[1] if found and found[1] not in ("json_each", "CONSTANT") else ""


def expected(node: dict[str, Any]) -> Iterator[str]:
    """The tables of which a plan of PostgreSQL expects to read more than a few rows."""
    if "Relation Name" in node and (node["Plan Rows"] > FEW or node["Node Type"] == "Seq Scan"):
        yield node["Relation Name"]
    for child in node.get("Plans", ()):
        yield from expected(child)


SAMPLES: dict[str, dict[str, Any]] = {
    "mappings": {"name": "m", "script": [ROW]},
    "controls": {"name": "c", "script": [["On", "On", "On", "OBJ", "$AdapterID-1.ON", "1"]]},
    "customers": {"name": "c"},
    "configurations": {"name": "c"},
    "terminals": {},
    "objects": {"name": "o"},
    "retainers": {"name": "r", "script": [["A", "a", "a", "1", "0"]]},
    "statistics": {"name": "s", "script": [["A", "avg", "TEMP"]]},
    "calculates": {"name": "c", "script": [["B", "A * 2"]]},
    "balances": {"name": "b", "target_code": "A", "input_codes": ["B"]},
    "dashboards": {"name": "d", "script": {}},
    "groups": {"name": "g"},
    "group_maps": {},
    "object_dashboards": {"category": "pro"},
    "services": {"name": "s"},
    "collects": {"name": "c"},
    "collected": {"name": "c", "value": "1"},
    "files": {"name": "f"},
    "rules": {
        "name": "r",
        "kinds": ["offline"],
        "channel": "webhook",
        "url": "https://a.example/r",
        "secret": "s" * 16,
    },
}


class Filled:
    """A stand with long tables, and values for one more record of each entity."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.ids: dict[str, int] = {}

    async def fill(self) -> None:
        for name in SAMPLES:
            row = await self.create(name, 0)
            self.ids[name] = row["id"]
            await self._copy(self.stand.entities.__getattribute__(name).entity, row["id"])
        async with self.stand.database.writing() as connection:
            links = [{"object_id": 1_000 + n, "terminal_id": 1_000 + n, "position": 0} for n in range(MANY)]
            await connection.execute(OBJECT_TERMINAL.insert(), links)
            if connection.dialect.name == "postgresql":  # it does so by itself; SQLite plans without figures
                await connection.execute(sa.text("ANALYZE"))

    async def create(self, name: str, number: int) -> Any:
        """One more record."""
        stand, values = self.stand, dict(SAMPLES[name])
        if name == "terminals":
            return await stand.terminal(f"new-{number}")
        if name == "objects":
            values |= {"terminal_list": [f"new-{number}"] if not number else ["t-2"]}
            values |= {"mapping_id": self.ids["mappings"], "control_id": self.ids["controls"]}
            values |= {"customer_id": self.ids["customers"]}
        if name in ("retainers", "statistics", "balances"):
            values["object_list"] = [str(self.ids["objects"])]
        if name == "rules":
            values |= {"minutes": 5, "terminal_list": ["t-2", "t-3"]}
        if name in ("group_maps", "object_dashboards", "services", "collected"):
            values["object_id"] = self.ids["objects"] if not number else 1_007
        values |= {"group_maps": {"group_id": 1_003 if number else self.ids.get("groups")}}.get(name, {})
        values |= {"object_dashboards": {"dashboard_id": 1_003 if number else self.ids.get("dashboards")}}.get(name, {})
        values |= {"collected": {"project_id": self.ids.get("collects")}}.get(name, {})
        return await getattr(stand.entities, name).create(stand.first, values)

    async def _copy(self, entity: Entity, record_id: int) -> None:
        """Thousands of records like one, each with records of its own where it refers to some."""
        table = entity.table
        async with self.stand.database.writing() as connection:
            (sample,) = (await connection.execute(table.select().where(table.c.id == record_id))).mappings()
            rows = []
            for number in range(MANY):
                own = {"id": 1_000 + number}
                own |= {"uid": str(1_000 + number) if entity.name == "object" else f"t-{number}"}
                own |= {each.name: 1_000 + number for each in entity.references if sample[each.name] is not None}
                rows.append({**sample, **{key: value for key, value in own.items() if key in table.c}})
            await connection.execute(table.insert(), rows)
            if connection.dialect.name == "postgresql":
                most = sa.text(f"SELECT setval(pg_get_serial_sequence('\"{table.name}\"', 'id'), {MANY + 2_000})")
                await connection.execute(most)


@pytest.fixture
async def filled(database: Database, tmp_path: Path) -> Filled:
    made = Filled(await make_stand(database, tmp_path))
    await made.fill()
    return made


async def test_one_record_is_found_among_thousands(filled: Filled, kind: str) -> None:
    stand, found = filled.stand, {}
    for name in SAMPLES:
        repository: Any = getattr(stand.entities, name)
        statements: dict[str, Asked] = {}
        with asked(stand.database) as statements["create"]:
            row = await filled.create(name, 1)
        changed: dict[str, Any] = {"description": "x"} if "description" in repository.table.c else {"reference": "x"}
        if name == "objects":
            changed["terminal_list"] = ["t-5", 1_006]
        if "description" in repository.table.c or "reference" in repository.table.c:
            with asked(stand.database) as statements["update"]:
                await repository.update(stand.first, row["uid"], changed)
        with asked(stand.database) as statements["item"]:
            await repository.item(stand.first, "t-9" if name != "objects" else "1009")
            await repository.item(stand.first, 1_010)
        with asked(stand.database) as statements["delete"]:
            await repository.delete(stand.first, row["id"])
        assert all(statements.values()), name
        async with stand.database.reading() as connection:
            for what, each in statements.items():
                for statement, parameters in each:
                    for table in await scans(connection, kind, statement, parameters):
                        found[name, what, table] = statement
    long = {getattr(stand.entities, name).table.name for name in SAMPLES} | {"object_terminal"}
    wrong = {key: text for key, text in found.items() if key[2] in long and key not in KNOWN}
    assert wrong == {}


def test_a_scan_is_seen() -> None:
    assert scanned("SCAN terminal") == "terminal"
    assert (
        scanned("SEARCH terminal USING INDEX ix_terminal_permission_company_id_id (permission_company_id=?)")
        == "terminal"
    )
    assert scanned("SEARCH terminal USING INDEX uq_terminal_uid (uid=?)") == ""
    assert scanned("SEARCH t USING COVERING INDEX ix (permission_company_id=? AND id=?)") == ""
    assert list(expected({"Node Type": "Index Scan", "Relation Name": "terminal", "Plan Rows": 3_000})) == ["terminal"]
