"""Places for connections: what one address may have, who gives way, and who is answered beside a flood."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.api_rig import open_rig
from lasting import Gateway, open_ports
from terrazzo.api.transports.peers.shares import RESERVE, ConnectionSlot, Full, Shares
from waiting import close, until

HERE = "127.0.0.2"  # who floods
PORTS = ("http", "websocket", "tcp")
GET_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
PING = json.dumps({"action": "ping"}).encode()


class Shop:
    """Shares, and who gave way."""

    def __init__(self, most: int, unproven: int) -> None:
        self.gone: list[ConnectionSlot] = []
        self.shares = Shares(most, unproven, self.gone.append)
        self.busy: set[int] = set()

    def enter(self, share: str, number: int = 0, **more: Any) -> ConnectionSlot | Full:
        return self.shares.enter(share, give_way=lambda: None, is_idle=lambda: number not in self.busy, **more)

    def entered(self, share: str, number: int = 0, **more: Any) -> ConnectionSlot:
        slot = self.enter(share, number, **more)
        assert isinstance(slot, ConnectionSlot)
        return slot


def test_one_address_has_so_many_until_they_are_proven() -> None:
    shop = Shop(100, 3)
    first, second, third = (shop.entered("a", number) for number in range(3))
    fourth = shop.entered("a")
    assert shop.gone == [first], "its own oldest gave way"
    second.prove(1)
    shop.entered("a")
    assert (shop.gone, shop.shares.open, shop.shares.unproven) == ([first], 4, 3)
    shop.entered("b")
    assert third in shop.shares._waiting["a"]
    fourth.leave()
    fourth.leave()
    assert (shop.shares.open, shop.shares.unproven) == (4, 3)


def test_who_has_something_under_way_gives_no_way_to_the_same_address() -> None:
    shop = Shop(100, 2)
    shop.busy = {1, 2}
    for number in (1, 2):
        shop.entered("a", number)
    assert shop.enter("a") is Full.ADDRESS
    assert isinstance(shop.enter("b"), ConnectionSlot)
    assert shop.gone == []


def test_the_address_with_most_gives_way_to_another() -> None:
    shop = Shop(4, 3)
    flood = [shop.entered("a") for _ in range(3)]
    other = shop.entered("b")
    shop.entered("c")
    assert shop.gone == flood[:1]
    shop.entered("d")
    assert shop.gone == flood[:2]
    assert shop.enter("c") is Full.ALL, "nobody has more than it"
    assert other not in shop.gone
    for slot in (flood[2], other):
        slot.prove(1)
    assert shop.enter("c") is Full.ALL


def test_the_proven_are_three_quarters_of_all_at_most_for_one_address() -> None:
    shop = Shop(100, 10)
    for _ in range(75):
        shop.entered("a").prove(1)
    assert shop.enter("a") is Full.ADDRESS
    assert isinstance(shop.enter("b"), ConnectionSlot)


def test_a_proxy_has_no_share_but_its_clients_have() -> None:
    shop = Shop(10, 2)
    for _ in range(8):
        assert shop.entered("").is_proven
    clients = [shop.entered("a", number, weight=0) for number in range(2)]
    assert shop.shares.open == 8
    shop.busy = {0, 1}
    assert shop.enter("a", weight=0) is Full.ADDRESS
    assert isinstance(shop.enter("b", weight=0), ConnectionSlot)
    clients[0].prove(1)
    assert isinstance(shop.enter("a", weight=0), ConnectionSlot)


def test_the_reserve_is_for_others_than_who_has_half_and_moves_on() -> None:
    shop = Shop(4, 4)
    for share in ("a", "a", "b", "c"):
        shop.entered(share).prove(1)
    enter = shop.shares.enter_reserve
    assert enter("a", give_way=lambda: None) is None
    first = enter("b", give_way=lambda: None)
    assert first is not None
    assert enter("b", give_way=lambda: None) is None, "one for an address"
    for number in range(RESERVE):
        assert enter(f"d{number}", give_way=lambda: None) is not None
    assert shop.gone == [first]
    assert shop.shares.open == 4


@given(st.lists(st.tuples(st.sampled_from(["enter", "prove", "leave"]), st.integers(0, 5), st.booleans())))
def test_the_counts_are_those_of_the_places(steps: list[tuple[str, int, bool]]) -> None:
    shop = Shop(8, 3)
    slots: list[ConnectionSlot] = []
    for step, number, busy in steps:
        shop.busy = {number} if busy else set()
        if step == "enter":
            found = shop.enter(f"share {number}", number, weight=number % 2)
            slots += [found] if isinstance(found, ConnectionSlot) else []
        elif slots:
            slot = slots[number % len(slots)]
            slot.prove(1) if step == "prove" else slot.leave()
            slots = [each for each in slots if step == "prove" or each is not slot]
        slots = [each for each in slots if each not in shop.gone]
        assert shop.shares.open == sum(slot.weight for slot in slots)
        assert shop.shares.unproven == sum(not slot.is_proven for slot in slots)
        for share in {slot.share for slot in slots}:
            assert sum(slot.share == share and not slot.is_proven for slot in slots) <= 3
    for slot in slots:
        slot.leave()
    assert (shop.shares.open, shop.shares.unproven, dict(shop.shares._of_address)) == (0, 0, {})
    assert not any(shop.shares._by_count)


# The ports


@asynccontextmanager
async def sockets(ports: Gateway, port: str, count: int, address: str = HERE) -> AsyncIterator[list[Any]]:
    """Silent connections from an address."""
    opened = []
    try:
        for _ in range(count):
            opened.append(await asyncio.open_connection("127.0.0.1", getattr(ports, port), local_addr=(address, 0)))
        yield opened
    finally:
        for _, writer in opened:
            await close(writer)


async def health(ports: Gateway, address: str) -> bytes:
    """The status line of ``/healthz``, asked from an address."""
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http, local_addr=(address, 0))
    writer.write(GET_HEALTH)
    try:
        return (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n")[0]
    finally:
        await close(writer)


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Gateway]:
    changed = {"connections": 40, "unauthenticated_connections": 25}
    async with open_rig(tmp_path, limits=changed) as rig, open_ports(rig) as opened:
        yield opened


def cuts(ports: Gateway) -> dict[str, float]:
    family = next(each for each in ports.connection_limiter.collect() if each.name == "terrazzo_api_cut")
    return {sample.labels["reason"]: sample.value for sample in family.samples}


@pytest.mark.parametrize("port", PORTS)
async def test_silent_sockets_of_one_address_keep_nobody_out(small: Gateway, port: str) -> None:
    async with sockets(small, port, 60):
        await until(lambda: cuts(small)["gave_way"] == 35, "the first have given way")
        assert small.connection_limiter.open == 25
        assert b" 200 " in await health(small, "127.0.0.1")
        assert b" 200 " in await health(small, HERE), "its own newest gets in too"
        for kind in ("tcp", "websocket", "upgrade"):
            async with small.connect(kind) as connection:
                assert (await connection.ask("ping"))["code"] == 200


async def test_sockets_of_many_addresses_give_way(small: Gateway) -> None:
    async with AsyncExitStack() as stack:
        for number in range(2, 12):
            await stack.enter_async_context(sockets(small, "tcp", 10, f"127.0.0.{number}"))
        await until(lambda: small.connection_limiter.open == 40, "all places are taken")
        async with small.connect("tcp") as connection:
            assert (await connection.ask("ping"))["code"] == 200
            assert b" 200 " in await health(small, "127.0.0.1")
            for number in range(2, 12):
                await stack.enter_async_context(sockets(small, "tcp", 10, f"127.0.0.{number}"))
            assert (await connection.ask("ping"))["code"] == 200, "who has logged in stays"


async def test_health_is_answered_when_all_places_are_taken_by_users(small: Gateway) -> None:
    token = small.rig.tokens["viewer"]
    hello = json.dumps({"action": "ping", "Authorization": f"Bearer {token}"}).encode() + b"\n"
    async with AsyncExitStack() as stack:
        for address in (HERE, "127.0.0.3"):
            for reader, writer in await stack.enter_async_context(sockets(small, "tcp", 20, address)):
                writer.write(hello)
                assert b'"code":200' in await reader.readline()
        assert small.connection_limiter.open == 40
        assert b" 200 " in await health(small, "127.0.0.1")
        async with small.client.get(f"http://127.0.0.1:{small.http}/readyz") as response:
            assert response.status == 200
        async with small.client.get(f"http://127.0.0.1:{small.http}/metrics") as response:
            assert (response.status, (await response.json())["info"]) == (
                503,
                "connections: 40 are open (limits.connections)",
            )
        assert cuts(small)["connections"] == 3


def under_way(ports: Gateway) -> int:
    """How many connections without a token have something under way, and give no way."""
    waiting = ports.connection_limiter._shares._waiting.values()
    return sum(not slot.is_idle() for slots in waiting for slot in slots)


async def test_whoever_gives_way_or_is_refused_is_told(small: Gateway) -> None:
    async with sockets(small, "tcp", 25) as opened, sockets(small, "tcp", 1):
        line = json.loads(await asyncio.wait_for(opened[0][0].readline(), 10))
        assert line["info"] == "connection: gave way to another address: no token came on it"
    busy = b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    async with sockets(small, "http", 25) as opened:
        for _, writer in opened:
            writer.write(busy)
        await until(lambda: under_way(small) == 25, "all are read from")
        async with sockets(small, "http", 1) as (last,):
            answer = await asyncio.wait_for(last[0].read(), 10)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"limits.unauthenticated_connections" in answer


async def test_a_login_keeps_its_place(small: Gateway) -> None:
    async with AsyncExitStack() as stack:
        mine = [await stack.enter_async_context(small.connect(kind)) for kind in ("websocket", "upgrade", "tcp")]
        await stack.enter_async_context(sockets(small, "tcp", 60, "127.0.0.1"))
        for connection in mine:
            assert (await connection.ask("ping"))["code"] == 200


async def test_behind_a_proxy_the_clients_have_the_shares(tmp_path: Path) -> None:
    changed = {"connections": 40, "unauthenticated_connections": 5}
    trusted = {"trusted_proxies": ("127.0.0.1",)}
    async with open_rig(tmp_path, limits=changed, http=trusted) as rig, open_ports(rig) as ports:
        url = f"ws://127.0.0.1:{ports.websocket}/apiproxy/api"
        async with AsyncExitStack() as stack:
            for _ in range(12):
                flood = ports.client.ws_connect(url, headers={"X-Forwarded-For": "192.0.2.66"})
                await stack.enter_async_context(flood)
            assert cuts(ports)["gave_way"] == 7
            mine = await stack.enter_async_context(
                ports.client.ws_connect(url, headers={"X-Forwarded-For": "192.0.2.7"})
            )
            await mine.send_bytes(PING)
            assert (await mine.receive_json(timeout=10))["info"].startswith("no token")
            assert cuts(ports)["gave_way"] == 7


async def test_goodbyes_are_few(small: Gateway) -> None:
    busy = b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    async with sockets(small, "http", 25) as opened:
        for _, writer in opened:
            writer.write(busy)
        await until(lambda: under_way(small) == 25, "all are read from")
        async with sockets(small, "http", 100) as refused:
            await until(lambda: cuts(small)["address"] == 100, "all are refused")
            told = [await asyncio.wait_for(read_all(reader), 10) for reader, _ in refused]
    assert sum(bool(each) for each in told) == 32
    assert small.connection_limiter.begin_goodbye(), "they are over"


async def read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "head",
    [
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Type: \xe9\r\nContent-Length: 1\r\n\r\n1",
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nOrigin: \xe9\r\nContent-Length: 1\r\n\r\n1",
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Encoding: \xe9\r\nContent-Length: 1\r\n\r\n1",
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xe9\r\nContent-Length: 20\r\n\r\n"
        + b'{"action":"get_app"}',
        b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nExpect: \xe9\r\nContent-Length: 1\r\n\r\n1",
        b"GET /\xe9%ff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /metrics?\xff=%ff HTTP/1.1\r\nHost: \xe9\r\nX-Forwarded-For: \xe9\r\n\r\n",
        b"GET /grid/api/v1/grid/getLastItem?%ff=\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_heads_that_are_no_utf_8_are_no_internal_errors(
    ports: Gateway, head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    writer.write(head.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n"))
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    await close(writer)
    assert int(answer.split()[1]) < 500
    assert [record for record in caplog.records if record.exc_info] == []
