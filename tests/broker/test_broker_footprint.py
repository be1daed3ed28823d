"""How many bytes of Python's a connection takes that keeps still."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from raw_client import connect_4, subscribe_4
from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.standalone import OpenHooks

CONNECTIONS = 400
_OURS = (tracemalloc.Filter(True, "*/terrazzo_broker/*"), tracemalloc.Filter(True, "*/mqtt5/*"))


@asynccontextmanager
async def _connected(port: int, first: int, count: int, *packets: bytes) -> AsyncIterator[None]:
    """So many clients, which have been answered and then say nothing."""
    loop, opened = asyncio.get_running_loop(), []
    try:
        for number in range(first, first + count):
            client = socket.socket()
            client.setblocking(False)
            opened.append(client)
            await loop.sock_connect(client, ("127.0.0.1", port))
            for packet in (connect_4(f"client-{number:06d}", keep_alive=600), *packets):
                await loop.sock_sendall(client, packet)
                assert await loop.sock_recv(client, 64)
        yield
    finally:
        for client in opened:
            client.close()


def _bytes() -> int:
    gc.collect()
    return sum(each.size for each in tracemalloc.take_snapshot().filter_traces(_OURS).traces)


async def _bytes_each(*packets: bytes) -> float:
    broker = Broker(BrokerSettings(), OpenHooks(anonymous=True))
    port = await broker.listen_tcp("127.0.0.1", 0)
    try:
        async with _connected(port, 0, 20, *packets):  # what is made once
            tracemalloc.start()
            before = _bytes()
            async with _connected(port, 20, CONNECTIONS, *packets):
                return (_bytes() - before) / CONNECTIONS
    finally:
        tracemalloc.stop()
        await broker.close(1.0)


async def test_a_connection_that_keeps_still_takes_little() -> None:
    assert 500 < await _bytes_each() < 1_300


async def test_and_with_a_subscription() -> None:
    assert 500 < await _bytes_each(subscribe_4(1, ("p2p/here", 1))) < 1_900
