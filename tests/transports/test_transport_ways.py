"""The same requests where heads are known, where aiohttp reads each, and where aiohttp also writes each answer."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from api.api_rig import Rig, open_rig
from own_platform import Ports
from terrazzo.api.transports import http
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from terrazzo.times import now_us

PING = b'{"action":"ping","message":"x"}'
HOUR_US = 3_600 * 1_000_000
BODY_BYTES = 100_000
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
COUNTED = ("terrazzo_api_requests_total", "terrazzo_api_seconds_count", "terrazzo_api_refused", "terrazzo_api_cut")


class Clock:
    """Ours, put forward at will."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_us


class Reply(NamedTuple):
    """One response; what tells the time or the program is left out."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


class Way:
    """A server that takes requests one way."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self.server = server
        self.port = port

    async def exchange(self, requests: list[list[bytes]]) -> list[list[Reply] | str]:
        """What each request, given as pieces, is answered on one connection, and what becomes of the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        seen: list[list[Reply] | str] = []
        try:
            for pieces in [*requests, [PROBE]]:
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.005 if len(pieces) > 1 else 0)  # a piece is one read of the server's
                wanted = max(1, b"".join(pieces).count(b" /apiproxy/api HTTP/1.1\r\n"))
                seen.append([await asyncio.wait_for(read_reply(reader), 10) for _ in range(wanted)])
        except (asyncio.IncompleteReadError, ConnectionError):
            seen.append("closed")
        finally:
            writer.close()
        return seen

    async def counted(self) -> list[str]:
        """The lines of ``/metrics`` about requests."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        return [line for line in text.splitlines() if line.startswith(COUNTED)]


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """The next response, 100 among them."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
    if " 100 " in first:
        final = await read_reply(reader)
        return final._replace(status=f"{first}, {final.status}")
    length = int(dict(headers).get("content-length", "0"))
    body = await reader.readexactly(length)
    return Reply(first, sorted(each for each in headers if each[0] not in ("date", "server")), body)


@asynccontextmanager
async def open_way(rig: Rig, *, knows_heads: bool) -> AsyncIterator[Way]:
    apps = build_apps(rig.services)
    server = HttpServer(apps.http, apps.connection_limiter, limits=rig.services.limits, port_name="http")
    if not knows_heads:
        server._port = replace(server._port, heads=None)
    try:
        yield Way(server, await server.start("127.0.0.1", 0))
    finally:
        await server.stop()


def request(body: bytes = PING, *headers: str, token: str = "", **other: str) -> bytes:
    """One request of the gateway."""
    lines = [
        other.get("line", "POST /apiproxy/api HTTP/1.1"),
        *other.get("host", "Host: x").splitlines(),
        *([f"Authorization: Bearer {token}"] if token else []),
        *([] if "length" in other else [f"Content-Length: {len(body)}"]),
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def cases(token: str, other: str) -> dict[str, list[bytes]]:
    """Requests by what is special about them, each as the pieces in which it arrives."""
    whole = request(token=token)
    unknown = b'{"action":"no_such_action"}'
    grid = b'{"action":"get_last_grid","terminal_id":"t1","topic":["r"]}'
    old = "POST /apiproxy/api HTTP/1.0"
    te, je = "Transfer-Encoding: chunked", "Content-Type: application/json"
    found: dict[str, bytes | list[bytes]] = {
        "good": whole,
        "good, JSON said": request(PING, je, token=token),
        "a read": request(grid, token=token),
        "another user": request(grid, token=other),
        "no such terminal": request(grid.replace(b"t1", b"t2"), token=token),
        "long answer": request(PING.replace(b"x", b"x" * 80_000), token=token),
        "bad JSON": request(b'{"action": ping', token=token),
        "not UTF-8": request(b'{"action":"\xff"}', token=token),
        "no action": request(b"{}", token=token),
        "unknown action": request(unknown, token=token),
        "no body": request(b"", token=token),
        "no token": request(grid),
        "wrong token": request(grid, token="wrong"),
        "a right too few": request(b'{"action":"delete_terminal","uid":"t1"}', token=token),
        "needs a connection": request(b'{"action":"subscribe","kinds":["event"]}', token=token),
        "token in the body": request(b'{"action":"ping","Authorization":"Bearer x"}', token=token),
        "too large": request(b" " * (BODY_BYTES + 1), token=token),
        "chunked": request(chunked(PING[:9], PING[9:]), te, token=token, length="none"),
        "chunked, too large": request(chunked(b" " * (BODY_BYTES + 1)), te, token=token, length="none"),
        "in two pieces": [whole[:-5], whole[-5:]],
        "head in two pieces": [whole[:20], whole[20:]],
        "pipelined": whole * 5,
        "pipelined, uneven": whole + request(grid, token=token) + whole,
        "keep-alive": request(PING, "Connection: keep-alive", token=token),
        "close": request(PING, "Connection: close", token=token),
        "HTTP/1.0": request(token=token, line=old),
        "HTTP/1.0, keep-alive": request(PING, "Connection: keep-alive", token=token, line=old),
        "GET": request(b"", token=token, line="GET /apiproxy/api HTTP/1.1"),
        "OPTIONS": request(b"", token=token, line="OPTIONS /apiproxy/api HTTP/1.1"),
        "OPTIONS of all": request(b"", token=token, line="OPTIONS * HTTP/1.1"),
        "HEAD": request(b"", token=token, line="HEAD /healthz HTTP/1.0"),
        "PUT": request(token=token, line="PUT /apiproxy/api HTTP/1.1"),
        "query": request(token=token, line="POST /apiproxy/api?a=b HTTP/1.1"),
        "absolute form": request(token=token, line="POST http://x/apiproxy/api HTTP/1.1"),
        "nowhere": request(token=token, line="POST /nowhere HTTP/1.1"),
        "odd names": request(PING, "x-odd:  \tblank ", "X_UNDER: 1", "content-TYPE: application/json", token=token),
        "two tokens": request(grid, f"Authorization: Bearer {other}", token="wrong"),
        "two tokens, good first": request(grid, "Authorization: Bearer wrong", token=token),
        "two hosts": request(token=token, host="Host: x\nHost: y"),
        "two lengths": request(PING, "Content-Length: 5", token=token),
        "length and chunks": request(chunked(PING), te, token=token),
        "length is no number": request(PING, "Content-Length: x", token=token, length="none"),
        "expects 100": request(PING, "Expect: 100-continue", token=token),
        "expects more": request(PING, "Expect: miracles", token=token),
        "deflated": request(zlib.compress(PING), "Content-Encoding: deflate", token=token),
        "badly deflated": request(PING, "Content-Encoding: deflate", token=token),
        "another type": request(PING, "Content-Type: text/plain", token=token),
        "another charset": request(PING, f"{je}; charset=latin-1", token=token),
        "UTF-8 said": request(PING, f"{je}; charset=UTF-8", token=token),
        "no blank in a header's line": request(PING, "bad header", token=token),
        "a long header": request(PING, "X: " + "x" * 9_000, token=token),
        "many headers": request(PING, *(f"X-{number}: 1" for number in range(200)), token=token),
        "upgrade to nothing": request(PING, "Connection: upgrade", "Upgrade: nothing", token=token),
    }
    return {name: [each] if isinstance(each, bytes) else each for name, each in found.items()}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def rig(tmp_path: Path, clock: Clock) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, ports=Ports(clock=clock), limits={"body_bytes": BODY_BYTES}) as opened:
        await opened.add_terminal("t1")
        yield opened


async def outcomes(way: Way, rig: Rig) -> dict[str, Any]:
    """What each request is answered when its head is new, and when it came before."""
    found = {}
    for name, pieces in cases(rig.tokens["viewer"], rig.tokens["operator"]).items():
        found[name] = [await way.exchange([pieces]), await way.exchange([pieces, pieces, pieces])]
    return found


@pytest.mark.parametrize("writes", ["itself", "by aiohttp"])
async def test_all_ways_answer_and_count_the_same(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch, writes: str
) -> None:
    async with open_way(rig, knows_heads=True) as known, open_way(rig, knows_heads=False) as read:
        for ahead_us, code in ((0, "200"), (3 * HOUR_US, "10402")):  # with good tokens, then when they have expired
            clock.ahead_us = ahead_us
            mine = await outcomes(known, rig)
            with monkeypatch.context() as patch:
                if writes == "by aiohttp":
                    patch.setattr(http, "_is_plain", lambda request: False)
                ordinary = await outcomes(read, rig)
            assert [name for name in mine if mine[name] != ordinary[name]] == []
            assert mine == ordinary
            assert mine["good"] == mine["absolute form"]
            assert f'"code":{code}' in str(mine["good"])
        assert await known.counted() == await read.counted()
        assert known.server.requests_read < 0.8 * read.server.requests_read, "the others went past aiohttp"
