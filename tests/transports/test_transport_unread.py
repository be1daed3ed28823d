"""Peers that ask and don't read: how much is kept for them, when they are cut off, and who is waited for."""

from __future__ import annotations

import asyncio
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.api_rig import open_rig
from lasting import Gateway, open_ports
from terrazzo.api.transports.bodies.frame_lengths import FrameLengths
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES
from terrazzo.api.transports.connection_limiter import Cut
from waiting import close, until

ECHO = 60_000  # of a message that comes back


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_rig(tmp_path, limits={"request_timeout_s": 1}) as rig, open_ports(rig) as opened:
        yield opened


def unread(ports: Gateway) -> float:
    family = next(each for each in ports.connection_limiter.collect() if each.name == "terrazzo_api_cut")
    return next(sample.value for sample in family.samples if sample.labels["reason"] == Cut.UNREAD.value)


def line(**fields: object) -> bytes:
    return json.dumps({"action": "ping", **fields}).encode() + b"\n"


@asynccontextmanager
async def flood(port: int, hello: bytes, data: bytes, count: int) -> AsyncIterator[None]:
    """Sends ``data`` again and again and reads nothing, as long as the peer takes it."""
    loop = asyncio.get_running_loop()

    async def send(peer: socket.socket) -> None:
        with suppress(OSError):
            for each in (hello, *[data] * count):
                await loop.sock_sendall(peer, each)

    with socket.socket() as peer:
        peer.setblocking(False)
        await loop.sock_connect(peer, ("127.0.0.1", port))
        sending = asyncio.create_task(send(peer), name="flood")
        try:
            yield
        finally:
            sending.cancel()
            await asyncio.wait({sending})


async def test_lines_ahead_are_bounded_in_bytes(hasty: Gateway) -> None:
    token = f"Bearer {hasty.rig.tokens['viewer']}"
    data = line(message="x" * ECHO, pad="y" * 900_000)
    tracemalloc.start()
    try:
        async with flood(hasty.tcp, line(Authorization=token), data, 400):
            await until(lambda: unread(hasty) == 1, "cut off", timeout_s=60)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20
    async with hasty.connect("tcp") as connection:
        assert (await connection.ask("ping"))["code"] == 200


@pytest.mark.parametrize("kind", ["a page", "the gateway", "the gateway, with known heads"])
async def test_who_takes_no_answers_over_http_is_cut_off(hasty: Gateway, kind: str) -> None:
    body = line(message="x" * (ECHO if kind == "the gateway" else 15_000))
    token = hasty.rig.tokens["viewer"]
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    if kind != "a page":
        head = f"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}"
        request = head.encode() + b"\r\n\r\n" + body
    async with flood(hasty.http, b"", request, 3_000):
        await until(lambda: unread(hasty) == 1, "cut off", timeout_s=60)
    await until(lambda: hasty.connection_limiter.open == 0, "counted out")


async def test_who_reads_slowly_is_waited_for(hasty: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hasty.http, limit=4_096)
    count = 40
    writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * count)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    taken = b""
    while piece := await reader.read(512 * 1024):
        taken = (taken + piece)[-1_000:]
        await asyncio.sleep(0.02)  # a slow peer is what this is about
    await close(writer)
    assert taken.endswith(b'{"status":"ok"}')
    assert unread(hasty) == 0


async def test_a_long_line_needs_a_good_token(ports: Gateway) -> None:
    long = line(message="x" * ECHO)
    async with ports.connect("tcp", "nobody") as connection:
        await connection.send(long)
        refusal = await connection.receive()
        assert refusal["info"] == f"body: longer than {UNPROVEN_BYTES} bytes, which needs a good token"
    for token, code in ((ports.rig.tokens["viewer"], 200), ("forged", 10402)):
        async with ports.connect("tcp", "nobody") as connection:
            await connection.send(line(Authorization=f"Bearer {token}") + long[:-1])
            assert (await connection.receive())["code"] == code
            answer = await connection.receive()
            assert answer["code"] == (200 if code == 200 else 10401)


@pytest.mark.parametrize("kind", ["websocket", "upgrade"])
async def test_a_long_message_needs_a_good_token(ports: Gateway, kind: str) -> None:
    long = line(message="x" * ECHO)
    async with ports.connect(kind, "nobody") as connection:
        await connection.send(long)
        closed = await connection.raw.receive(timeout=10)  # type: ignore[attr-defined]
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
        assert closed.extra == f"message over {UNPROVEN_BYTES} bytes, which needs a good token"
    async with ports.connect(kind, "nobody") as connection:
        await connection.send(line(Authorization=f"Bearer {ports.rig.tokens['viewer']}"))
        await connection.send(long)
        assert [(await connection.receive())["code"] for _ in range(2)] == [200, 200]
        await connection.send(long)
        assert (await connection.receive())["code"] == 200


async def test_frames_before_the_upgrade_was_answered_are_refused(ports: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.websocket)
    writer.write(
        b"GET /apiproxy/api HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\xff" + bytes(8)
    )
    assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 400 ")
    await close(writer)


def frame(opcode: int, size: int, *, is_last: bool = True) -> bytes:
    """As a client sends it."""
    head = bytes([opcode | (128 if is_last else 0)])
    if size < 126:
        length = bytes([size | 128])
    elif size < 65_536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    return head + length + b"mask" + bytes(size)


SIZES = st.lists(st.sampled_from([0, 1, 125, 126, 127, 65_535, 65_536, 70_000]), min_size=1, max_size=4)


@given(st.lists(SIZES, max_size=4), st.lists(st.integers(1, 9_000), min_size=1))
def test_frames_pass_until_a_message_is_too_long(messages: list[list[int]], cuts: list[int]) -> None:
    data = b""
    for sizes in messages:
        for number, size in enumerate(sizes):
            data += frame(0 if number else 2, size, is_last=number == len(sizes) - 1) + frame(9, 3)
    frames, passed, turn, rest = FrameLengths(70_000), 0, 0, data
    while rest:
        piece = rest[: cuts[turn % len(cuts)]]
        taken = frames.feed(piece)
        passed += taken
        if taken < len(piece):
            break
        rest, turn = rest[len(piece) :], turn + 1
    is_too_long = any(sum(sizes) > 70_000 for sizes in messages)
    assert (passed < len(data)) == is_too_long
    assert passed <= sum(70_000 + 200 for _ in messages)
