"""The gateway over connections that stay: WebSocket on both ports, and TCP."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from contract_world import World

_TIMEOUT_S = 30


class WebSocketDoor:
    """One WebSocket on a port; others authenticate by the header of the upgrade."""

    def __init__(self, world: World, port: int) -> None:
        self._url = f"ws://127.0.0.1:{port}/apiproxy/api"
        self._loop = asyncio.new_event_loop()
        self._http = self._loop.run_until_complete(self._open())
        self._socket = self._loop.run_until_complete(self._connect(world.token))

    def send(self, message: bytes) -> dict[str, Any]:
        return self._loop.run_until_complete(self._exchange(self._socket, message))

    def send_as(self, token: str, message: bytes) -> dict[str, Any]:
        return self._loop.run_until_complete(self._exchange_once(token, message))

    def close(self) -> None:
        self._loop.run_until_complete(self._socket.close())
        self._loop.run_until_complete(self._http.close())
        self._loop.close()

    async def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    async def _connect(self, token: str) -> aiohttp.ClientWebSocketResponse:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self._http.ws_connect(self._url, headers=headers)

    async def _exchange(self, connection: aiohttp.ClientWebSocketResponse, message: bytes) -> dict[str, Any]:
        await connection.send_bytes(message)
        answer: dict[str, Any] = json.loads(await connection.receive_str(timeout=_TIMEOUT_S))
        return answer

    async def _exchange_once(self, token: str, message: bytes) -> dict[str, Any]:
        async with await self._connect(token) as connection:
            return await self._exchange(connection, message)


class TcpDoor:
    """One TCP connection, authenticated by a first ``ping``."""

    def __init__(self, world: World) -> None:
        self._port = int(world.platform.environment["TERRAZZO_TCP__PORT"])
        self._line = _Line(self._port, world.token)

    def send(self, message: bytes) -> dict[str, Any]:
        return self._line.exchange(message)

    def send_as(self, token: str, message: bytes) -> dict[str, Any]:
        line = _Line(self._port, token)
        try:
            return line.exchange(message)
        finally:
            line.close()

    def close(self) -> None:
        self._line.close()


class _Line:
    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
        self._answers = self._socket.makefile("rb")
        if token:
            self.exchange(json.dumps({"action": "ping", "Authorization": f"Bearer {token}"}).encode())

    def exchange(self, message: bytes) -> dict[str, Any]:
        self._socket.sendall(message.replace(b"\n", b" ") + b"\r\n")
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
