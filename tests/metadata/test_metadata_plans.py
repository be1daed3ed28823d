"""What repositories ask of long tables for what is named: no statement reads what grows with the number of others.

Each statement of creating, reading, changing and deleting one record of each entity, and of lists by key and by what
they refer to, is explained, on both databases, with tables that have thousands of rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from registry_stand import Stand, make_stand

from query_plans import Asked, asked, expected, scanned, scans
from terrazzo.database.database import Database
from terrazzo.database.entity import Entity, Uid
from terrazzo.database.port import Conditions
from terrazzo.database.tables.registry import OBJECT_TERMINAL
from terrazzo.metadata.entities import Entities

MANY = 3_000
ROW = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", ""]
KNOWN = {
    ("objects", "delete", "retainer"): "lists of objects are texts of scripts; there are few scripts",
    ("objects", "delete", "statistics"): "the same",
    ("objects", "delete", "calculate"): "the same",
    ("objects", "delete", "balance"): "the same",
}
"""Scans that there are, by repository, what is done and table, and why they are put up with."""

NOT_LOOKED_AT = {
    "companies": "there are few, and each has many records",
    "authorities": "a company has at most limits.company_authorities",
    "api_keys": "a company has at most limits.company_api_keys",
}
HASHED = ("users", "claim_keys")
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
    "uploads": {"name": "f", "type": "text/plain", "size": 1, "sha256": "0" * 64},
    "projects": {"name": "p"},
    "campaigns": {"name": "c", "unit": "MCU", "version": "2"},
    "claim_keys": {"name": "k"},
    "users": {"role": "viewer"},
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
        if name in HASHED:
            return await self._create_hashed(name, number, values)
        if name == "uploads":
            values["uid"] = f"new-{number}"
        if name == "campaigns":
            file = {"mcu_file": "https://files.example/2"}
            await stand.entities.configurations.update(stand.first, stand.config, file)
            values |= {"config_id": stand.config, "terminal_list": ["t-2" if number else "new-0"]}
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

    async def _create_hashed(self, name: str, number: int, values: dict[str, Any]) -> Any:
        """What shows nobody what it is known by."""
        stand, key = self.stand, f"{number:064}"
        if name == "users":
            return await stand.entities.users.create_hashed(stand.first, values | {"username": f"new-{number}"}, key)
        given = values | {"config_id": stand.config}
        return await stand.entities.claim_keys.create_hashed(stand.first, given, key)

    async def _copy(self, entity: Entity, record_id: int) -> None:
        """Thousands of records like one, each with records of its own where it refers to some."""
        table = entity.table
        async with self.stand.database.writing() as connection:
            (sample,) = (await connection.execute(table.select().where(table.c.id == record_id))).mappings()
            rows = []
            for number in range(MANY):
                own = {"id": 1_000 + number}
                own |= {entity.uid_name: str(1_000 + number) if entity.name == "object" else f"t-{number}"}
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
        with asked() as statements["create"]:
            row = await filled.create(name, 1)
        changed: dict[str, Any] = {"description": "x"} if "description" in repository.table.c else {"reference": "x"}
        if name == "objects":
            changed["terminal_list"] = ["t-5", 1_006]
        if "description" in repository.table.c or "reference" in repository.table.c:
            with asked() as statements["update"]:
                await repository.update(stand.first, row["id"], changed)
        with asked() as statements["item"]:
            await repository.item(stand.first, "t-9" if name != "objects" else "1009")
            await repository.item(stand.first, 1_010)
        with asked() as statements["list"]:
            await by_keys(repository, stand)
        with asked() as statements["delete"]:
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
    assert sorted(KNOWN.keys() - found.keys()) == [], "these are no scans any more: take them out"


async def by_keys(repository: Any, stand: Stand) -> None:
    """Lists of what is named, and of what refers to one record; a page beyond them asks for their number as well."""
    entity = repository.entity
    uids = ["1007", "1008"] if entity.uid is Uid.FROM_ID else ["t-7", "t-8"]
    for within in ((entity.uid_name, uids), ("id", [1_007, 1_008])):
        for index in (1, 2):
            found = await repository.page(stand.first, conditions=Conditions([], [], [within]), page_index=index)
            assert found.total == 2, (entity.name, within)
    for key, value in ((entity.uid_name, uids[0]), ("id", 1_007)):
        await repository.page(stand.first, conditions=Conditions([(key, "=", value)], [], []), page_index=2)
    for each in entity.references:
        await repository.page(stand.first, conditions=Conditions([(each.name, "=", 1_007)], [], []), page_index=2)


def test_every_entity_is_looked_at() -> None:
    assert set(Entities.__struct_fields__) - set(SAMPLES) == set(NOT_LOOKED_AT)


def test_a_scan_is_seen() -> None:
    assert scanned("SCAN terminal") == "terminal"
    assert (
        scanned("SEARCH terminal USING INDEX ix_terminal_permission_company_id_id (permission_company_id=?)")
        == "terminal"
    )
    assert scanned("SCAN object USING INDEX ix_object_with_objects") == ""
    assert scanned("SCAN object USING COVERING INDEX ix_object_name") == "object"
    assert scanned("SEARCH terminal USING INDEX uq_terminal_uid (uid=?)") == ""
    assert scanned("SEARCH t USING COVERING INDEX ix (permission_company_id=? AND id=?)") == ""
    assert list(expected({"Node Type": "Index Scan", "Relation Name": "terminal", "Plan Rows": 3_000})) == ["terminal"]
