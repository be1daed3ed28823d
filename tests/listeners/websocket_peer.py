"""A WebSocket client of raw bytes: it frames as it is told, rightly or wrongly."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from typing import Any, Self

from listener_stand import TIMEOUT_S, Peer

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(data: bytes, opcode: int = BINARY, *, last: bool = True) -> bytes:
    """A masked frame."""
    mask = os.urandom(4)
    size = len(data)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 65_536:
        length = bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    repeated = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
    return bytes((last << 7 | opcode,)) + length + mask + masked


class WebSocketPeer(Peer):
    """A connection that may or may not have been upgraded."""

    status: int
    headers: dict[str, str]
    unread = b""

    @classmethod
    async def upgrade(cls, port: int, **options: Any) -> Self:
        """An upgraded connection."""
        peer = await cls.open(port, **{key: options.pop(key) for key in ("ssl", "local_addr") if key in options})
        await peer.ask(**options)
        assert peer.status == 101, peer.status
        return peer

    async def ask(self, path: str = "/mqtt", protocol: str | None = "mqtt", *, key: bytes | None = None) -> None:
        """Asks for an upgrade; ``status`` and ``headers`` answer."""
        key = base64.b64encode(os.urandom(16)) if key is None else key
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: keep-alive, Upgrade"]
        lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}"]
        if protocol is not None:
            lines.append(f"Sec-WebSocket-Protocol: {protocol}")
        self.send("\r\n".join([*lines, "", ""]).encode())
        await self.answered()
        if self.status == 101:
            expected = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
            assert self.headers["sec-websocket-accept"] == expected

    async def answered(self) -> None:
        """Reads the head of an HTTP response."""
        async with asyncio.timeout(TIMEOUT_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split()[1])
        pairs = (line.split(":", 1) for line in head[1:] if line)
        self.headers = {name.lower(): value.strip() for name, value in pairs}

    async def next_frame(self) -> tuple[int, bytes]:
        """Opcode and data of the next frame; the broker's are whole and unmasked."""
        async with asyncio.timeout(TIMEOUT_S):
            first, second = await self.reader.readexactly(2)
            assert first & 0x80
            assert not second & 0x80
            size = second
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            elif size == 127:
                size = int.from_bytes(await self.reader.readexactly(8), "big")
            return first & 15, await self.reader.readexactly(size)

    async def mqtt(self, size: int) -> bytes:
        """The next ``size`` bytes of MQTT, however framed."""
        while len(self.unread) < size:
            opcode, part = await self.next_frame()
            assert opcode == BINARY, (opcode, part)
            self.unread += part
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    async def close_code(self) -> int:
        """The code of the close frame that comes next; it is answered."""
        opcode, data = await self.next_frame()
        assert opcode == CLOSE, (opcode, data)
        self.send(frame(data, CLOSE))
        assert await self.ended()
        return int.from_bytes(data[:2], "big")
