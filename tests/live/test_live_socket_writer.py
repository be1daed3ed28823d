"""Bytes leave in order, whatever the socket takes at once and whatever already waits."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from certificate_authority import Authority
from terrazzo.live.socket_writer import UNSENT_BYTES, SocketWriter
from waiting import close

BLOCKS = [bytes((number,)) * size for number, size in enumerate((10, 4_000_000, 7, 300_000, 1), start=1)]


@asynccontextmanager
async def connection(
    server: ssl.SSLContext | None = None, client: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[asyncio.Transport, asyncio.StreamReader]]:
    """A transport of a server, and what its peer reads with."""
    accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    listener = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0, ssl=server)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        try:
            yield cast(asyncio.Transport, (await accepted).transport), reader
        finally:
            await close(writer)
            (await accepted).close()


async def test_everything_arrives_in_order() -> None:
    async with connection() as (transport, reader):
        writer = SocketWriter(transport)
        transport.write(b"before")
        for block in BLOCKS:
            writer.write(block)
        transport.write(b"after")
        expected = b"before" + b"".join(BLOCKS) + b"after"
        assert await reader.readexactly(len(expected)) == expected


async def test_over_tls_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.cert, pair.key)
    client = authority.client_context()
    async with connection(server, client) as (transport, reader):
        writer = SocketWriter(transport)
        for block in BLOCKS:
            writer.write(block)
        expected = b"".join(BLOCKS)
        assert await reader.readexactly(len(expected)) == expected


async def test_what_the_socket_takes_does_not_wait_for_the_loop() -> None:
    async with connection() as (transport, reader):
        writer = SocketWriter(transport)
        writer.write(b"now")
        assert not transport.get_write_buffer_size()
        assert await reader.readexactly(3) == b"now"


async def test_there_is_no_room_while_the_peer_reads_nothing() -> None:
    async with connection() as (transport, reader):
        writer = SocketWriter(transport)
        assert writer.has_room
        blocks = 0
        while writer.has_room:
            writer.write(bytes(UNSENT_BYTES))
            blocks += 1
        assert await reader.readexactly(blocks * UNSENT_BYTES) == bytes(blocks * UNSENT_BYTES)


async def test_a_connection_that_is_gone_takes_nothing() -> None:
    async with connection() as (transport, reader):
        writer = SocketWriter(transport)
        transport.abort()
        writer.write(b"late")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
