"""Limits in a company's own record: less than the configuration's, never more, set by super users alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from test_quotas_records import send

from api.api_rig import Rig, open_rig, terminal_fields
from client_certificates import ClientCa
from terrazzo.api.kernel.envelope import Answer
from terrazzo.config.limits import LimitsSection
from terrazzo.errors import Throttled
from terrazzo.metadata.company_limits import NAMES, CompanyLimits
from terrazzo_broker.admission.publish_pace import PublishPace

HOOK = {"kinds": ["offline"], "channel": "webhook", "url": "https://example.com/h", "secret": "0123456789abcdef"}
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


def test_each_limit_of_companies_has_one_in_their_records() -> None:
    configured = {
        name.removeprefix("company_") for name in LimitsSection.__struct_fields__ if name.startswith("company_")
    }
    assert set(NAMES) == configured


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


async def test_what_a_company_has_in_the_broker_follows_its_record(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        broker = rig.platform.terminals.broker
        await limit(rig, limit_subscriptions=7, limit_queued_bytes=900, limit_publish_per_second=5)
        limits = broker.core.limits_of("1")
        assert (limits.subscriptions, limits.queued_bytes, limits.publish_per_second) == (7, 900, 5)
        assert limits.retained_messages == LimitsSection().company_retained_messages
        assert broker.core.limits_of("2") == broker.settings.owner_limits
        await limit(rig, limit_subscriptions=2**50, limit_queued_bytes=0, limit_publish_per_second=0)
        assert broker.core.limits_of("1") == broker.settings.owner_limits, "never more"
        await limit(rig, limit_subscriptions=7)
    async with open_rig(tmp_path) as rig:
        assert rig.platform.terminals.broker.core.limits_of("1").subscriptions == 7, "after a restart"


async def test_keys_rules_and_authorities_of_one_company_are_fewer(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await limit(rig, limit_api_keys=1, limit_rules=1, limit_authorities=1)
        asked: dict[str, list[dict[str, Any]]] = {"create_api_key": [{"name": "k", "days": 1}] * 2}
        asked["create_terminal_authority"] = [
            {"name": name, "certificate": ClientCa(name).pem} for name in ("First", "Second")
        ]
        for action, (first, second) in asked.items():
            await rig.call(action, **first)
            refused = (await rig.ask(action, **second))["info"]
            assert "may have 1 (limit_" in refused
            assert refused.endswith("of the company's record)")
        uids = [(await rig.call("create_rule", **HOOK, name=name))["uid"] for name in ("a", "b")]
        await rig.call("start_rule", uid=uids[0])
        refused = (await rig.ask("start_rule", uid=uids[1]))["info"]
        assert refused.endswith("may have 1 (limit_rules of the company's record)")
        await limit(rig, limit_rules=0)
        await rig.call("start_rule", uid=uids[1])


async def test_answers_of_one_company_are_fewer_and_are_counted(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await limit(rig, limit_answer_bytes=20_000)
        unread = rig.platform.gateway.kept_answers.__self__
        held = Answer(b"x" * 19_000)
        unread.keep(held, 1)
        with pytest.raises(Throttled, match=r"\(limit_answer_bytes of the company's record\)"):
            unread.keep(Answer(b"x" * 19_000), 1)
        held_too = Answer(b"x" * 19_000), Answer(b"x" * 19_000)
        for each in held_too:
            unread.keep(each, 2)
        async with rig.http.get("/metrics") as response:
            assert "terrazzo_answers_untaken_total 1.0" in await response.text()
        del held, held_too


async def test_refusals_of_turns_and_of_large_answers_are_counted(tmp_path: Path) -> None:
    async with open_rig(tmp_path, limits={"answer_bytes": 1_024}) as rig:
        config = await rig.add_config()
        for number in range(20):
            await rig.add_terminal(f"t{number}", config_id=config)
        refused = await rig.ask("get_terminal_list", page_index=1, page_size=20)
        assert "limits.answer_bytes" in refused["info"]
        imports, ended = rig.services.imports, asyncio.Event()

        async def take_turn() -> None:
            async with imports.turn(1):
                await ended.wait()

        async with asyncio.TaskGroup() as group:
            for _ in range(5):  # one works and four wait
                group.create_task(take_turn())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(Throttled):
                async with imports.turn(1):
                    pass
            ended.set()
        async with rig.http.get("/metrics") as response:
            told = await response.text()
        assert "terrazzo_answers_too_large_total 1.0" in told
        assert 'terrazzo_turns_refused_total{work="imports"} 1.0' in told
        for work in ("exports", "queries", "mapping trials", "commands", "database", "store"):
            assert f'terrazzo_turns_refused_total{{work="{work}"}} 0.0' in told
