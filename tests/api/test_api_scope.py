"""Who may do what: roles, companies, and answers that give nothing away."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from api_rig import Rig, config_fields, terminal_fields

from terrazzo.access.actor import Role
from terrazzo.api.table import TABLE
from terrazzo.store import Record

TIMES = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}

REQUESTS: dict[str, dict[str, Any]] = {
    "ping": {},
    "create_terminal": terminal_fields("new", "CONFIG"),
    "update_terminal": terminal_fields("t1", "CONFIG"),
    "get_terminal_item": {"uid": "t1"},
    "get_terminal_list": {},
    "create_terminal_config": config_fields(),
    "update_terminal_config": config_fields() | {"uid": "CONFIG"},
    "get_terminal_config_item": {"uid": "CONFIG"},
    "get_terminal_config_list": {},
    "get_terminal_status": {"terminal_id": "t1"},
    "get_last_grid": {"terminal_id": "t1"},
    "get_grid_item": {"terminal_id": "t1", "time": "2000-01-01 00:00:00"},
    "get_last_grid_list": {"terminal_id": "t1", "items": 5},
    "get_grid_list": {"terminal_id": "t1", **TIMES},
    "get_reject_list": {"terminal_id": "t1"},
    "publish_terminal_command": {"terminal_id": "t1", "command": "SP1", "value": "21.5"},
    "get_command_list": {"terminal_id": "t1"},
    "get_broker_status": {},
    "get_client_list": {"terminal_id": "t1"},
    "get_subscription_list": {"terminal_id": "t1"},
    "kick_client": {"client_id": "t1"},
    "delete_terminal": {"uid": "t1"},
    "delete_terminal_config": {"uid": "SPARE"},
}
"""One request of every operation that needs a role, deletions last; CONFIG and SPARE stand for configurations' uids."""

NAMES_NO_RECORD = {
    "ping",
    "create_terminal_config",
    "get_terminal_list",
    "get_terminal_config_list",
    "get_broker_status",
}
NEEDS_A_CONNECTION = {"kick_client"}  # and nobody is connected here
ROLES = {"viewer": Role.VIEWER, "operator": Role.OPERATOR, "admin": Role.ADMIN}


def with_uids(fields: dict[str, Any], uids: dict[str, str]) -> dict[str, Any]:
    return {name: uids.get(str(value), value) for name, value in fields.items()}


async def fill(rig: Rig) -> dict[str, str]:
    """One of everything; the configurations' uids."""
    config = await rig.add_config()
    await rig.add_terminal("t1", config_id=config)
    reject = msgspec.msgpack.encode({"topic": "g/t1/r", "reason": "not JSON", "payload": b"secret"})
    await rig.services.store.append([Record("g/t1/r", 5, b'{"secret": 1}'), Record("x/t1", 5, reject)])
    await rig.call("publish_terminal_command", terminal_id="t1", command="SP1", value="1")
    return {"CONFIG": config, "SPARE": await rig.add_config()}


def test_every_operation_is_tried() -> None:
    assert set(REQUESTS) == {operation.name for operation in TABLE if operation.permission is not None}


@pytest.mark.parametrize("who", ["viewer", "operator", "admin"])
async def test_each_role_may_what_the_table_says(rig: Rig, who: str) -> None:
    uids = await fill(rig)
    for action, fields in REQUESTS.items():
        answer = await rig.ask(action, who, **with_uids(fields, uids))
        permission = TABLE[action].permission
        assert permission is not None
        if ROLES[who] >= permission:
            assert answer["code"] == (10404 if action in NEEDS_A_CONNECTION else 200), (action, answer)
        else:
            assert (answer["code"], answer["result"]) == (10403, {}), action
            assert answer["info"] == f"needs the role {permission.name.lower()}, {who}-user is {who}"


async def test_nobody_may_anything(rig: Rig) -> None:
    uids = await fill(rig)
    for action, fields in REQUESTS.items():
        answer = await rig.ask(action, "nobody", **with_uids(fields, uids))
        assert (answer["code"], answer["result"]) == (10402, {}), action
        empty = await rig.ask(action, "nobody")
        assert empty["code"] == 10402, "who isn't known learns nothing about fields"


async def test_another_company_sees_nothing(rig: Rig) -> None:
    uids = await fill(rig)
    for action, fields in REQUESTS.items():
        answer = await rig.ask(action, "stranger", **with_uids(fields, uids))
        if action in NAMES_NO_RECORD:
            assert answer["code"] == 200, (action, answer)
        elif action == "create_terminal":
            assert answer["code"] == 10401, "another company's configuration doesn't exist"
        else:
            assert answer["code"] == 10404, (action, answer)
        assert "secret" not in str(answer)
    assert (await rig.call("get_terminal_item", uid="t1"))["name"] == "Terminal t1", "nothing was changed"
    for action in ("get_reject_list", "get_command_list"):
        assert (await rig.call(action, "stranger"))["total_records"] == 0
        assert (await rig.call(action, "viewer"))["total_records"] == 1
    assert await rig.call("get_terminal_list", "stranger", uids=["t1"]) == []


async def test_a_super_user_sees_every_company(rig: Rig) -> None:
    await fill(rig)
    await rig.add_terminal("theirs", "stranger")
    assert [record["uid"] for record in await rig.call("get_terminal_list", "root")] == ["t1", "theirs"]
    for uid in ("t1", "theirs"):
        await rig.call("get_terminal_status", "root", terminal_id=uid)
    assert (await rig.call("get_reject_list", "root"))["total_records"] == 1


async def test_a_number_finds_no_other_companys_record(rig: Rig) -> None:
    mine = await rig.add_terminal("t1")
    for key in (mine, str(mine)):
        assert (await rig.ask("get_last_grid", "stranger", terminal_id=key))["code"] == 10404
        assert (await rig.ask("get_terminal_item", "stranger", uid=key))["code"] == 10404
