"""Terminals and configurations: the five actions of each, as the interface description has them."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from api_rig import Rig, config_fields, terminal_fields

from waiting import until

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

TERMINAL_READ = {
    "id", "uid", "name", "description", "type", "maker", "config_id", "mode", "username", "pin", "access", "topic",
    "server", "session_expiry", "keep_alive", "encryption", "dixie", "rsa_privatekey", "reference", "created_by",
    "last_modified_by", "is_available", "created", "last_modified", "terminal_object_map",
}  # fmt: skip
CONFIG_READ = {
    "id", "uid", "name", "description", "hardware", "mcu_file", "mcu_version", "remosu_file", "remosu_version",
    "lua_file", "lua_version", "terminal_script", "config_script", "reference", "created_by", "last_modified_by",
    "is_available", "created", "last_modified",
}  # fmt: skip


async def test_a_terminal_from_creation_to_deletion(rig: Rig) -> None:
    config = await rig.add_config()
    given = terminal_fields("t1", config) | {
        "description": "in the cellar", "maker": "ACME", "topic": "pub:r,a;sub:g/#", "server": "mqtt.example",
        "session_expiry": 3600, "keep_alive": 60, "encryption": 1, "dixie": 1, "is_route": 1, "reference": "R-7",
    }  # fmt: skip
    created = await rig.call("create_terminal", **given)
    assert created == {"id": created["id"], "uid": "t1"}

    record = await rig.call("get_terminal_item", uid="t1")
    assert set(record) >= TERMINAL_READ
    assert {name: record[name] for name in given} == given
    assert record["terminal_object_map"] is None
    assert TIME.fullmatch(record["created"])
    assert TIME.fullmatch(record["last_modified"])
    known = rig.services.registry.terminal("t1")
    assert known is not None
    assert (known.pin, known.keep_alive_s, known.dixie) == (given["pin"], 60, True)

    changes = terminal_fields("t1", config) | {"name": "renamed", "pin": "new pin", "is_available": 0}
    assert await rig.call("update_terminal", **changes) == {"uid": "t1"}
    changed = await rig.call("get_terminal_item", uid="t1")
    assert {name: changed[name] for name in changes} == changes
    assert changed["description"] == "in the cellar", "what was not given stays"
    known = rig.services.registry.terminal("t1")
    assert known is not None
    assert (known.pin, known.is_available) == ("new pin", False)

    assert await rig.call("delete_terminal", uid="t1") == {"uid": "t1"}
    assert rig.services.registry.terminal("t1") is None
    for action in ("get_terminal_item", "delete_terminal"):
        answer = await rig.ask(action, uid="t1")
        assert (answer["code"], answer["info"]) == (10404, "uid: no record 't1'")
    assert (await rig.ask("update_terminal", **changes))["code"] == 10404


async def test_a_record_read_can_be_written_back(rig: Rig) -> None:
    await rig.add_terminal("t1")
    before = await rig.call("get_terminal_item", uid="t1")
    await rig.call("update_terminal", **before)
    after = await rig.call("get_terminal_item", uid="t1")
    assert {**after, "last_modified": ""} == {**before, "last_modified": ""}


async def test_ids_are_accepted_in_both_forms(rig: Rig) -> None:
    config = await rig.add_config()
    config_id = (await rig.call("get_terminal_config_item", uid=config))["id"]
    number = await rig.add_terminal("t1", config_id=config_id)
    await rig.add_terminal("t2", config_id=str(config_id))
    for uid in ("t1", "t2"):
        assert (await rig.call("get_terminal_item", uid=uid))["config_id"] == config
    for key in (number, str(number), "t1"):
        assert (await rig.call("get_terminal_item", uid=key))["uid"] == "t1"
        assert (await rig.call("get_terminal_status", terminal_id=key))["terminal_id"] == "t1"
        assert await rig.call("get_last_grid", terminal_id=key) == {"data": []}
    await rig.call("update_terminal", **(terminal_fields("t1", config) | {"uid": number, "name": "by id"}))
    assert (await rig.call("get_terminal_item", uid="t1"))["name"] == "by id"
    for key in (0, 2**63 - 1, "999999", "nobody"):
        assert (await rig.ask("get_terminal_item", uid=key))["code"] == 10404
        assert (await rig.ask("get_terminal_status", terminal_id=key))["code"] == 10404


async def test_the_list_is_a_bare_array_in_pages(rig: Rig) -> None:
    config = await rig.add_config()
    uids = [f"t{number:02}" for number in range(25)]
    for uid in uids:
        await rig.add_terminal(uid, config_id=config)

    async def listed(**fields: Any) -> list[str]:
        return [record["uid"] for record in await rig.call("get_terminal_list", **fields)]

    assert await listed() == uids[:20]
    assert await listed(page_index=2) == uids[20:]
    assert await listed(page_index=3) == []
    assert await listed(page_index=3, page_size=7) == uids[14:21]
    assert await listed(page_size=1000) == uids
    assert await listed(uids=["t03", "t01", "missing"]) == ["t01", "t03"]
    assert await listed(uids='["t03"]') == ["t03"]
    assert await listed(uids=[], page_size=3) == uids[:3]
    assert await listed(uids=uids, page_size=2, page_index=2) == uids[2:4]
    for page in ({"page_index": 0}, {"page_index": -1}, {"page_size": 0}, {"page_size": 1001}):
        assert (await rig.ask("get_terminal_list", **page))["code"] == 10401


async def test_secrets_are_for_admins(rig: Rig) -> None:
    await rig.add_terminal("t1", pin="the pin")
    for who in ("root", "admin"):
        assert (await rig.call("get_terminal_item", who, uid="t1"))["pin"] == "the pin"
    for who in ("operator", "viewer"):
        record = await rig.call("get_terminal_item", who, uid="t1")
        assert (record["pin"], record["rsa_privatekey"]) == ("******", "")
        (listed,) = await rig.call("get_terminal_list", who)
        assert listed == record


async def test_a_terminal_that_makes_no_sense_is_refused(rig: Rig) -> None:
    config = await rig.add_config()
    fields = terminal_fields("t1", config)
    for wrong, info in [
        ({"uid": "a/b"}, "uid: contains '/'"),
        ({"uid": "x" * 65}, "uid: expected str of length <= 64"),
        ({"uid": ""}, "uid: expected str of length >= 1"),
        ({"mode": "token"}, "mode: expected one of pwd, auto, cert, got 'token'"),
        ({"access": "none"}, "access: expected one of all, pub, sub, got 'none'"),
        ({"topic": "pub:x"}, "topic: "),
        ({"config_id": "none"}, "config_id: "),
        ({"is_available": 2}, "is_available: expected int <= 1"),
        ({"keep_alive": -1}, "keep_alive: expected int >= 0"),
        ({"rsa_privatekey": "no key"}, "rsa_privatekey: "),
        ({"name": "a\0b"}, "name: "),
        ({"created_by": 2**63}, "created_by: "),
    ]:
        answer = await rig.ask("create_terminal", **(fields | wrong))
        assert answer["code"] == 10401, answer
        assert answer["info"].startswith(info)
    assert await rig.call("get_terminal_list") == []
    await rig.call("create_terminal", **fields)
    taken = await rig.ask("create_terminal", **fields)
    assert (taken["code"], taken["info"]) == (500, "uid: t1 is taken")


async def test_a_configuration_from_creation_to_deletion(rig: Rig) -> None:
    given = config_fields() | {
        "description": "for cellars", "hardware": "v2", "mcu_file": "m.bin", "mcu_version": "1", "remosu_file": "r.bin",
        "remosu_version": "2", "lua_file": "l.lua", "lua_version": "3", "reference": "R-8",
    }  # fmt: skip
    scripts = {"terminal_script": '{"cycle": 5, "points": [["T1", 0.5]]}', "config_script": [{"a": None}]}
    created = await rig.call("create_terminal_config", **given, **scripts)
    uid = created["uid"]
    assert created == {"id": created["id"], "uid": uid}
    assert isinstance(created["id"], int)

    record = await rig.call("get_terminal_config_item", uid=uid)
    assert set(record) >= CONFIG_READ
    assert {name: record[name] for name in given} == given
    assert record["terminal_script"] == {"cycle": 5, "points": [["T1", 0.5]]}
    assert record["config_script"] == [{"a": None}]
    assert await rig.call("get_terminal_config_list") == [record]
    assert await rig.call("get_terminal_config_list", page_index=2) == []

    changes = config_fields() | {"uid": uid, "name": "renamed", "config_script": ""}
    assert await rig.call("update_terminal_config", **changes) == {"uid": uid}
    changed = await rig.call("get_terminal_config_item", uid=created["id"])
    assert (changed["name"], changed["config_script"]) == ("renamed", {})
    assert changed["terminal_script"] == record["terminal_script"]

    await rig.add_terminal("t1", config_id=uid)
    used = await rig.ask("delete_terminal_config", uid=uid)
    assert used["code"] == 500
    assert "t1" in used["info"]
    await rig.call("delete_terminal", uid="t1")
    assert await rig.call("delete_terminal_config", uid=uid) == {"uid": uid}
    assert (await rig.ask("get_terminal_config_item", uid=uid))["code"] == 10404


async def test_scripts_that_are_no_json_are_refused(rig: Rig) -> None:
    for script in ("{", "5", "NaN", 5, "[" * 100_000, "[" * 65 + "]" * 65):
        answer = await rig.ask("create_terminal_config", **config_fields(), terminal_script=script)
        assert answer["code"] == 10401, script
        assert answer["info"].startswith("terminal_script: ")
    assert await rig.call("get_terminal_config_list") == []


async def test_a_super_user_may_name_the_company(rig: Rig) -> None:
    other = rig.services.tokens.verify(rig.tokens["stranger"]).company_id
    config = await rig.add_config("root", permission_company_id=other)
    await rig.add_terminal("theirs", "root", config_id=config, permission_company_id=str(other))
    assert (await rig.call("get_terminal_item", "stranger", uid="theirs"))["permission_company_id"] == str(other)
    refused = await rig.ask("create_terminal_config", **config_fields(), permission_company_id=other)
    assert refused["code"] == 10403


async def test_the_status_says_how_far_a_terminal_is_with_its_configuration(rig: Rig) -> None:
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    assert (await rig.call("get_terminal_status", terminal_id="t1"))["configuration"] is None
    fields = config_fields() | {"uid": config, "config_script": {"a": 1}, "deliver": 1}
    await rig.call("update_terminal_config", **fields)
    assert (await rig.call("get_terminal_config_item", uid=config))["deliver"] == 1
    await until(lambda: rig.platform.messaging.configurations.status("t1"))
    found = (await rig.call("get_terminal_status", terminal_id="t1"))["configuration"]
    assert found["since"]
    version = sha256(b'{"a":1}').hexdigest()
    expected = {"version": version, "state": "pending", "reported": None, "difference": []}
    assert {key: value for key, value in found.items() if key != "since"} == expected
    assert (await rig.ask("update_terminal_config", **fields | {"deliver": 2}))["code"] == 10401
