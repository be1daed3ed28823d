"""Commands found by several states, and recalled while they have not been sent; reports counted by company."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from api_rig import Rig

pytestmark = pytest.mark.usefixtures("each_database")


async def given(rig: Rig, *values: str, who: str = "admin", uid: str = "t1") -> list[str]:
    """The uids of commands for a terminal that is away."""
    for value in values:
        await rig.call("publish_terminal_command", who, terminal_id=uid, command="SP1", value=value)
    return [row["uid"] for row in reversed((await rig.call("get_command_list", who, terminal_id=uid))["data"])]


async def of_state(rig: Rig, *states: str) -> list[dict[str, Any]]:
    return list((await rig.call("get_command_list", "viewer", states=list(states)))["data"])


async def until_ended(rig: Rig, count: int) -> list[dict[str, Any]]:
    """The failed commands, once the journal has so many."""
    async with asyncio.timeout(20):
        while len(failed := await of_state(rig, "failed")) < count:  # noqa: ASYNC110 - the journal is asked over HTTP
            await asyncio.sleep(0.01)
    return failed


async def test_a_command_that_was_not_sent_is_recalled(rig: Rig) -> None:
    await rig.add_terminal("t1")
    first, second, third = await given(rig, "1", "2", "3")
    assert len(await of_state(rig, "queued", "sent")) == 3
    found = await rig.call("recall_commands", "operator", uids=[first, third])
    assert found == {"recalled": [first, third], "left": []}
    failed = await until_ended(rig, 2)
    assert {(each["uid"], each["reason"]) for each in failed} == {
        (first, "recalled by operator-user"),
        (third, "recalled by operator-user"),
    }
    assert [each["uid"] for each in await of_state(rig, "queued", "sent")] == [second]
    assert len(await of_state(rig)) == len(await of_state(rig, "queued", "failed")) == 3
    assert await rig.call("recall_commands", uids=[first, second]) == {"recalled": [second], "left": [first]}
    told = (await rig.call("get_audit_list", where_and=[["action", "=", "recall"]]))["data"]
    assert sorted((each["username"], each["uid"]) for each in told) == sorted(
        [("admin-user", second), ("operator-user", third), ("operator-user", first)]
    )


async def test_nobody_recalls_what_others_gave(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("theirs", "stranger")
    [mine] = await given(rig, "1")
    [theirs] = await given(rig, "1", who="stranger", uid="theirs")
    refused = await rig.ask("recall_commands", uids=[mine, theirs])
    assert (refused["code"], refused["info"]) == (10404, f"uids: no record {theirs!r}")
    assert (await rig.ask("recall_commands", "viewer", uids=[mine]))["code"] == 10403
    assert [each["uid"] for each in await of_state(rig, "queued")] == [mine], "all or none are looked at"
    assert (await rig.call("get_audit_list", where_and=[["action", "=", "recall"]]))["data"] == []
    assert (await rig.call("recall_commands", "root", uids=[mine, theirs]))["left"] == []


async def test_a_company_counts_its_own_reports(rig: Rig) -> None:
    nothing = {"reports": 0, "bytes": 0, "waiting": 0, "waiting_bytes": 0}
    taken = rig.platform.messaging.ingest.taken
    assert [await rig.call("get_intake", who) for who in ("viewer", "stranger", "root")] == [nothing] * 3
    for owner, reports in (("1", 3), ("2", 4)):
        taken[owner].taken, taken[owner].taken_bytes = reports + 1, 10 * reports + 5
        taken[owner].stored, taken[owner].stored_bytes = reports, 10 * reports
    assert await rig.call("get_intake", "viewer") == {"reports": 3, "bytes": 30, "waiting": 1, "waiting_bytes": 5}
    assert await rig.call("get_intake", "stranger") == {"reports": 4, "bytes": 40, "waiting": 1, "waiting_bytes": 5}
    assert await rig.call("get_intake", "root") == {"reports": 7, "bytes": 70, "waiting": 2, "waiting_bytes": 10}
