"""Actions that send commands name them in the envelope; ``AXUpgrade`` says more of its file where it is configured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig

from terrazzo.domain.actor import SYSTEM

CONTENT = b"firmware " * 100
SCRIPT = [["SETPOINT", "S", "S", "OBJ", "$AdapterID-1.SP1", ""], ["START", "S", "S", "OBJ", "$AdapterID-1.RUN", "1"]]


async def add_object(rig: Rig) -> str:
    await rig.add_terminal("t1")
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    control = await rig.call("create_control", name="c", script=SCRIPT, **by)
    mapping = await rig.call("create_mapping", name="m", script=[["T", "T", "T", "STA", "t1.T", "x"]], **by)
    given = {"mapping_id": mapping["uid"], "control_id": control["uid"], "terminal_list": ["t1"], **by}
    return str((await rig.call("create_object", name="o", **given))["id"])


async def uids(rig: Rig) -> list[str]:
    """Of the journal, the oldest first."""
    listed = await rig.call("get_command_list")
    return [row["uid"] for row in reversed(listed["data"])]


async def test_a_terminals_command_is_named(rig: Rig) -> None:
    await rig.add_terminal("t1")
    order = {"terminal_id": "t1", "command": "SP1", "value": 1, "idempotency_key": "once"}
    answer = await rig.ask("publish_terminal_command", **order)
    assert (answer["result"], answer["commands"]) == ({}, await uids(rig))
    again = await rig.ask("publish_terminal_command", **order)  # sends nothing: the same command is meant
    assert again["commands"] == answer["commands"]


async def test_commands_of_objects_are_named_in_their_order(rig: Rig) -> None:
    object_id = await add_object(rig)
    first = await rig.ask("publish_object_command", object_id=object_id, command="SETPOINT", value="2")
    assert (first["result"], first["commands"]) == ({}, await uids(rig))
    publishes = [{"object_id": object_id, "command": name, "value": "1"} for name in ("START", "SETPOINT")]
    for action in ("publish_object_command_plus", "publish_object_commnad_plus"):
        before = await uids(rig)
        several = await rig.ask(action, publishes=publishes)
        assert (several["result"], before + several["commands"]) == ({}, await uids(rig))


async def test_what_was_not_sent_has_no_name(rig: Rig) -> None:
    answer = await rig.ask("publish_terminal_command", terminal_id="nobody", command="SP1", value=1)
    assert answer["code"] == 10404
    assert "commands" not in answer
    assert "commands" not in await rig.ask("ping")


async def test_the_pushers_path_is_as_it_was(rig: Rig) -> None:
    object_id = await add_object(rig)
    body = json.dumps({"project_id": 1, "object_id": object_id, "command": "START"})
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}", "Content-Type": "application/json"}
    async with rig.http.post("/pusher/api/v1/publish", data=body, headers=headers) as response:
        assert await response.json() == {"code": 200, "msg": "success", "info": ""}


@pytest.fixture
async def telling(tmp_path: Path) -> AsyncIterator[Rig]:
    """A platform whose ``AXUpgrade`` says what is known of the file."""
    async with open_rig(tmp_path, command={"upgrade_details": True}) as rig:
        yield rig


async def upgrade(rig: Rig) -> dict[str, Any]:
    """The payload that a terminal whose configuration names a stored file is sent."""

    async def pieces() -> AsyncIterator[bytes]:
        yield CONTENT

    stored = await rig.services.files.add(SYSTEM, "lua-3.bin", pieces())
    config = await rig.add_config(lua_file=stored["uid"], lua_version="3.0.1")
    await rig.add_terminal("t1", config_id=config)
    await rig.call("publish_terminal_command", terminal_id="t1", command="AXUpgrade", value="LUA")
    listed = await rig.call("get_command_list")
    return dict(listed["data"][0]["payload"])


async def test_an_upgrade_carries_size_hash_and_version_where_it_is_configured(telling: Rig) -> None:
    payload = await upgrade(telling)
    told = {"Size": len(CONTENT), "Sha256": hashlib.sha256(CONTENT).hexdigest(), "Version": "3.0.1"}
    assert {name: payload.get(name) for name in told} == told
    assert payload.keys() == {"Act", "Unit", "URL", "User", "Pwd", *told}


async def test_an_upgrade_is_the_contracts_without(rig: Rig) -> None:
    assert (await upgrade(rig)).keys() == {"Act", "Unit", "URL", "User", "Pwd"}
