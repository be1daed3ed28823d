"""The gateway's ports on an API rig, and connections that stay: WebSocket on either port, and TCP."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest

from api.api_rig import Limits, Rig, open_rig
from terrazzo.api.operations.live import open_session
from terrazzo.api.transports.connection_limiter import ConnectionLimiter
from terrazzo.api.transports.http import build_apps
from terrazzo.api.transports.server import HttpServer
from terrazzo.api.transports.tcp import TcpServer

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
        self.writer.close()


@dataclass(frozen=True)
class Ports:
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
async def open_ports(rig: Rig) -> AsyncIterator[Ports]:
    """All three listeners on the rig's services."""
    services = rig.services
    limits: Any = services.limits
    apps = build_apps(services)
    http = HttpServer(apps.http, apps.connection_limiter, limits=limits, port_name="http")
    websocket = HttpServer(apps.websocket, apps.connection_limiter, limits=limits, port_name="websocket")
    tcp = TcpServer(apps.gateway, apps.connection_limiter, limits=limits, open_session=partial(open_session, services))
    servers = (http, websocket, tcp)
    numbers = [await server.start("127.0.0.1", 0) for server in servers]
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            yield Ports(rig, client, apps.connection_limiter, *numbers)
    finally:
        for server in servers:
            await server.stop()


def limits(**changed: Any) -> Limits:
    """The rig's limits, some of them changed."""
    return Limits(**changed)


# Fixtures, for the conftest of each folder whose tests need all ports


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ports(rig: Rig) -> AsyncIterator[Ports]:
    async with open_ports(rig) as opened:
        yield opened
