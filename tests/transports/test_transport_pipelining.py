"""Requests sent ahead: side by side where they only read, in turn where they change something, answered in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from api.api_rig import Rig, config_fields, open_rig, terminal_fields
from lasting import Gateway, open_ports
from terrazzo.ports.store import Record
from waiting import until


class Gate:
    """A store whose answers wait until the gate opens, and that counts who waits."""

    def __init__(self, rig: Rig) -> None:
        self.open = asyncio.Event()
        self.waiting = self.most = 0
        self._latest: Callable[..., Awaitable[list[Record]]] = rig.services.store.latest
        rig.services.store.latest = self.latest  # type: ignore[method-assign]

    async def latest(self, *arguments: Any, **named: Any) -> list[Record]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self.open.wait()
        self.waiting -= 1
        return await self._latest(*arguments, **named)


def request(action: str, **fields: Any) -> bytes:
    return json.dumps({"action": action, **fields}).encode()


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_reads_run_side_by_side_and_answers_keep_the_order(ports: Gateway, kind: str) -> None:
    await ports.rig.add_terminal("t1")
    gate = Gate(ports.rig)
    async with ports.connect(kind) as connection:
        for number in range(10):
            slow = number % 2 == 0
            fields = {"terminal_id": "t1", "topic": "r"} if slow else {}
            await connection.send(request("get_last_grid" if slow else "ping", actionid=number, **fields))
        await until(lambda: gate.waiting == 5, "five reads are under way together")
        gate.open.set()
        assert [(await connection.receive())["actionid"] for _ in range(10)] == list(range(10))


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_what_changes_something_waits_and_is_waited_for(ports: Gateway, kind: str) -> None:
    await ports.rig.add_terminal("t1")
    gate = Gate(ports.rig)
    config = await ports.rig.add_config()
    async with ports.connect(kind, "admin") as connection:
        await connection.send(request("get_last_grid", terminal_id="t1", topic="r"))
        await connection.send(request("create_terminal", **terminal_fields("t2", config)))
        await connection.send(request("get_terminal_item", uid="t2"))
        await connection.send(request("delete_terminal", uid="t2"))
        await connection.send(request("get_terminal_item", uid="t2"))
        await until(lambda: gate.waiting == 1, "the read is under way")
        assert ports.rig.services.registry.terminal("t2") is None, "the change waits for it"
        gate.open.set()
        assert [(await connection.receive())["code"] for _ in range(5)] == [200, 200, 200, 200, 10404]


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_a_login_sent_ahead_holds_for_what_follows(ports: Gateway, kind: str) -> None:
    tokens = ports.rig.tokens
    async with ports.connect(kind, "nobody") as connection:
        await connection.send(request("get_terminal_config_list"))
        await connection.send(request("ping", Authorization=f"Bearer {tokens['viewer']}"))
        await connection.send(request("create_terminal_config", **config_fields()))
        await connection.send(request("ping", Authorization=f"Bearer {tokens['admin']}"))
        await connection.send(request("create_terminal_config", **config_fields()))
        await connection.send(request("logout"))
        await connection.send(request("ping"))
        codes = [(await connection.receive())["code"] for _ in range(7)]
    assert codes == [10402, 200, 10403, 200, 200, 200, 10402]


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_only_so_many_are_under_way(tmp_path: Path, kind: str) -> None:
    async with open_rig(tmp_path, limits={"pipelined_requests": 4}) as rig, open_ports(rig) as ports:
        await rig.add_terminal("t1")
        gate = Gate(rig)
        async with ports.connect(kind) as connection:
            for number in range(50):
                await connection.send(request("get_last_grid", terminal_id="t1", topic="r", actionid=number))
            await until(lambda: ports.connection_limiter.pauses, "reading pauses")
            await until(lambda: gate.waiting == 4, "as many as may are under way")
            gate.open.set()
            assert [(await connection.receive())["actionid"] for _ in range(50)] == list(range(50))
        assert gate.most == 4


@pytest.mark.parametrize("kind", ["websocket", "tcp"])
async def test_who_hangs_up_amid_requests_leaves_nothing_behind(ports: Gateway, kind: str) -> None:
    await ports.rig.add_terminal("t1")
    gate = Gate(ports.rig)
    async with ports.connect(kind) as connection:
        for _ in range(5):
            await connection.send(request("get_last_grid", terminal_id="t1", topic="r"))
        await until(lambda: gate.waiting == 5, "reads are under way")
        if kind == "tcp":
            connection.writer.transport.abort()  # type: ignore[attr-defined]
        else:
            connection.raw._response.connection.transport.abort()  # type: ignore[attr-defined]
        gate.open.set()
        await until(lambda: ports.connection_limiter.open == 0, "the connection is counted out")
    async with ports.connect(kind) as again:
        assert (await again.ask("ping"))["code"] == 200
