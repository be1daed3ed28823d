"""Requests whose head came before: answered as the first, whatever else happens on the connection."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from api_rig import Limits, Rig, open_rig

from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.known_heads import MOST_HEADS, KnownHead, KnownHeads
from terrazzo.api.transports.server import HttpServer
from terrazzo.ports import at_work
from waiting import close, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

KNOWN = "requests with a known head"  # what a task that answers them is called
PING = b'{"action":"ping","message":"x"}'
SLOW = b'{"action":"login","username":"unknown here","password":"wrong password"}'
"""Takes as long as it takes to look at a password: that of the users of tests is looked at in no time."""


class Line:
    """One connection; speaks HTTP byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def read(self) -> tuple[str, dict[str, str], Any]:
        """Status line, headers and decoded body."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        return first, headers, json.loads(await self.reader.readexactly(int(headers["content-length"])))

    async def ask(self, *pieces: bytes) -> Any:
        """The body of the answer to a request that arrives in these pieces."""
        for piece in pieces:
            self.writer.write(piece)
            await asyncio.sleep(0.01 if len(pieces) > 1 else 0)  # a piece is one read of the server's
        return (await self.read())[2]


class Site:
    """A server whose heads a test can look at."""

    def __init__(self, rig: Rig, server: HttpServer, port: int) -> None:
        self.rig = rig
        self.server = server
        self.port = port

    @property
    def read_by_aiohttp(self) -> int:
        """How many requests aiohttp has read since the start."""
        return self.server.requests_read

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Line(reader, writer)
        finally:
            await close(writer)

    def request(self, body: bytes = PING, *headers: str, who: str = "viewer", length: int = 0) -> bytes:
        token = f"Authorization: Bearer {self.rig.tokens[who]}"
        lines = ["POST /apiproxy/api HTTP/1.1", "Host: x", token, f"Content-Length: {length or len(body)}", *headers]
        return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def open_site(rig: Rig, **changed: Any) -> AsyncIterator[Site]:
    limits = Limits(**changed)
    services = rig.services
    apps = build_apps(services)
    server = HttpServer(apps.http, apps.connection_limiter, limits=limits, port_name="http")  # type: ignore[arg-type]
    try:
        yield Site(rig, server, await server.start("127.0.0.1", 0))
    finally:
        await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def site(shared_rig: Rig) -> AsyncIterator[Site]:
    """A new server before the platform that the tests share."""
    async with open_site(shared_rig) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def own_site(tmp_path: Path) -> AsyncIterator[Site]:
    """With a platform of the test's own, whose tokens it may end."""
    async with open_rig(tmp_path) as rig, open_site(rig) as opened:
        yield opened


def _answering() -> bool:
    return any(work.operation == "login" for work in at_work.under_way())


def _answerers() -> int:
    return sum(task.get_name() == KNOWN for task in asyncio.all_tasks())


def pong(text: str) -> dict[str, Any]:
    return {"resp": "ping", "actionid": "", "code": 200, "msg": "success", "info": "", "result": {"pong": text}}


async def test_the_second_request_with_a_head_goes_past_aiohttp_and_is_answered_the_same(site: Site) -> None:
    async with site.line() as first, site.line() as second:
        first.writer.write(site.request())
        begun = await first.read()
        assert site.read_by_aiohttp == 1
        for line in (first, second):
            line.writer.write(site.request(PING.replace(b"x", b"y")))
            status, headers, body = await line.read()
            assert (status, body) == (begun[0], pong("y"))
            assert headers.keys() == begun[1].keys()
        assert site.read_by_aiohttp == 1


async def test_another_length_another_token_another_header_is_another_head(site: Site) -> None:
    async with site.line() as line:
        for number, request in enumerate(
            [
                site.request(),
                site.request(PING.replace(b"x", b"longer")),
                site.request(who="admin"),
                site.request(PING, "X-Anything: 1"),
            ],
            1,
        ):
            assert (await line.ask(request))["code"] == 200
            assert (await line.ask(request))["code"] == 200
            assert site.read_by_aiohttp == number


async def test_a_token_that_ends_is_refused_with_a_known_head_too(own_site: Site) -> None:
    async with own_site.line() as line:
        for _ in range(2):
            assert await line.ask(own_site.request()) == pong("x")
        await own_site.rig.services.tokens.revoke(own_site.rig.tokens["viewer"])
        assert (await line.ask(own_site.request()))["code"] == 10402
        assert own_site.read_by_aiohttp == 1


async def test_logging_out_ends_the_token_not_the_head(own_site: Site) -> None:
    logout = b'{"action":"logout"}'
    async with own_site.line() as line:
        codes = [(await line.ask(own_site.request(logout)))["code"] for _ in range(2)]
    assert codes == [200, 10402]


async def test_what_comes_in_pieces_or_too_early_is_answered_in_order(site: Site) -> None:
    whole = site.request()
    async with site.line() as line:
        assert await line.ask(whole) == pong("x")
        assert await line.ask(whole[:-5], whole[-5:]) == pong("x")
        assert await line.ask(whole[:20], whole[20:]) == pong("x")
        assert await line.ask(whole) == pong("x")
        assert site.read_by_aiohttp == 3
        numbered = [site.request(PING.replace(b"x", b"%d" % n)) for n in range(9)]
        line.writer.write(b"".join(numbered))
        assert [(await line.read())[2] for _ in numbered] == [pong(str(n)) for n in range(9)]


async def test_requests_that_came_ahead_are_not_overtaken(site: Site) -> None:
    numbered = [site.request(PING.replace(b"x", b"%d" % n)) for n in range(6)]
    async with site.line() as line:
        assert await line.ask(site.request()) == pong("x")
        line.writer.write(b"".join(numbered[:2]))
        for request in numbered[2:]:
            await asyncio.sleep(0)  # each may come as a read of its own, while one before it is answered
            line.writer.write(request)
        assert [(await line.read())[2] for _ in numbered] == [pong(str(n)) for n in range(6)]


async def test_requests_after_a_slow_one_wait_for_it(site: Site) -> None:
    async with site.line() as line:
        assert (await line.ask(site.request(SLOW)))["code"] != 200
        assert await line.ask(site.request()) == pong("x")
        seen = site.read_by_aiohttp
        line.writer.write(site.request(SLOW))
        for number in range(5):
            await asyncio.sleep(0.001)  # so that each comes as a read of its own, while the first is computed
            line.writer.write(site.request(PING.replace(b"x", b"%d" % number)))
        assert (await line.read())[2]["resp"] == "login"
        assert [(await line.read())[2] for _ in range(5)] == [pong(str(n)) for n in range(5)]
        assert site.read_by_aiohttp - seen <= 5  # the slow one was none of them


async def test_other_paths_on_the_connection_change_nothing(site: Site) -> None:
    health = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    nowhere = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    async with site.line() as line:
        for _ in range(3):
            assert await line.ask(site.request()) == pong("x")
            assert await line.ask(health) == {"status": "ok"}
            assert (await line.ask(nowhere))["code"] == 10401
        assert site.read_by_aiohttp == 1 + 3 + 3


async def test_bodies_that_are_coded_are_decoded_each_time(site: Site) -> None:
    coded = zlib.compress(PING)
    async with site.line() as line:
        for number in range(1, 4):
            assert await line.ask(site.request(coded, "Content-Encoding: deflate")) == pong("x")
            assert site.read_by_aiohttp == number


async def test_who_expects_to_be_asked_on_is_asked_each_time(site: Site) -> None:
    async with site.line() as line:
        for _ in range(3):
            line.writer.write(site.request(b"", "Expect: 100-continue", length=len(PING)))
            assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            assert await line.ask(PING) == pong("x")


async def test_who_wants_the_connection_closed_gets_it_closed(site: Site) -> None:
    for _ in range(2):
        async with site.line() as line:
            assert await line.ask(site.request(PING, "Connection: close")) == pong("x")
            assert await line.reader.read() == b""


async def test_an_active_connection_stays_and_an_idle_one_ends(shared_rig: Rig) -> None:
    async with open_site(shared_rig, idle_timeout_s=1) as site, site.line() as line:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() < began + 2.5:  # the clock is what this is about
            assert await line.ask(site.request()) == pong("x")
            await asyncio.sleep(0.1)
        assert site.read_by_aiohttp == 1
        assert await asyncio.wait_for(line.reader.read(), 5) == b""


@pytest.mark.parametrize("is_abrupt", [True, False], ids=["reset", "closed"])
async def test_who_leaves_before_the_answer_harms_nobody(
    site: Site, caplog: pytest.LogCaptureFixture, is_abrupt: bool
) -> None:
    async with site.line() as line:
        assert (await line.ask(site.request(SLOW)))["resp"] == "login"
        line.writer.write(site.request(SLOW))
        await until(_answering)
        line.writer.write(site.request())
        await asyncio.sleep(0.01)  # so that the server holds it
        (line.writer.transport.abort if is_abrupt else line.writer.close)()
        await until(lambda: not _answering())
    async with site.line() as other:
        assert await other.ask(site.request()) == pong("x")
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


async def test_one_task_answers_the_requests_of_a_connection_and_ends_with_it(site: Site) -> None:
    before = _answerers()
    async with site.line() as line, site.line() as other:
        for _ in range(3):
            assert await line.ask(site.request()) == pong("x")
            assert await other.ask(site.request()) == pong("x")
            assert _answerers() <= before + 2
        line.writer.write(site.request() * 3)  # at once: one after the other
        for _ in range(3):
            assert (await line.read())[2] == pong("x")
        assert _answerers() == before + 2
    await until(lambda: _answerers() == before)


async def test_a_server_that_stops_waits_for_nobody_who_asks_nothing(shared_rig: Rig) -> None:
    before = _answerers()
    async with open_site(shared_rig) as site, site.line() as line:
        for _ in range(3):
            assert await line.ask(site.request()) == pong("x")
        await asyncio.wait_for(site.server.stop(), 1)
        assert await line.reader.read() == b""
        await until(lambda: _answerers() == before)


async def test_a_server_that_stops_finishes_what_is_under_way(shared_rig: Rig) -> None:
    async with open_site(shared_rig) as site, site.line() as line:
        assert (await line.ask(site.request(SLOW)))["resp"] == "login"
        line.writer.write(site.request(SLOW))
        await until(_answering)
        await site.server.stop()
        assert (await line.read())[2]["resp"] == "login"
        assert await line.reader.read() == b""


async def test_long_answers_and_failures_have_whole_heads(site: Site) -> None:
    long = PING.replace(b"x", b"x" * 65_536)
    too_many = json.dumps({"action": "login", "username": "nobody", "password": "wrong"}).encode()
    async with site.line() as line:
        for _ in range(3):
            assert (await line.ask(site.request(long)))["result"]["pong"] == "x" * 65_536
        statuses = []
        for _ in range(30):
            line.writer.write(site.request(too_many))
            status, headers, body = await line.read()
            statuses.append(status)
            assert body["code"] != 200
            assert ("retry-after" in headers) == status.startswith("HTTP/1.1 429 ")
        assert statuses[-1] == "HTTP/1.1 429 Too Many Requests"


async def _no_answer(body: bytes, caller: Caller, action: str) -> Answer:
    raise AssertionError("nobody asks")


def _request(**headers: str) -> web.Request:
    return make_mocked_request("POST", "/apiproxy/api", headers=headers)


async def test_a_head_is_learned_from_a_whole_request_only() -> None:
    heads = KnownHeads(_no_answer)
    head = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n"
    request = _request(**{"Content-Length": "2"})
    for data in (head, head + b"{", head + b"{} ", head + head + b"{}", b"{}", b""):
        heads.learn(data, request, None)
    heads.learn(b"X: " + b"x" * 2_048 + head + b"{}", request, None)
    assert len(heads) == 0
    heads.learn(head + b"{}", request, "token")
    assert heads.find(head + b"[]") == (KnownHead("token", 2), b"[]")
    for data in (head, head + b"{", head + b"{} ", b"X" + head + b"{}", b"", b"\r\n\r\n"):
        assert heads.find(data) is None


async def test_heads_are_bounded() -> None:
    heads = KnownHeads(_no_answer)
    request = _request(**{"Content-Length": "0"})
    for number in range(3 * MOST_HEADS + 10):
        heads.learn(b"%d\r\n\r\n" % number, request, None)
        assert heads.find(b"%d\r\n\r\n" % number) is not None
        assert len(heads) <= MOST_HEADS
    assert len(heads) == 10
