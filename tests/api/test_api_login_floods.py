"""Guessing over real sockets, from other addresses and from the honest one's own: who proves itself gets in."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import sqlalchemy as sa
from api_rig import PASSWORD, Rig, open_rig

from mqtt_bytes import login
from terrazzo.database.tables.registry import AUDIT

TEN = [f"127.0.0.{number}" for number in range(2, 12)]


@asynccontextmanager
async def requests_from(rig: Rig, address: str) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(local_addr=(address, 0), limit=10)  # no more than may wait
    async with aiohttp.ClientSession(rig.addresses.http, connector=connector) as http:
        yield http


async def log_in(http: aiohttp.ClientSession, username: str, password: str = PASSWORD) -> int:
    """The HTTP status, or the code of the envelope."""
    body = json.dumps({"action": "login", "username": username, "password": password}).encode()
    headers = {"Content-Type": "application/json"}
    async with http.post("/apiproxy/api", data=body, headers=headers) as response:
        answer = await response.json()
        return response.status if response.status != 200 else int(answer["code"])


async def comes_in(attempt: Callable[[], Awaitable[int]], good: int) -> bool:
    """Whether somebody who tries each second gets in within 20."""
    for _ in range(20):
        if await attempt() == good:
            return True
        await asyncio.sleep(1)  # as a terminal waits before it connects again
    return False


async def refused_entries(rig: Rig) -> int:
    query = sa.select(sa.func.count()).select_from(AUDIT).where(AUDIT.c.action == "login_refused")
    async with rig.services.audit._database.reading() as connection:
        return int((await connection.execute(query)).scalar_one())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as rig:
        yield rig


async def test_a_thousand_logins_under_fresh_names_from_another_address(rig: Rig) -> None:
    async with requests_from(rig, "127.0.0.2") as flood, requests_from(rig, "127.0.0.1") as honest:
        flooding = [asyncio.create_task(log_in(flood, f"guess-{number}", "x")) for number in range(1_000)]
        for _ in range(10):
            assert await log_in(honest, "viewer-user") == 200
        codes = Counter(await asyncio.gather(*flooding))
    assert set(codes) == {10402, 429}
    assert codes[10402] <= 100 + 10, "as many as fit into a window, and what comes back meanwhile"
    assert await refused_entries(rig) <= 10 + 1


async def test_guesses_at_a_user_from_ten_addresses_and_from_its_own(rig: Rig) -> None:
    async with requests_from(rig, "127.0.0.1") as honest:
        assert await log_in(honest, "viewer-user") == 200
        for address in TEN:
            async with requests_from(rig, address) as flood:
                await asyncio.gather(*(log_in(flood, "viewer-user", "x") for _ in range(15)))
        await asyncio.gather(*(log_in(honest, f"guess-{number}", "x") for number in range(120)))
        assert await log_in(honest, "operator-user") == 429, "not known here yet"
        assert await log_in(honest, "viewer-user") == 200
        assert await comes_in(lambda: log_in(honest, "operator-user"), 200)


async def connack(rig: Rig, uid: str, pin: str, address: str) -> int:
    """The return code that a terminal with MQTT 3.1.1 gets."""
    port = rig.addresses.mqtt_port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), family=socket.AF_INET)
    try:
        writer.write(login(uid, f"u-{uid}", pin))
        return (await reader.readexactly(4))[3]
    finally:
        writer.close()
        await writer.wait_closed()


async def test_guesses_at_a_terminal_from_ten_addresses_and_from_its_own(rig: Rig) -> None:
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    assert await connack(rig, "t1", "p-t1", "127.0.0.1") == 0
    for address in TEN:
        for _ in range(11):
            await connack(rig, "t1", "wrong", address)
    for number in range(120):
        await connack(rig, f"guess-{number}", "wrong", "127.0.0.1")
    assert await connack(rig, "t1", "p-t1", "127.0.0.2") == 3
    assert await connack(rig, "t2", "p-t2", "127.0.0.1") == 3, "not known here yet"
    assert await connack(rig, "t1", "p-t1", "127.0.0.1") == 0
    assert await comes_in(lambda: connack(rig, "t2", "p-t2", "127.0.0.1"), 0)
