"""For how many days a company's time series are kept: fewer than the instance keeps, where its record says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_quotas_own_limits import company_uid, limit

from api.api_rig import open_rig
from terrazzo.database.tables.registry import FORMER_TERMINAL
from terrazzo.metadata.company_limits import NAMES, CompanyLimits
from terrazzo.ports.store import Record
from terrazzo.terminals.series_retention import SeriesRetention, kept_us
from terrazzo.times import DAY_US, now_us
from turns_of_loop import longest_turn

NOTHING = dict.fromkeys((f"limit_{name}" for name in NAMES), 0)


def test_the_fewer_days_count() -> None:
    own = CompanyLimits()
    own.put(7, {**NOTHING, "retention_series": 30})
    assert [own.series_days(7, most) for most in (0, 10, 90)] == [30, 10, 30]
    assert [own.series_days(8, most) for most in (0, 10)] == [0, 10]
    assert own.series_days(None, 10) == 10
    own.put(7, {**NOTHING, "retention_series": 0})
    assert own.series_days(7, 0) == 0


@pytest.mark.parametrize("most_days", [0, 90])
async def test_what_is_older_goes_of_that_company_alone(tmp_path: Path, most_days: int) -> None:
    async with open_rig(tmp_path, store={"retention_days": most_days}) as rig:
        config = await rig.add_config()
        for uid in ("t1", "gone"):
            await rig.add_terminal(uid, config_id=config)
        await rig.add_terminal("s1", "stranger")
        by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
        mapping = await rig.call("create_mapping", name="m", script=[], **by)
        listed = {"mapping_id": mapping["uid"], "terminal_list": ["t1"]}
        made = await rig.call("create_object", name="o", **listed, **by)
        store, now = rig.services.store, now_us()
        ours = ["g/t1/r", "x/t1", "c/t1", f"m/{made['id']}", "g/gone/r"]
        kept = ["g/s1/r", "x/s1", "m/987654"]  # another company's, and nobody's
        await store.append([Record(name, now - days * DAY_US, b"{}") for name in [*ours, *kept] for days in (40, 5)])
        await rig.call("delete_terminal", uid="gone")
        metadata = rig.platform.metadata
        retention = SeriesRetention(
            store,
            metadata.registry,
            metadata.former_terminals,
            metadata.quotas.own,
            most_days=most_days,
            clock=lambda: now,
        )
        await retention.run()
        assert [await count(store, name) for name in [*ours, *kept]] == [2] * 8, "no record says anything"
        await limit(rig, retention_series=30)
        await retention.run()
        assert [await count(store, name) for name in ours] == [1] * 5
        assert [await count(store, name) for name in kept] == [2] * 3
        analysed = kept_us(rig.platform.config.store.retention_days, metadata.registry, metadata.quotas.own)
        assert analysed(int(made["id"])) == 30 * DAY_US, "results of what is gone are not made again"
        assert analysed(987_654) == most_days * DAY_US
        await limit(rig, retention_series=3)
        await retention.run()
        assert [await count(store, name) for name in ours] == [0] * 5


async def count(store, name: str) -> int:
    """How many records a series has."""
    return int((await store.page([name], 0, 2**62, offset=0, limit=0)).total)


async def test_a_store_that_deletes_nothing_refuses_it_by_name(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.platform.metadata.entities.companies.deletes_series = lambda: False
        uid = await company_uid(rig)
        refused = await rig.ask("update_company", "root", uid=uid, retention_series=30)
        assert refused["code"] == 10401
        assert refused["info"].startswith("retention_series: the time-series store (InfluxDB 3) deletes nothing")
        await limit(rig, retention_events=30, retention_series=0)


async def test_thirty_thousand_deleted_terminals_hold_nobody_up(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        metadata = rig.platform.metadata
        gone = [
            {"terminal_id": n, "company_id": 1 + n % 3, "uid": f"t{n}", "series": f"t{n}~{n}", "name": "t", "type": "x"}
            for n in range(1, 30_001)
        ]
        async with metadata.database.writing() as connection:
            await connection.execute(FORMER_TERMINAL.insert(), [{**each, "deleted": 1} for each in gone])
        async with longest_turn() as longest:
            found = await metadata.former_terminals.series_of({1: 30, 2: 30})
        assert longest.cpu_s < 0.005
        assert found == {each["series"]: each["company_id"] for each in gone if each["company_id"] < 3}
