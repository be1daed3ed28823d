"""The response that most requests get, on the wire."""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from api_rig import Rig

from waiting import close

PING = b'{"action":"ping","message":"x"}'


def request_of(rig: Rig, body: bytes, *headers: str, version: str = "1.1") -> bytes:
    token = f"Authorization: Bearer {rig.tokens['viewer']}"
    lines = [f"POST /apiproxy/api HTTP/{version}", "Host: x", token, f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def connect(rig: Rig) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert rig.http._base_url is not None
    return await asyncio.open_connection("127.0.0.1", rig.http._base_url.port)


async def read_response(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return head[0], headers, await reader.readexactly(int(headers["content-length"]))


async def test_head_and_body_are_whole(rig: Rig) -> None:
    reader, writer = await connect(rig)
    writer.write(request_of(rig, PING))
    status, headers, body = await read_response(reader)
    assert status == "HTTP/1.1 200 OK"
    assert headers["content-type"] == "application/json"
    assert parsedate_to_datetime(headers["date"]).tzinfo is not None
    assert b'"resp":"ping"' in body
    await close(writer)


async def test_pipelined_requests_are_answered_in_order(rig: Rig) -> None:
    reader, writer = await connect(rig)
    writer.write(b"".join(request_of(rig, PING.replace(b"x", str(number).encode())) for number in range(50)))
    for number in range(50):
        _, _, body = await read_response(reader)
        assert f'"pong":"{number}"'.encode() in body
    await close(writer)


async def test_who_closes_or_speaks_1_0_is_closed_after_the_answer(rig: Rig) -> None:
    cases: list[tuple[Any, str]] = [(("Connection: close",), "1.1"), ((), "1.0")]
    for headers, version in cases:
        reader, writer = await connect(rig)
        writer.write(request_of(rig, PING, *headers, version=version))
        status, _, body = await read_response(reader)
        assert status.endswith("200 OK")
        assert b'"pong":"x"' in body
        assert await reader.read() == b""
        await close(writer)


@pytest.mark.parametrize("length", [60_000, 65_536], ids=["quick", "ordinary"])
async def test_long_answers_reach_who_reads_late(rig: Rig, length: int) -> None:
    reader, writer = await connect(rig)
    for _ in range(20):
        writer.write(request_of(rig, PING.replace(b"x", b"x" * length)))
    for _ in range(20):
        _, _, body = await read_response(reader)
        assert len(body) > length
    await close(writer)


async def test_a_chunked_body_over_the_limit_is_refused(rig: Rig) -> None:
    reader, writer = await connect(rig)
    chunk = b"%x\r\n%b\r\n" % (2 * 1024 * 1024, b" " * 2 * 1024 * 1024)
    head = f"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {rig.tokens['viewer']}\r\n"
    writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
    status, _, body = await read_response(reader)
    assert " 413 " in status
    assert b"limits.body_bytes" in body
    await close(writer)
