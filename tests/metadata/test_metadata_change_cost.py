"""A change asks for what it needs: what a client sends back as it was shown is not looked up, nor written elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from registry_stand import ROOT, Stand

from terrazzo.database.tables.registry import OBJECT_TERMINAL, TERMINAL_TAG
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import measure
from terrazzo.errors import BadParameter
from terrazzo.metadata.quotas import COUNTED_RECORDS

ROW = ["TEMP", "T", "T", "STA", "$AdapterID-1.T", ""]


@contextmanager
def statements() -> Iterator[list[str]]:
    """All statements of the block, but those that begin and end a transaction."""
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        found.append(" ".join(statement.split()))

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", note)


@pytest.fixture
async def named(stand: Stand) -> dict[str, Any]:
    """What an object names: mapping, customer and terminals."""
    entities = stand.entities
    mapping = await entities.mappings.create(stand.first, {"name": "m", "script": [ROW]})
    customer = await entities.customers.create(stand.first, {"name": "c"})
    await stand.terminal("t1", tags=["x", "y"])
    await stand.terminal("t2")
    return {"mapping_id": mapping["uid"], "customer_id": customer["uid"], "terminal_list": ["t1", "t2"], "name": "o"}


async def rows_of(stand: Stand, table: sa.Table) -> list[tuple[Any, ...]]:
    async with stand.database.reading() as connection:
        return [tuple(row) for row in (await connection.execute(sa.select(table).order_by(*table.c))).all()]


async def test_what_is_sent_back_as_it_was_is_not_looked_up(stand: Stand, named: dict[str, Any], kind: str) -> None:
    objects, terminals = stand.entities.objects, stand.entities.terminals
    row = await objects.create(stand.first, named)
    links, tags = await rows_of(stand, OBJECT_TERMINAL), await rows_of(stand, TERMINAL_TAG)
    shown = {name: row[name] for name in ("customer_id", "control_id")}
    for number, values in enumerate((named, named | shown, shown)):
        with statements() as found:
            changed = await objects.update(stand.first, row["uid"], values | {"description": f"d{number}"})
        assert changed == row | {"description": f"d{number}", "last_modified": changed["last_modified"]}
        asked_for = [each for each in found if "JOIN" not in each]
        assert not [each for each in asked_for if "FROM mapping" in each or "FROM customer" in each]
        assert not [each for each in asked_for if "FROM terminal" in each or "INTO object_terminal" in each]
        assert len(found) <= (8 if kind == "sqlite" else 9), found
    with statements() as found:
        await terminals.update(stand.first, "t1", {"config_id": stand.config, "tags": "y, x", "name": "n"})
    assert len(found) <= (8 if kind == "sqlite" else 9), found
    assert (await rows_of(stand, OBJECT_TERMINAL), await rows_of(stand, TERMINAL_TAG)) == (links, tags)


async def test_what_differs_is_looked_up_and_written(stand: Stand, named: dict[str, Any]) -> None:
    objects = stand.entities.objects
    row = await objects.create(stand.first, named)
    other = await stand.entities.mappings.create(stand.first, {"name": "m2", "script": [ROW]})
    changed = await objects.update(stand.first, row["uid"], {"mapping_id": other["id"], "terminal_list": ["t2", "t1"]})
    assert (changed["mapping_uid"], changed["terminal_list"]) == (other["uid"], ["t2", "t1"])
    changed = await objects.update(stand.first, row["uid"], {"mapping_id": None, "terminal_list": "t2"})
    assert (changed["mapping_id"], changed["terminal_list"]) == (None, ["t2"])
    assert [link[2] for link in await rows_of(stand, OBJECT_TERMINAL)] == [0]
    for wrong in ({"mapping_id": "no-such"}, {"customer_id": 4711}, {"terminal_list": ["t2", "t2"]}):
        with pytest.raises(BadParameter):
            await objects.update(stand.first, row["uid"], wrong)
    await stand.entities.terminals.update(stand.first, "t1", {"tags": ["z"]})
    assert [tag for tag, _ in await rows_of(stand, TERMINAL_TAG)] == ["z"]


async def test_counters_follow_each_change(stand: Stand, named: dict[str, Any]) -> None:
    objects, terminals = stand.entities.objects, stand.entities.terminals
    first = await objects.create(stand.first, named)
    await expect_counted(stand)
    await objects.update(stand.first, first["uid"], {"description": "Größe", "terminal_list": ["t2"]})
    await terminals.update(ROOT, "t1", {"name": "ein längerer Name", "tags": []})
    await expect_counted(stand)
    second = await objects.create(stand.first, named | {"name": "b"})
    await objects.delete(stand.first, first["uid"])
    await expect_counted(stand)
    await objects.delete(ROOT, second["uid"])
    await terminals.delete(stand.first, "t1")
    await stand.entities.companies.update(ROOT, stand.first.company_id, {"description": "counted nowhere"})
    await expect_counted(stand)


async def expect_counted(stand: Stand) -> None:
    """The counters are what a count of all rows says."""
    async with stand.database.reading() as connection:
        for kind in ("terminal", "object", "mapping", "customer", "configuration"):
            counted = COUNTED_RECORDS[kind]
            ids = list((await connection.execute(sa.select(counted.table.c.id))).scalars())
            real = {
                (each.company_id, each.part): tuple(use)
                for each, use in (await measure(connection, counted, ids)).items()
            }
            query = sa.select(COMPANY_USAGE).where(COMPANY_USAGE.c.kind == counted.kind, COMPANY_USAGE.c.company_id > 0)
            kept = {(row.company_id, row.part): (row.records, row.bytes) for row in await connection.execute(query)}
            assert {key: use for key, use in kept.items() if use != (0, 0)} == real, kind
