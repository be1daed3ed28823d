"""Every change, command, login and kick leaves its line, in the transaction of what it tells."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import PASSWORD, Rig, terminal_fields

from terrazzo.audit.entry import MASK
from terrazzo.errors import Unavailable


async def entries(rig: Rig, who: str = "admin", **filters: Any) -> list[dict[str, Any]]:
    return (await rig.call("get_audit_list", who, **filters))["data"]


async def test_a_change_says_who_where_what_before_and_after(rig: Rig) -> None:
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    await rig.call("update_terminal", **(terminal_fields("t1", config) | {"name": "new", "pin": "other pin"}))
    await rig.call("delete_terminal", uid="t1")
    deleted, updated, created, config_made = await entries(rig, username="admin-user")
    assert [each["action"] for each in (deleted, updated, created, config_made)] == [
        "delete", "update", "create", "create",
    ]  # fmt: skip
    assert config_made["entity"] == "configuration"
    for each in (deleted, updated, created):
        assert (each["entity"], each["uid"], each["username"]) == ("terminal", "t1", "admin-user")
        assert (each["address"], each["permission_company_id"]) == ("127.0.0.1", "1")
    assert updated["before"] == {"name": "Terminal t1", "pin": MASK}
    assert updated["after"] == {"name": "new", "pin": MASK}
    assert (created["before"], deleted["after"]) == (None, None)
    assert created["after"]["config_id"] == config
    assert created["record_id"] == deleted["record_id"]


async def test_what_changes_nothing_and_what_fails_leave_nothing(rig: Rig) -> None:
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    before = await entries(rig)
    await rig.call("update_terminal", **(terminal_fields("t1", config)))
    assert (await rig.ask("update_terminal", **(terminal_fields("t1", "none"))))["code"] != 200
    assert (await rig.ask("delete_terminal_config", uid=config))["code"] != 200
    assert (await rig.ask("create_terminal", **terminal_fields("t1", config)))["code"] != 200
    assert await entries(rig) == before


async def test_no_change_without_its_line(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    async with rig.services.audit._database.engine.begin() as connection:
        await connection.execute(sa.text("DROP TABLE audit"))
    for action, fields in [
        ("update_terminal", terminal_fields("t1", config) | {"name": "new"}),
        ("create_terminal", terminal_fields("t2", config)),
        ("delete_terminal", {"uid": "t1"}),
        ("publish_terminal_command", {"terminal_id": "t1", "command": "SP1", "value": "1"}),
        ("login", {"username": "admin-user", "password": PASSWORD}),
        ("logout", {}),
    ]:
        status, _ = await rig.post(json.dumps({"action": action, **fields}).encode(), token=rig.tokens["admin"])
        assert status == 503, action
    terminals = await rig.call("get_terminal_list")
    assert [each["name"] for each in terminals] == ["Terminal t1"]
    assert (await rig.call("get_command_list"))["total_records"] == 0


async def test_a_command_names_its_uid_and_who_gave_it(rig: Rig) -> None:
    await rig.add_terminal("t1")
    fields = {"terminal_id": "t1", "command": "SP1", "value": "21.5", "idempotency_key": "k"}
    for _ in range(2):
        await rig.call("publish_terminal_command", "operator", **fields)
    journal = (await rig.call("get_command_list"))["data"]
    [entry] = await entries(rig, entity="command")
    assert (entry["action"], entry["uid"], entry["username"]) == ("command", journal[0]["uid"], "operator-user")
    assert entry["after"] == {"terminal_id": "t1", "command": "SP1", "value": "21.5"}


async def test_logins_and_logouts_are_told_and_what_was_typed_is_not(rig: Rig) -> None:
    await rig.ask("login", "nobody", username="viewer-user", password="hunter2 hunter2")
    user = await rig.call("login", "nobody", username="viewer-user", password=PASSWORD)
    await rig.post(b'{"action": "logout"}', token=user["token"])
    told = await entries(rig, username="viewer-user")
    assert [each["action"] for each in told] == ["logout", "login", "login_refused"]
    assert told[2]["after"] == {"reason": "wrong credentials"}
    assert {(each["address"], each["uid"]) for each in told} == {("127.0.0.1", "viewer-user")}
    everything = str(await entries(rig, "root", page_size=1000))
    for secret in ("hunter2", PASSWORD, user["token"], user["token"][-20:], "argon2"):
        assert secret not in everything


async def test_throttled_logins_are_told_once(rig: Rig) -> None:
    for _ in range(15):
        body = json.dumps({"action": "login", "username": "viewer-user", "password": "guess, guess"}).encode()
        await rig.post(body)
    reasons = [each["after"]["reason"] for each in await entries(rig, username="viewer-user")]
    assert reasons == ["too many failures", *["wrong credentials"] * 10]


async def test_unknown_names_are_for_super_users(rig: Rig) -> None:
    for name in ("nobody at all", "\0", "x" * 1_000):
        await rig.ask("login", "nobody", username=name, password="some password")
    assert "login_refused" not in str(await entries(rig))
    names = [
        each["username"] for each in await entries(rig, "root", entity="user") if each["action"] == "login_refused"
    ]
    assert names == ["x" * 64, "?", "nobody at all"]


async def test_a_company_reads_its_own(rig: Rig) -> None:
    await rig.add_terminal("mine")
    await rig.add_terminal("theirs", "stranger")
    assert {each["uid"] for each in await entries(rig, entity="terminal")} == {"mine"}
    assert {each["uid"] for each in await entries(rig, "stranger", entity="terminal")} == {"theirs"}
    assert {each["uid"] for each in await entries(rig, "root", entity="terminal")} == {"mine", "theirs"}
    probe = [["permission_company_id", "=", 1]]
    assert (await rig.ask("get_audit_list", "stranger", where_and=probe))["code"] == 10401, "no such column"
    probing = await entries(rig, "stranger", where_or=[["uid", "=", "mine"], ["company_id", "=", 1]])
    assert probing == []


@pytest.mark.usefixtures("each_database")
async def test_filters_and_pages(rig: Rig) -> None:
    config = await rig.add_config()
    ids = [await rig.add_terminal(f"t{number}", config_id=config) for number in range(5)]
    assert [each["uid"] for each in await entries(rig, entity="terminal", page_size=2)] == ["t4", "t3"]
    assert [each["uid"] for each in await entries(rig, entity="terminal", page_size=2, page_index=3)] == ["t0"]
    assert [each["uid"] for each in await entries(rig, uid=ids[2], entity="terminal")] == ["t2"]
    assert [each["uid"] for each in await entries(rig, uid="t2")] == ["t2"]
    assert await entries(rig, username="viewer-user") == []
    assert await entries(rig, end_time="2020-01-01 00:00:00") == []
    assert len(await entries(rig, username="admin-user", start_time="2020-01-01 00:00:00")) == 6
    where = json.dumps([["action", "=", "create"], ["uid", "like", "t%"]])
    found = await entries(rig, where_and=where, where_in=["uid", "t1,t3"], order_by='["uid", "asc"]')
    assert [each["uid"] for each in found] == ["t1", "t3"]
    answer = await rig.ask("get_audit_list", start_time="2021-01-01 00:00:00", end_time="2020-01-01 00:00:00")
    assert (answer["code"], answer["info"]) == (10401, "start_time: is after end_time")


async def test_changes_at_the_same_time_each_leave_their_line(rig: Rig) -> None:
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    names = [f"name {number}" for number in range(20)]
    change = [rig.call("update_terminal", **(terminal_fields("t1", config) | {"name": name})) for name in names]
    await asyncio.gather(*change)
    told = [each for each in await entries(rig, uid="t1") if each["action"] == "update"]
    assert sorted(each["after"]["name"] for each in told) == sorted(names)
    assert all(later["before"] == earlier["after"] for earlier, later in itertools.pairwise(told[::-1]))


async def test_a_kick_is_told_before_it_is_done(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.add_terminal("t1")
    await rig.ask("kick_client", client_id="t1")
    assert [each["action"] for each in await entries(rig, uid="t1")] == ["kick", "create"]

    async def fail(entry: Any) -> None:
        raise Unavailable("database: away")

    monkeypatch.setattr(rig.services.audit, "note", fail)
    status, _ = await rig.post(b'{"action": "kick_client", "client_id": "t1"}', token=rig.tokens["admin"])
    assert status == 503
