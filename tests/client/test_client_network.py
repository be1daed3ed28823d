"""What both clients do when the network or the platform lets them down: asked again only where that is safe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from client_driver import DRIVERS

from support import free_port
from terrazzo.client import ActionError, ConnectionLost, UnexpectedAnswer
from terrazzo.client.exchange import Retries
from waiting import close

Script = Callable[[int], bytes | None]
"""From the number of a request to its answer; None hangs up without one."""


def answer(code: int = 200, *, status: str = "200 OK", more: str = "", info: str = "") -> bytes:
    body = json.dumps({"resp": "ping", "code": code, "msg": "m", "info": info, "result": {"pong": "x"}}).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


class Peer:
    """A server that follows a script; ``requests`` is what it received."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(await reader.readexactly(length))
                reply = self.script(len(self.requests))
                if reply is None:
                    return
                writer.write(reply)
                if b"Connection: close" in reply:
                    return
        except asyncio.IncompleteReadError:
            return
        finally:
            await close(writer)


@asynccontextmanager
async def peer(script: Script, port: int = 0) -> AsyncIterator[tuple[Peer, str]]:
    it = Peer(script)
    server = await asyncio.start_server(it.serve, "127.0.0.1", port)
    try:
        yield it, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Any]]:
    made: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        made.append(request.param(url, **({"token": "x"} | options)))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def test_a_hung_up_request_is_not_repeated(connect: Any) -> None:
    async with peer(lambda number: None) as (server, url):
        with pytest.raises(ConnectionLost):
            await connect(url).do("ping")
        assert len(server.requests) == 1


async def test_an_idle_connection_that_was_closed_is_not_used(connect: Any) -> None:
    async with peer(lambda number: answer(more="Connection: close\r\n" * (number == 2))) as (server, url):
        client = connect(url)
        for _ in range(4):
            assert await client.do("ping") == "x"
        assert len(server.requests) == 4


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_busy_is_asked_again_when_the_platform_says_when(connect: Any, status: str) -> None:
    busy = answer(500, status=status, more="Retry-After: 0\r\n")
    async with peer(lambda number: busy if number < 3 else answer()) as (server, url):
        assert await connect(url).do("ping") == "x"
        assert len(server.requests) == 3


async def test_busy_without_a_time_or_for_long_is_an_error(connect: Any) -> None:
    for more, after_s in (("", None), ("Retry-After: 300\r\n", 300.0)):
        busy = answer(500, status="503 Service Unavailable", more=more, info="store: away")
        async with peer(lambda number, busy=busy: busy) as (server, url):
            with pytest.raises(ActionError, match="store: away") as error:
                await connect(url).do("ping")
            assert error.value.retry_after_s == after_s
            assert len(server.requests) == 1


async def test_retries_have_an_end(connect: Any) -> None:
    busy = answer(500, status="429 Too Many Requests", more="Retry-After: 0\r\n")
    async with peer(lambda number: busy) as (server, url):
        with pytest.raises(ActionError):
            await connect(url, retries=Retries(most=2)).do("ping")
        assert len(server.requests) == 3


async def test_a_platform_that_is_just_starting_is_waited_for(connect: Any) -> None:
    port = free_port()
    asking = asyncio.create_task(connect(f"http://127.0.0.1:{port}").do("ping"), name="early")
    await asyncio.sleep(0.05)  # the first attempt, most likely; the outcome is the same without it
    async with peer(lambda number: answer(), port) as (server, _):
        assert await asking == "x"
        assert len(server.requests) == 1


async def test_silence_ends_with_the_timeout(connect: Any) -> None:
    async with peer(lambda number: b"") as (_, url):
        with pytest.raises(ConnectionLost, match="did not answer in time"):
            await connect(url, timeout_s=0.2).do("ping")


async def test_something_else_that_listens_is_named(connect: Any) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
    async with peer(lambda number: page) as (_, url):
        with pytest.raises(UnexpectedAnswer, match="<html>"):
            await connect(url).do("ping")


async def test_an_expired_token_is_renewed_once_and_only_with_credentials(connect: Any) -> None:
    def script(number: int) -> bytes:
        return login() if b'"login"' in server.requests[-1] else answer(10402)

    def login() -> bytes:
        body = b'{"resp": "login", "code": 200, "result": {"token": "new"}}'
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async with peer(script) as (server, url):
        with pytest.raises(ActionError):
            await connect(url, username="u", password="p").do("ping")
        assert [json.loads(request)["action"] for request in server.requests] == ["ping", "login", "ping"]
