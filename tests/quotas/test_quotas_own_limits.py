"""Limits in a company's own record: less than the configuration's, never more, set by super users alone."""

from __future__ import annotations

from pathlib import Path

from test_quotas_records import send

from api.api_rig import Rig, open_rig, terminal_fields
from terrazzo.metadata.company_limits import NAMES, CompanyLimits
from terrazzo_broker.admission.publish_pace import PublishPace

NOTHING = dict.fromkeys((f"limit_{name}" for name in NAMES), 0)


async def company_uid(rig: Rig) -> str:
    """The uid of the company that the rig's users are of."""
    return str((await rig.call("get_company_list", "root", where_and=[["id", "=", 1]]))["data"][0]["uid"])


async def limit(rig: Rig, **limits: int) -> None:
    """Changes the company's own limits."""
    await rig.call("update_company", "root", uid=await company_uid(rig), **limits)


def test_the_lower_one_counts_and_says_where_it_stands() -> None:
    limits, told = CompanyLimits(), list[int]()
    limits.changes.listen(told.append)
    limits.put(7, {**NOTHING, "limit_files": 5, "limit_publish_per_second": 20})
    assert limits.limit(7, "files", 10) == (5, "limit_files of the company's record")
    assert limits.limit(7, "files", 3) == (3, "limits.company_files"), "never more"
    assert limits.limit(8, "files", 10) == (10, "limits.company_files")
    assert limits.limit(7, "publish_per_second", 0, off=0).most == 20, "where there was none"
    assert limits.limit(7, "publish_per_second", 10, off=0).most == 10
    limits.put(7, {**NOTHING, "limit_files": 5, "limit_publish_per_second": 20})
    limits.put(8, NOTHING)
    limits.put(7, None)
    assert limits.limit(7, "files", 10) == (10, "limits.company_files")
    assert told == [7, 7], "of changes alone"


async def test_records_and_files_of_one_company_are_fewer_at_once_and_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        config = await rig.add_config()
        await limit(rig, limit_records=4, limit_file_bytes=2_000)
        for uid in ("t0", "t1", "t2", "t3"):  # as many as there are users
            await rig.add_terminal(uid, config_id=config)
        refused = await rig.ask("create_terminal", **terminal_fields("t4", config))
        assert refused["info"] == (
            "terminal: your company would have 5 records, and may have 4 (limit_records of the company's record)"
        )
        assert "limit_file_bytes" in (await send(rig, b"x" * 3_000))["info"]
        await rig.add_terminal("s1", "stranger")
    async with open_rig(tmp_path) as rig:
        refused = await rig.ask("create_terminal", **terminal_fields("t4", config))
        assert "limit_records" in refused["info"]
        await limit(rig, limit_records=0)
        await rig.add_terminal("t4", config_id=config)


async def test_what_is_there_stays_and_is_named(tmp_path: Path, caplog) -> None:
    async with open_rig(tmp_path) as rig:
        await limit(rig, limit_records=1)
    async with open_rig(tmp_path) as rig:
        assert "more than its own limit_records = 1: what is there stays" in caplog.text


async def test_who_may_set_them_and_what_is_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        uid = await company_uid(rig)
        assert (await rig.ask("update_company", "admin", uid=uid, limit_records=1))["code"] == 10403
        refused = await rig.ask("update_company", "root", uid=uid, limit_records=2**50 + 1)
        assert (refused["code"], refused["info"]) == (10401, f"limit_records: expected int <= {2**50}")
        assert "limit_events" in (await rig.ask("update_company", "root", uid=uid, limit_events=-1))["info"]


def test_an_owners_own_pace_counts_from_now_on() -> None:
    pace = PublishPace(0, 0)
    assert not pace.is_limited
    pace.limit_owner("1", 10)
    assert pace.is_limited
    assert pace.take("1", 10, 0.0) == 0.0
    assert pace.take("1", 10, 0.0) == 1.0
    assert pace.take("2", 1_000, 0.0) == 0.0
    pace.limit_owner("1", 0)
    assert not pace.is_limited
    assert pace.take("1", 1_000, 0.0) == 0.0
