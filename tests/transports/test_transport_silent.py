"""Who connects to a port of the APIs and says nothing: it costs little, is answered when it speaks, leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop
from aiohttp import web

from api.api_rig import open_rig
from garbage import garbage_by_type, of_each, set_aside
from lasting import Gateway, open_ports
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from waiting import close, until

COUNT = 40
HALF_A_HEAD = b"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\n"
PING = HALF_A_HEAD + b'Content-Length: 17\r\n\r\n{"action":"ping"}'
PORTS = ("http", "websocket")


@contextmanager
def silent(port: int) -> Iterator[list[socket.socket]]:
    """Connections of which the test's own loop knows nothing."""
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(COUNT)]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def handlers() -> int:
    """How many of aiohttp's handlers there are that were not set aside."""
    return sum(isinstance(each, web.RequestHandler) for each in gc.get_objects())


async def all_open(ports: Gateway, count: int) -> None:
    await until(lambda: ports.connection_limiter.open == count, f"{count} connections are open")


@pytest.mark.parametrize("port", PORTS)
async def test_it_has_no_handler_until_it_speaks(ports: Gateway, port: str) -> None:
    set_aside()
    before = handlers()
    with silent(getattr(ports, port)) as opened:
        await all_open(ports, COUNT)
        assert handlers() == before
        opened[0].sendall(HALF_A_HEAD)
        await until(lambda: handlers() == before + 1, "one has spoken")
    await all_open(ports, 0)


async def test_its_first_request_is_answered_as_any(ports: Gateway) -> None:
    for pieces in ([PING], [PING[:1], PING[1:]], [HALF_A_HEAD, PING[len(HALF_A_HEAD) :]], [PING]):
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
        await all_open(ports, 1)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.005)  # a piece is one read of the server's
        assert b" 200 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        await close(writer)
        await all_open(ports, 0)


async def test_its_end_of_sending_is_its_end(ports: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.http)
    await all_open(ports, 1)
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 10) == b""
    await close(writer)
    await all_open(ports, 0)


async def test_a_stop_closes_it(ports: Gateway) -> None:
    services = ports.rig.services
    apps = build_apps(services)
    server = HttpServer(apps.http, apps.connection_limiter, limits=services.limits, port_name="http")
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start("127.0.0.1", 0))
    await until(lambda: apps.connection_limiter.open == 1, "it is open")
    await asyncio.wait_for(server.stop(), 2)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    await close(writer)
    await until(lambda: apps.connection_limiter.open == 0, "it is gone")


async def leave(ports: Gateway, port: str, words: bytes) -> dict[str, int]:
    """What connections leave behind that are cut by either side."""
    found: Counter[str] = Counter()
    with garbage_by_type(found):
        with silent(getattr(ports, port)) as opened:
            await all_open(ports, COUNT // 2)
            for each in opened[COUNT // 2 :]:
                each.sendall(words)
            await asyncio.sleep(0.05)  # not all of them make it to an answer
        await all_open(ports, 0)
        await asyncio.sleep(0.05)  # what is called a turn of the loop later
    return of_each(found, COUNT // 2)


async def leave_all(folder: Path, port: str) -> dict[bytes, dict[str, int]]:
    """The same by what they said."""
    changed = {"connections": 2 * COUNT, "unauthenticated_connections": COUNT // 2}
    async with open_rig(folder, limits=changed) as rig, open_ports(rig) as ports:
        return {words: await leave(ports, port, words) for words in (b"", b"\r", HALF_A_HEAD, PING)}


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("port", PORTS)
def test_it_leaves_nothing_to_the_garbage_collector(
    tmp_path: Path, port: str, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        left = runner.run(leave_all(tmp_path, port))
    assert not any(left.values()), left
