"""The audit log's table on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from registry_stand import ROOT, Stand

from terrazzo.audit.entry import MASK
from terrazzo.audit.log import AuditLog
from terrazzo.database.port import Conditions
from terrazzo.database.tables.registry import AUDIT, CHANGE
from terrazzo.errors import BadParameter, Conflict


async def test_each_change_has_its_entry(stand: Stand) -> None:
    await stand.terminal("G1")
    await stand.entities.terminals.update(stand.first, "G1", {"pin": "other", "name": "\x01 \U0001f600"})
    await stand.entities.terminals.delete(stand.first, "G1")
    rows = (await AuditLog(stand.database).page(stand.first, conditions=Conditions([("uid", "=", "G1")]))).rows
    assert [row["action"] for row in rows] == ["delete", "update", "create"]
    assert rows[1]["after"] == {"name": "\x01 \U0001f600", "pin": MASK}
    assert {(row["company_id"], row["user_id"]) for row in rows} == {(stand.first.company_id, stand.first.user_id)}


async def test_what_is_rolled_back_leaves_no_entry(stand: Stand) -> None:
    audit = AuditLog(stand.database)
    before = (await audit.page(ROOT)).total
    with pytest.raises(Conflict):
        await stand.entities.companies.delete(ROOT, stand.first.company_id)
    with pytest.raises(BadParameter):
        await stand.entities.objects.create(stand.first, {"name": "o", "terminal_list": ["none"]})
    assert (await audit.page(ROOT)).total == before


async def test_as_many_entries_as_changes(stand: Stand) -> None:
    """Whoever is told of a change to a record finds it in the log: both come from the same place."""
    await stand.terminal("G1")
    await stand.entities.objects.create(stand.first, {"name": "o", "terminal_list": ["G1"]})
    async with stand.database.reading() as connection:
        counts = [
            (await connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one()
            for table in (AUDIT, CHANGE)
        ]
    assert counts[0] == counts[1] > 0


async def test_times_in_conditions_and_order(stand: Stand) -> None:
    audit = AuditLog(stand.database)
    await stand.terminal("G1")
    latest, *_ = (await audit.page(ROOT)).rows
    assert (await audit.page(ROOT, conditions=Conditions([("time", ">", latest["time"])]))).total == 0
    oldest_first = (await audit.page(ROOT, order_by=("time", False))).rows
    assert [row["time"] for row in oldest_first] == sorted(row["time"] for row in oldest_first)
