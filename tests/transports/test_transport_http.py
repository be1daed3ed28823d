"""HTTP requests that dawdle or overdo it: told so, counted, and the others served meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from api.api_rig import BODY_BYTES, Rig, open_rig
from lasting import Gateway, open_ports
from terrazzo.api.transports.connection import HttpConnection
from waiting import close, until

HEAD = b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Gateway]:
    changed = {"request_timeout_s": 0.3, "idle_timeout_s": 1}
    async with open_rig(tmp_path, limits=changed) as rig, open_ports(rig) as opened:
        yield opened


async def answer_to(ports: Gateway, *chunks: bytes, pause_s: float = 0) -> tuple[int, str]:
    """Status and ``info`` of what the server says before it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    try:
        answer = asyncio.create_task(reader.read(), name="answer")
        for chunk in chunks:
            writer.write(chunk)
            await asyncio.sleep(pause_s)  # the clock is what this is about: a slow client
            if answer.done():
                break
        data = await asyncio.wait_for(answer, 15)
    finally:
        await close(writer)
    head, _, body = data.partition(b"\r\n\r\n")
    if not data:
        return 0, ""
    told = json.loads(body)
    assert int(head.split()[1]) == 200 or told["reason"]["code"]
    return int(head.split()[1]), told["info"]


def count(ports: Gateway, reason: str) -> float:
    cuts = next(family for family in ports.connection_limiter.collect() if family.name == "terrazzo_api_cut")
    return next(sample.value for sample in cuts.samples if sample.labels["reason"] == reason)


async def test_a_head_that_does_not_come_to_an_end(hasty: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    answers = await asyncio.gather(*(answer_to(hasty, HEAD) for _ in range(5)))
    assert answers == [(408, "headers: not complete within 0.3 s (limits.request_timeout_s)")] * 5
    assert count(hasty, "head_timeout") == 5
    lines = [record for record in caplog.records if "headers: not complete" in record.getMessage()]
    assert len(lines) == 1, "the log line is limited"
    await until(lambda: hasty.connection_limiter.open == 0, "counted out")


async def test_a_head_byte_by_byte_is_cut_off_all_the_same(hasty: Gateway) -> None:
    dribble = [bytes([byte]) for byte in b"GET /healthz HTTP/1.1\r\n"]
    status, _ = await answer_to(hasty, *dribble, pause_s=0.02)
    assert status == 408


async def test_a_second_head_that_does_not_come_to_an_end(hasty: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hasty.http)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200 OK" in await reader.readuntil(b"}")
    writer.write(HEAD)
    assert b" 408 " in await asyncio.wait_for(reader.read(), 15)
    await close(writer)


async def test_a_body_that_does_not_come_to_an_end(hasty: Gateway) -> None:
    for head in (b"Content-Length: 100\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"):
        status, info = await answer_to(hasty, HEAD + head + b'{"a')
        assert (status, info) == (408, "body: not complete within 0.3 s (limits.request_timeout_s)")
    assert count(hasty, "body_timeout") == 2


@pytest.mark.parametrize(
    ("chunks", "status", "info", "reason"),
    [
        (
            [HEAD + b"X: " + b"x" * 9_000 + b"\r\n\r\n"],
            431,
            "headers: a line is longer than",
            "head_too_long",
        ),
        ([b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\n\r\n"], 431, "headers: a line is longer than", "head_too_long"),
        ([HEAD] + [b"X%d: " % n + b"x" * 4_000 + b"\r\n" for n in range(20)], 431, "headers: ", "head_too_long"),
        ([b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"], 400, "request: ", "malformed"),
        ([b"EHLO example.com\r\n\r\n"], 400, "request: ", "malformed"),
    ],
    ids=["header", "request line", "all headers", "TLS", "SMTP"],
)
async def test_a_head_that_is_too_long_or_none(
    ports: Gateway, chunks: list[bytes], status: int, info: str, reason: str
) -> None:
    got, said = await answer_to(ports, *chunks, pause_s=0.001)
    assert (got, said[: len(info)]) == (status, info)
    assert count(ports, reason) == 1


async def test_an_idle_connection_ends(hasty: Gateway) -> None:
    for first in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", hasty.http)
        writer.write(first)
        assert (b"200 OK" in await asyncio.wait_for(reader.read(), 15)) is bool(first)
        await close(writer)


async def test_others_are_served_meanwhile(hasty: Gateway) -> None:
    dawdling = asyncio.create_task(answer_to(hasty, HEAD), name="dawdler")
    async with hasty.client.get(f"http://127.0.0.1:{hasty.http}/healthz") as response:
        assert response.status == 200
    assert not dawdling.done()
    await dawdling


@pytest.mark.parametrize(("path", "status"), [("/apiproxy/api", 413), ("/nowhere", 404)])
async def test_what_is_left_of_a_refused_body_is_not_the_next_request(hasty: Gateway, path: str, status: int) -> None:
    def ask_twice() -> tuple[int, str | None, int]:
        with closing(HTTPConnection("127.0.0.1", hasty.http, timeout=10)) as connection:
            connection.request("POST", path, b" " * (BODY_BYTES + 100_000))
            with connection.getresponse() as refused:
                refused.read()
            connection.request("POST", "/apiproxy/api", b'{"action": "ping"}')
            with connection.getresponse() as answer:
                return refused.status, refused.getheader("Connection"), answer.status

    assert await asyncio.to_thread(ask_twice) == (status, "close", 200)
    assert count(hasty, "head_too_long") == 0


async def test_a_head_that_is_refused_twice_is_answered_once(
    rig: Rig, ports: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """aiohttp has found a line too long, and is about to say so, when the whole head gets too long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    connections = rig.platform.gateway._http._connections
    await until(lambda: connections, "it is open")
    (connection,) = connections
    connection.data_received(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 60_000)
    connection.data_received(b"x" * 60_000)
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1") == 1
    await until(lambda: not connections, "it has ended")
    writer.close()
    assert "Unhandled exception" not in caplog.text


async def test_who_is_gone_before_an_answer_begins_is_no_internal_error(
    ports: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The transport closes when the request has been read, before the upgrade is answered."""
    upgrade = HttpConnection.upgrade

    def upgrade_and_go(self: HttpConnection) -> None:
        upgrade(self)
        assert self.unsent_transport is not None
        self.unsent_transport.close()

    monkeypatch.setattr(HttpConnection, "upgrade", upgrade_and_go)
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    head = b"GET /apiproxy/api HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    writer.write(head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    assert await reader.read() == b""
    await close(writer)
    await until(lambda: ports.connection_limiter.open == 0, "it has ended")
    assert "internal error" not in caplog.text
