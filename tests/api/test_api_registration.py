"""A terminal comes in by its uid alone, and who tried to log in before is found by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from api_rig import Rig, open_rig, terminal_fields

from terrazzo_broker.hooks import Accept, ConnectRequest


async def knock(rig: Rig, uid: str, address: str = "10.9.9.9", **more: Any) -> Any:
    request = ConnectRequest(client_id=uid, address=address, **{"username": "u", "password": b"p", **more})
    return await rig.platform.terminals.login.authenticate(request)


async def unknown(rig: Rig, who: str = "root", **page: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.call("get_unknown_terminal_list", who, **page))["data"]
    return found


async def test_a_uid_is_enough(rig: Rig) -> None:
    made = await rig.call("register_terminal", uid="pump-7")
    assert len(made["pin"]) == 16
    assert made == {**made, "uid": "pump-7", "username": "pump-7", "mode": "pwd"}
    record = await rig.call("get_terminal_item", uid="pump-7")
    assert {name: record[name] for name in made} == made
    assert record == {**record, "name": "pump-7", "type": "Other", "access": "all", "topic": "all", "is_available": 1}
    assert record["created_by"] == record["last_modified_by"] != 0
    [configuration] = await rig.call("get_terminal_config_list")
    assert (configuration["name"], configuration["uid"]) == ("default", made["config_id"])
    verdict = await knock(rig, "pump-7", username=made["username"], password=made["pin"].encode())
    assert isinstance(verdict, Accept)
    told = [each for each in (await rig.call("get_audit_list"))["data"] if each["uid"] == "pump-7"]
    assert [each["action"] for each in told] == ["create"]
    assert made["pin"] not in str(told), "it is in the answer only"


async def test_what_is_given_is_kept(rig: Rig) -> None:
    config = await rig.add_config(name="other")
    given = {"name": "Pump", "username": "pp", "pin": "0123456789", "type": "Adapter-X", "mode": "auto"}
    given |= {"config_id": config, "access": "pub", "topic": "pub:r", "keep_alive": 30, "is_available": 0}
    made = await rig.call("register_terminal", uid="t1", **given)
    assert made == {**made, "username": "pp", "pin": "0123456789", "mode": "auto", "config_id": config}
    record = await rig.call("get_terminal_item", uid="t1")
    assert {name: record[name] for name in given} == given
    assert [each["name"] for each in await rig.call("get_terminal_config_list")] == ["other"], "no default was needed"


async def test_pins_differ_and_one_default_configuration_is_made(rig: Rig) -> None:
    await rig.add_config(name="default mode")
    made = await asyncio.gather(*(rig.call("register_terminal", uid=f"t{number}") for number in range(8)))
    assert len({each["pin"] for each in made}) == 8
    assert len({each["config_id"] for each in made}) == 1
    named = [each["name"] for each in await rig.call("get_terminal_config_list")]
    assert sorted(named) == ["default", "default mode"]


@pytest.mark.parametrize("uid", ["u" * 64, "u" * 31 + " " + "v" * 20, "7"])
async def test_user_names_are_the_beginning_of_the_uid(rig: Rig, uid: str) -> None:
    assert (await rig.call("register_terminal", uid=uid))["username"] == uid[:32].strip()


async def test_what_makes_no_sense_is_refused(rig: Rig) -> None:
    await rig.call("register_terminal", uid="t1")
    for fields, code, info in [
        ({}, 10401, "uid: is required"),
        ({"uid": ""}, 10401, "uid: "),
        ({"uid": "a/b"}, 10401, "uid: contains '/'"),
        ({"uid": "r"}, 10401, "uid: 'r' is a channel's letter"),
        ({"uid": "t1"}, 500, "uid: t1 is taken"),
        ({"uid": "t2", "mode": "token"}, 10401, "mode: "),
        ({"uid": "t2", "config_id": "none"}, 10401, "config_id: "),
    ]:
        answer = await rig.ask("register_terminal", **fields)
        assert (answer["code"], answer["info"][: len(info)]) == (code, info)
    for who in ("viewer", "operator"):
        assert (await rig.ask("register_terminal", who, uid="t3"))["code"] == 10403


async def test_the_other_actions_need_what_they_needed(rig: Rig) -> None:
    fields = terminal_fields("t1", await rig.add_config())
    for name in ("name", "type", "config_id", "mode", "username", "pin", "access", "created_by", "is_available"):
        answer = await rig.ask("create_terminal", **{key: value for key, value in fields.items() if key != name})
        assert (answer["code"], answer["info"]) == (10401, f"{name}: is required")


async def test_companies_have_their_own_default(rig: Rig) -> None:
    other = rig.services.tokens.verify(rig.tokens["stranger"]).company_id
    mine = await rig.call("register_terminal", uid="mine")
    theirs = await rig.call("register_terminal", "root", uid="theirs", permission_company_id=other)
    own = await rig.call("register_terminal", "stranger", uid="own")
    assert own["config_id"] == theirs["config_id"] != mine["config_id"]
    assert (await rig.call("get_terminal_item", "stranger", uid="theirs"))["permission_company_id"] == str(other)
    refused = await rig.ask("register_terminal", uid="t9", permission_company_id=other)
    assert refused["code"] == 10403
    refused = await rig.ask("register_terminal", "root", uid="t9", permission_company_id=4711)
    assert (refused["code"], refused["info"]) == (10401, "permission_company_id: no company 4711")


async def test_a_short_pin_is_refused_and_the_made_up_one_is_long_enough(tmp_path: Any) -> None:
    async with open_rig(tmp_path, limits={"pin_chars": 16}) as rig:
        assert (await rig.ask("register_terminal", uid="t1", pin="short"))["code"] == 10401
        assert len((await rig.call("register_terminal", uid="t1"))["pin"]) == 16


async def test_who_tried_is_seen_by_super_users_until_it_is_registered(rig: Rig) -> None:
    await rig.add_terminal("known")
    assert await unknown(rig) == []
    for _ in range(3):
        await knock(rig, "pump-7")
    await knock(rig, "pump-8", "10.1.1.1")
    await knock(rig, "pump-8", "10.1.1.2")
    await knock(rig, "known")
    found = await unknown(rig)
    assert [(each["uid"], each["address"], each["count"]) for each in found] == [
        ("pump-8", "10.1.1.2", 1),
        ("pump-8", "10.1.1.1", 1),
        ("pump-7", "10.9.9.9", 3),
    ]
    assert all(each["first_time"] <= each["last_time"] for each in found)
    assert [each["permission_company_id"] for each in found] == ["", "", ""]
    assert [each["uid"] for each in await unknown(rig, page_size=1, page_index=3)] == ["pump-7"]
    assert await unknown(rig, "admin") == [], "nothing says that they are the company's"
    for who in ("viewer", "operator"):
        assert (await rig.ask("get_unknown_terminal_list", who))["code"] == 10403
    await rig.call("register_terminal", "root", uid="pump-8")
    assert [each["uid"] for each in await unknown(rig)] == ["pump-7"]
