"""``AXUpgrade`` has a terminal run other software: administrators send it, whatever way it goes, unless configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROWS = [
    ["AXUpgrade", "Upgrade", "升级", "APR", "$AdapterID-1", "LUA"],
    ["SP", "Set point", "设定", "OBJ", "$AdapterID-1.SP1", "21.5"],
]


async def fill(rig: Rig) -> str:
    config = await rig.add_config(lua_file="http://files.example/lua-2.bin")
    await rig.add_terminal("t1", config_id=config)
    control = (await rig.call("create_control", name="k", script=ROWS, **BY))["uid"]
    rows = [["T", "T", "T", "STA", "t1.T", "x"]]
    mapping = (await rig.call("create_mapping", name="m", script=rows, **BY))["uid"]
    given = {"mapping_id": mapping, "control_id": control, "terminal_list": ["t1"], **BY}
    return str((await rig.call("create_object", name="o", **given))["id"])


async def ways(rig: Rig, who: str, object_id: str, command: str = "AXUpgrade") -> list[dict[str, Any]]:
    """The answers of all ways to send a command."""
    one = {"object_id": object_id, "command": command, "value": "LUA"}
    answers = [
        await rig.ask("publish_terminal_command", who, terminal_id="t1", command=command, value="LUA"),
        await rig.ask("publish_object_command", who, project_id=1, **one),
        await rig.ask("publish_object_command_plus", who, publishes=[one | {"project_id": 1}]),
    ]
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    path = "/pusher/api/v1/publish"
    async with rig.http.post(path, json=one | {"project_id": 1}, headers=headers) as response:
        return [*answers, await response.json()]


async def journaled(rig: Rig) -> list[dict[str, Any]]:
    return list((await rig.call("get_command_list"))["data"])


async def test_operators_send_commands_but_no_software(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        object_id = await fill(rig)
        for answer in await ways(rig, "operator", object_id):
            assert answer["code"] in (10403, 500), answer
            assert "AXUpgrade needs the role admin (command.upgrade_role)" in answer["info"], answer
        assert await journaled(rig) == []
        for spelling in ("axupgrade", "AXUPGRADE", "AXUpgrade ", " AXUpgrade", "ＡＸUpgrade", "AXUpgrade\u200b"):
            fields = {"terminal_id": "t1", "command": spelling, "value": "LUA"}
            await rig.ask("publish_terminal_command", "operator", **fields)
        assert {each["payload"]["Act"] for each in await journaled(rig)} <= {"Control"}
        before = len(await journaled(rig))
        assert {answer["code"] for answer in await ways(rig, "operator", object_id, "SP")} == {200}
        assert {answer["code"] for answer in await ways(rig, "admin", object_id)} == {200}
        assert len(await journaled(rig)) == before + 8
        entries = (await rig.call("get_audit_list", where_and=[["action", "=", "command"]]))["data"]
        assert sum(entry["after"]["command"] == "AXUpgrade" for entry in entries) == 4
        async with rig.http.get("/metrics") as response:
            assert "terrazzo_command_upgrades_refused_total 4.0" in await response.text()


@pytest.mark.parametrize("who", ["operator", "viewer"])
async def test_a_configuration_may_leave_it_to_operators(tmp_path: Path, who: str) -> None:
    async with open_rig(tmp_path, command={"upgrade_role": "operator"}) as rig:
        codes = {answer["code"] for answer in await ways(rig, who, await fill(rig))}
        assert codes == {200} if who == "operator" else 200 not in codes
