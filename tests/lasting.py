"""The gateway's ports on an API rig, and connections that stay: WebSocket on either port, and TCP."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest

from api.api_rig import Rig, open_rig
from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from waiting import close

KINDS = ("websocket", "upgrade", "tcp")
_TIMEOUT_S = 15


class Connection(Protocol):
    """One connection that stays."""

    async def send(self, message: bytes) -> None: ...

    async def receive(self) -> dict[str, Any]:
        """The next answer or frame."""

    async def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request, where no frame comes in between."""

    async def close(self) -> None: ...


class _Asking(ABC):
    @abstractmethod
    async def send(self, message: bytes) -> None: ...

    @abstractmethod
    async def receive(self) -> dict[str, Any]: ...

    async def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        await self.send(json.dumps({"action": action, **fields}).encode())
        return await self.receive()


class SocketConnection(_Asking):
    """A WebSocket."""

    def __init__(self, raw: aiohttp.ClientWebSocketResponse) -> None:
        self.raw = raw

    async def send(self, message: bytes) -> None:
        await self.raw.send_str(message.decode())

    async def receive(self) -> dict[str, Any]:
        return dict(json.loads(await self.raw.receive_str(timeout=_TIMEOUT_S)))

    async def close(self) -> None:
        await self.raw.close()


class LineConnection(_Asking):
    """A TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, message: bytes) -> None:
        self.writer.write(message + b"\n")
        await self.writer.drain()

    async def receive(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self.reader.readline(), _TIMEOUT_S)
        assert line.endswith(b"\n"), "closed"
        return dict(json.loads(line))

    async def close(self) -> None:
        await close(self.writer)


@dataclass(frozen=True)
class Gateway:
    """Where the gateway listens."""

    rig: Rig
    client: aiohttp.ClientSession
    connection_limiter: ConnectionLimiter
    http: int
    websocket: int
    tcp: int

    @asynccontextmanager
    async def connect(self, kind: str, who: str = "viewer") -> AsyncIterator[Connection]:
        """A connection of one of ``KINDS``, authenticated unless ``who`` is nobody of the rig's."""
        connection = await self._open(kind)
        try:
            if who in self.rig.tokens:
                answer = await connection.ask("ping", Authorization=f"Bearer {self.rig.tokens[who]}")
                assert answer["code"] == 200, answer
            yield connection
        finally:
            await connection.close()

    async def _open(self, kind: str) -> Connection:
        if kind == "tcp":
            return LineConnection(*await asyncio.open_connection("127.0.0.1", self.tcp))
        port = self.websocket if kind == "websocket" else self.http
        return SocketConnection(await self.client.ws_connect(f"ws://127.0.0.1:{port}/apiproxy/api", max_msg_size=0))


@asynccontextmanager
async def open_ports(rig: Rig) -> AsyncIterator[Gateway]:
    """All three listeners of the rig's platform."""
    addresses = (rig.addresses.http, rig.addresses.websocket, rig.addresses.tcp)
    numbers = [int(address.rpartition(":")[2]) for address in addresses]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        yield Gateway(rig, client, rig.platform.gateway.connection_limiter, *numbers)


# Fixtures, for the conftest of each folder whose tests need all ports


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ports(rig: Rig) -> AsyncIterator[Gateway]:
    async with open_ports(rig) as opened:
        yield opened
