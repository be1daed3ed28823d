"""API keys over the gateway: wherever a token goes, as far as their role reaches, until they are deleted."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, config_fields, open_rig

from terrazzo.api.kernel import identity
from terrazzo.sparse_log import SparseLog

GATEWAY = "/apiproxy/api"


async def new_key(rig: Rig, who: str = "admin", **fields: Any) -> dict[str, Any]:
    return dict(await rig.call("create_api_key", who, **({"name": "line 4"} | fields)))


async def code(rig: Rig, key: str, action: str = "ping", **fields: Any) -> tuple[int, str]:
    _, answer = await rig.post(json.dumps({"action": action, **fields}).encode(), token=key)
    return answer["code"], answer["info"]


async def over_websocket(rig: Rig, key: str) -> int:
    async with rig.http.ws_connect(GATEWAY, headers={"Authorization": f"Bearer {key}"}) as socket:
        await socket.send_str('{"action": "ping"}')
        return int(json.loads(await socket.receive_str(timeout=5))["code"])


async def over_tcp(rig: Rig, key: str) -> int:
    host, _, port = rig.addresses.tcp.removeprefix("tcp://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(json.dumps({"action": "ping", "Authorization": f"Bearer {key}"}).encode() + b"\n")
    answer = json.loads(await asyncio.wait_for(reader.readline(), 5))
    writer.close()
    await writer.wait_closed()
    return int(answer["code"])


async def test_a_key_goes_wherever_a_token_goes(rig: Rig) -> None:
    made = await new_key(rig, role="admin")
    key = made.pop("key")
    assert key.startswith(made["prefix"])
    assert made["role"] == "admin"
    assert (await code(rig, key))[0] == 200
    _, answer = await rig.post(json.dumps({"action": "ping", "Authorization": f"Bearer {key}"}).encode())
    assert answer["code"] == 200
    assert await over_websocket(rig, key) == 200
    assert await over_tcp(rig, key) == 200
    headers = {"Authorization": f"Bearer {key}"}
    async with rig.http.get("/object/api/v1/terminal/getList", headers=headers) as response:
        assert (await response.json())["code"] == 200
    async with rig.http.get("/bulk/terminals", headers=headers) as response:
        assert response.status == 200
        assert "json" not in response.content_type
    assert key not in str(await rig.call("get_api_key_list", "root"))
    assert key not in str(await rig.call("get_audit_list", "root"))


async def test_refused_keys_are_in_the_log_with_address_and_reason(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await new_key(rig)
    await rig.call("delete_api_key", uid=made["uid"])

    async def over_http(_: Rig, key: str) -> int:
        return (await code(rig, key))[0]

    for ask in (over_http, over_websocket, over_tcp):
        caplog.clear()
        monkeypatch.setattr(identity, "_log", SparseLog(logging.getLogger(identity.__name__)))
        for _ in range(5):
            assert await ask(rig, made["key"]) == 10402
        told = [each.getMessage() for each in caplog.records if each.name == identity.__name__]
        assert told[0] == "an API key from 127.0.0.1 was refused: the API key is unknown or was deleted", ask
        assert len(told) < 5, "at most one within ten seconds"
        assert made["key"] not in caplog.text
    assert rig.platform.metadata.api_keys.stats.refused >= 15
    caplog.clear()
    monkeypatch.setattr(identity, "_log", SparseLog(logging.getLogger(identity.__name__)))
    assert (await code(rig, "no token"))[0] == 10402
    assert "API key" not in caplog.text


async def test_a_key_reaches_as_far_as_its_role(rig: Rig) -> None:
    key = (await new_key(rig))["key"]
    assert (await code(rig, key, "get_terminal_list"))[0] == 200
    answer = await code(rig, key, "delete_terminal", uid="t1")
    assert answer == (10403, "needs the role admin, admin-user is viewer")
    refused = await rig.ask("create_api_key", "operator", name="k", role="admin")
    assert (refused["code"], refused["info"]) == (10403, "role: admin is above yours, operator")
    key = (await new_key(rig, role="admin"))["key"]
    refused_key = await code(rig, key, "create_api_key", name="another")
    assert refused_key == (10403, "Authorization: an API key makes no other; log in")
    assert await code(rig, key, "logout") == (10401, "Authorization: is an API key, which delete_api_key ends")


async def test_what_a_key_does_is_in_the_audit_log_under_its_name(rig: Rig) -> None:
    made = await new_key(rig, role="admin")
    assert (await code(rig, made["key"], "create_terminal_config", **config_fields()))[0] == 200
    told = {(each["action"], each["entity"]): each for each in (await rig.call("get_audit_list"))["data"]}
    assert told["create", "configuration"]["address"] == f"127.0.0.1, key {made['prefix']}"
    assert told["create", "api_key"]["address"] == "127.0.0.1"
    assert told["create", "api_key"]["after"]["key"] == "******"
    await rig.call("delete_api_key", uid=made["uid"])
    told = {(each["action"], each["entity"]): each for each in (await rig.call("get_audit_list"))["data"]}
    assert told["delete", "api_key"]["uid"] == made["uid"]


async def test_a_key_that_is_no_good_is_refused_and_told(rig: Rig) -> None:
    assert await code(rig, "tzk_guess") == (10402, "the API key is unknown or was deleted")
    made = await new_key(rig, "viewer")
    assert (await code(rig, made["key"]))[0] == 200
    await rig.call("update_user", uid="viewer-user", is_active=0)
    assert await code(rig, made["key"]) == (10402, "the API key's user or company is deactivated")
    await rig.call("delete_user", uid="viewer-user")
    assert await code(rig, made["key"]) == (10402, "the API key is unknown or was deleted")


async def test_a_deleted_key_is_out_at_once_on_open_connections(rig: Rig) -> None:
    made = await new_key(rig)
    async with rig.http.ws_connect(GATEWAY, headers={"Authorization": f"Bearer {made['key']}"}) as socket:

        async def ask(action: str, **fields: Any) -> dict[str, Any]:
            await socket.send_str(json.dumps({"action": action, **fields}))
            return dict(json.loads(await socket.receive_str(timeout=5)))

        assert (await ask("subscribe", kinds=["terminal"]))["code"] == 200
        await rig.call("delete_api_key", uid=made["uid"])
        ended = json.loads(await socket.receive_str(timeout=5))
        reason = {"code": "api_key_unknown", "parameters": {}}
        assert ended["end"] == {"code": 10402, "info": "the API key is unknown or was deleted", "reason": reason}
        assert (await ask("ping"))["code"] == 10402


async def test_a_list_sent_behind_a_creation_has_the_new_key(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.ws_connect(GATEWAY, headers=headers) as socket:
        await socket.send_str('{"action": "create_api_key", "name": "first"}')
        await socket.send_str('{"action": "get_api_key_list"}')
        made, listed = [json.loads(await socket.receive_str(timeout=5))["result"] for _ in range(2)]
        assert [row["uid"] for row in listed["data"]] == [made["uid"]]


async def test_lists_say_when_a_key_was_used_also_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        tokens = rig.tokens
        made = await new_key(rig)
        [listed] = (await rig.call("get_api_key_list"))["data"]
        assert (listed["last_used"], listed["prefix"], listed["username"]) == ("", made["prefix"], "admin-user")
        assert "key_hash" not in listed
        await code(rig, made["key"])
        [listed] = (await rig.call("get_api_key_list"))["data"]
        assert listed["last_used"]
    async with open_rig(tmp_path, tokens=tokens) as rig:
        [after] = (await rig.call("get_api_key_list"))["data"]
        assert after["last_used"] == listed["last_used"]
        assert (await code(rig, made["key"]))[0] == 200
