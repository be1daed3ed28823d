"""Connections that have ended are freed at once: nothing of them waits for the garbage collector, which comes rarely.

What a connection leaves behind else is its buffers, too: subscribers who come and go cost more than those who stay.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web

from garbage import set_aside
from lasting import Gateway
from mqtt_bytes import login
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.transports.connection import HttpConnection
from terrazzo.api.transports.conversation import Conversation
from terrazzo.api.transports.tcp import TcpConnection
from terrazzo.live.session import LiveSession
from terrazzo_broker.connection import Connection
from waiting import close, until

TIMES = 3
KEPT = (
    HttpConnection,
    TcpConnection,
    Connection,
    LiveSession,
    Conversation,
    Caller,
    web.WebSocketResponse,
    web.Request,
)
UPGRADE = (
    b"GET /apiproxy/api HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
CLOSE = b"\x88\x80" + bytes(4)


def counts() -> Counter[str]:
    """How many there are of what a connection consists of, without those that were set aside."""
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in KEPT)


@pytest.fixture
def no_collector() -> Iterator[None]:
    set_aside()
    gc.disable()
    yield
    gc.enable()


def masked(text: bytes) -> bytes:
    """A short message of a WebSocket's client."""
    return bytes((0x81, 0x80 | len(text))) + bytes(4) + text


class Peer:
    """One raw connection to any port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def at(cls, port: int) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def say(self, data: bytes, expected: bytes) -> None:
        """Sends, and reads until what is expected came."""
        self.writer.write(data)
        got = b""
        async with asyncio.timeout(15):
            while expected not in got:
                piece = await self.reader.read(65_536)
                assert piece, got
                got += piece

    async def end(self, how: str) -> None:
        if how == "abort":
            self.writer.transport.abort()
        await close(self.writer)


def subscribe(**more: str) -> bytes:
    return json.dumps({"action": "subscribe", "kinds": ["event"], **more}).encode()


async def over_websocket(ports: Gateway, how: str) -> None:
    peer = await Peer.at(ports.websocket)
    head = UPGRADE + b"Authorization: Bearer %b\r\n\r\n" % ports.rig.tokens["viewer"].encode()
    await peer.say(head, b"\r\n\r\n")
    await peer.say(masked(subscribe()), b'"code":200')
    if how == "said":
        await peer.say(CLOSE, b"\x88")
    await peer.end(how)


async def over_tcp(ports: Gateway, how: str) -> None:
    peer = await Peer.at(ports.tcp)
    await peer.say(subscribe(Authorization=f"Bearer {ports.rig.tokens['viewer']}") + b"\n", b'"code":200')
    await peer.end(how)


async def over_http(ports: Gateway, how: str) -> None:
    peer, body = await Peer.at(ports.http), b'{"action":"ping"}'
    head = b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n"
    last = head % (len(body), b"Connection: close\r\n" if how == "said" else b"")
    for each in (head % (len(body), b""), last):  # the second is one whose head is known
        await peer.say(each + body, b'"resp":"ping"')
    await peer.end(how)


async def over_bad_http(ports: Gateway, how: str) -> None:
    peer = await Peer.at(ports.http)
    await peer.say(b"no HTTP at all\r\n\r\n", b"400 Bad Request")
    await peer.end(how)


async def over_mqtt(ports: Gateway, how: str) -> None:
    peer = await Peer.at(ports.rig.addresses.mqtt_port)
    await peer.say(login("nobody", "nobody", "wrong"), b"\x20\x02")
    await peer.end(how)


@pytest.mark.parametrize("how", ["abort", "close", "said"])
async def test_ended_connections_leave_nothing_behind(ports: Gateway, no_collector: None, how: str) -> None:
    ways: list[Callable[[Gateway, str], object]] = [over_websocket, over_tcp, over_http, over_bad_http, over_mqtt]
    before = counts()
    for way in ways:
        for _ in range(TIMES):
            await way(ports, how)  # type: ignore[misc]
    try:
        await until(lambda: not counts() - before)
    except AssertionError:
        pytest.fail(f"these wait for the garbage collector: {counts() - before}")
    assert ports.rig.services.live.stats.subscriptions == 0
