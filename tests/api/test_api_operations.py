"""What an operator looks at: connections, rejects, commands."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
from api_rig import Rig

from terrazzo.ports.store import Record
from terrazzo.times import parse_time
from terrazzo_broker.hooks import Client

CONNECTED = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000


async def test_the_status_of_a_connection(rig: Rig) -> None:
    await rig.add_terminal("t1")
    never = await rig.call("get_terminal_status", terminal_id="t1")
    assert never == {
        "terminal_id": "t1", "online": False, "since": None, "address": "", "protocol": "", "messages": 0,
        "last_seen": None, "last_telemetry": None, "disconnect_reason": "", "refusals": [], "address_refusals": [],
        "configuration": None,
    }  # fmt: skip
    client = Client(
        client_id="t1", username="u", protocol=5, address="192.0.2.7", port=1, listener="tcp",
        connected_us=CONNECTED, keep_alive_s=60, last_packet_us=CONNECTED + 9 * SECOND, messages_in=4,
    )  # fmt: skip
    rig.presence.on_connected(client)
    rig.presence.trace("t1").last_telemetry_us = CONNECTED + 8 * SECOND
    online = await rig.call("get_terminal_status", "viewer", terminal_id="t1")
    assert online == {
        "terminal_id": "t1", "online": True, "since": "2026-03-01 00:00:00", "address": "192.0.2.7",
        "protocol": "MQTT 5.0", "messages": 4, "last_seen": "2026-03-01 00:00:09",
        "last_telemetry": "2026-03-01 00:00:08", "disconnect_reason": "", "refusals": [], "address_refusals": [],
        "configuration": None,
    }  # fmt: skip
    rig.presence.on_disconnected(client, "keep-alive timeout")
    gone = await rig.call("get_terminal_status", terminal_id="t1")
    assert (gone["online"], gone["disconnect_reason"]) == (False, "keep-alive timeout")


def reject(payload: bytes, reason: str = "not JSON") -> bytes:
    return msgspec.msgpack.encode({"topic": "g/t1/r", "reason": reason, "payload": payload})


async def test_rejects_keep_their_bytes(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    await rig.services.store.append(
        [
            Record("x/t1", CONNECTED, reject(b"{oops")),
            Record("x/t1", CONNECTED + SECOND, reject(b"\xff\x00", "neither JSON nor MessagePack")),
            Record("x/t2", CONNECTED + 2 * SECOND, reject(b"")),
            Record("x/deleted", CONNECTED + 3 * SECOND, reject(b"")),
        ]
    )
    page = await rig.call("get_reject_list", terminal_id="t1")
    assert page == {
        "data": [
            {
                "terminal_id": "t1", "time": "2026-03-01 00:00:01", "topic": "g/t1/r",
                "reason": "neither JSON nor MessagePack",
                "payload": base64.b64encode(b"\xff\x00").decode(), "text": None,
            },
            {
                "terminal_id": "t1", "time": "2026-03-01 00:00:00", "topic": "g/t1/r",
                "reason": "not JSON", "payload": base64.b64encode(b"{oops").decode(), "text": "{oops",
            },
        ],
        "page_index": 1, "page_size": 20, "total_pages": 1, "total_records": 2,
    }  # fmt: skip

    async def shown(who: str = "admin", **fields: Any) -> list[str]:
        return [row["terminal_id"] for row in (await rig.call("get_reject_list", who, **fields))["data"]]

    assert await shown() == ["t2", "t1", "t1"]
    assert await shown("root") == ["deleted", "t2", "t1", "t1"]
    assert await shown(page_size=2, page_index=2) == ["t1"]
    assert await shown(start_time="2026-03-01 00:00:01") == ["t2", "t1"]
    assert await shown(end_time="2026-03-01T00:00:00Z") == ["t1"]
    wrong = await rig.ask("get_reject_list", start_time="2026-03-02 00:00:00", end_time="2026-03-01 00:00:00")
    assert (wrong["code"], wrong["info"]) == (10401, "start_time: is after end_time")


async def test_a_command_is_journaled_until_its_terminal_is_there(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    assert await rig.call("publish_terminal_command", "operator", terminal_id="t1", command="SP1", value="21.5") == {}
    await rig.call("publish_terminal_command", "operator", terminal_id="t2", command="SP2", value=7)
    page = await rig.call("get_command_list", "viewer")
    assert page["total_records"] == 2
    newest, first = page["data"]
    assert (newest["terminal_id"], newest["command"], newest["value"], newest["state"]) == ("t2", "SP2", "7", "queued")
    assert (first["terminal_id"], first["command"], first["value"]) == ("t1", "SP1", "21.5")
    assert first["queued"] < first["expires"]
    assert [first[name] for name in ("sent", "delivered", "answered", "ended", "answer")] == [None] * 5
    only = await rig.call("get_command_list", terminal_id="t1", state="queued")
    assert only["data"] == [first]
    assert (await rig.call("get_command_list", state="delivered"))["data"] == []
    assert (await rig.call("get_command_list", page_index=2, page_size=1))["data"] == [first]


async def test_the_commands_of_a_deleted_terminal_fail_together(rig: Rig) -> None:
    await rig.add_terminal("t1")
    for number in range(3):
        await rig.call("publish_terminal_command", terminal_id="t1", command="SP1", value=number)
    await rig.call("delete_terminal", uid="t1")
    deadline = asyncio.get_running_loop().time() + 10
    while any(entry["state"] == "queued" for entry in (await rig.call("get_command_list"))["data"]):
        assert asyncio.get_running_loop().time() < deadline
    for entry in (await rig.call("get_command_list"))["data"]:
        assert (entry["state"], entry["reason"]) == ("failed", "the terminal was deleted")
        assert entry["ended"]


async def test_an_idempotency_key_gives_a_command_once(rig: Rig) -> None:
    await rig.add_terminal("t1")
    command = {"terminal_id": "t1", "command": "SP1", "value": "1", "idempotency_key": "k-1"}
    for _ in range(3):
        assert await rig.call("publish_terminal_command", **command) == {}
    assert (await rig.call("get_command_list"))["total_records"] == 1
    other = await rig.ask("publish_terminal_command", **(command | {"value": "2"}))
    assert other["code"] == 500
    assert other["info"].startswith("idempotency_key: ")


async def test_a_command_that_makes_no_sense_is_refused(rig: Rig) -> None:
    await rig.add_terminal("t1", access="pub")
    await rig.add_terminal("t2")
    for fields, info in [
        ({"terminal_id": "t1"}, "terminal_id: "),
        ({"command": ""}, "command: expected str of length >= 1"),
        ({"value": None}, "value: expected "),
        ({"value": ["1"]}, "value: expected "),
        ({"state": "unknown", "value": {}}, "value: expected "),
    ]:
        given = {"terminal_id": "t2", "command": "SP1", "value": "1"} | fields
        answer = await rig.ask("publish_terminal_command", **given)
        assert answer["code"] == 10401, answer
        assert answer["info"].startswith(info)
    wrong = await rig.ask("get_command_list", state="flying")
    assert wrong["code"] == 10401
    assert wrong["info"].startswith("state: ")
