"""Who connects to a port of MQTT and says nothing, or not enough, leaves nothing behind when it is cut off."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter

import pytest
from aiohttp import web

from garbage import garbage_by_type, of_each, set_aside
from waiting import until

COUNT = 40
UPGRADE = b"GET /mqtt HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
async def broker(start):
    return start(half_open_per_address=COUNT, connect_timeout_s=3.0)


async def port_of(broker, kind: str) -> int:
    listen = broker.listen_tcp if kind == "mqtt" else broker.listen_websocket
    return await listen("127.0.0.1", 0)


def dial_all(port: int) -> list[socket.socket]:
    """Connections of which the test's own loop knows nothing."""
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(COUNT)]


@pytest.mark.parametrize("kind", ["mqtt", "websocket"])
@pytest.mark.parametrize("words", [b"", b"G", UPGRADE], ids=["nothing", "a byte", "half a head"])
async def test_it_leaves_nothing_to_the_garbage_collector(broker, kind, words):
    port, found, admission = await port_of(broker, kind), Counter(), broker.core.admission
    with garbage_by_type(found):
        opened = dial_all(port)
        await until(lambda: admission.sockets == COUNT)
        for each in opened:
            each.sendall(words)
        opened += dial_all(port)
        await until(lambda: broker.stats.half_open_ended >= COUNT or admission.sockets < COUNT)
        for each in opened:
            each.close()
        await until(lambda: admission.sockets == 0)
        await asyncio.sleep(0.05)  # what is called a turn of the loop later
    assert of_each(found, COUNT // 2) == {}


async def test_it_has_no_handler_until_it_speaks(broker):
    def handlers() -> int:
        return sum(isinstance(each, web.RequestHandler) for each in gc.get_objects())

    port = await port_of(broker, "websocket")
    set_aside()
    before, opened = handlers(), dial_all(port)
    await until(lambda: broker.core.admission.sockets == COUNT)
    await asyncio.sleep(0.05)  # each is set up by a task of its own
    assert handlers() == before
    opened[0].sendall(UPGRADE)
    await until(lambda: handlers() == before + 1)
    for each in opened:
        each.close()
    await until(lambda: broker.core.admission.sockets == 0)
