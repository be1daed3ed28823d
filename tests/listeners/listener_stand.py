"""Brokers with hooks that remember, and a client of raw bytes."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from mqtt_bytes import field
from mqtt_bytes import frame as packet
from terrazzo_broker import Accept, ConnectRequest
from terrazzo_broker.hooks import Verdict
from terrazzo_broker.standalone import OpenHooks

TIMEOUT_S = 5.0
ACCEPTED_4 = b"\x20\x02\x00\x00"
PINGREQ, PINGRESP, DISCONNECT = b"\xc0\x00", b"\xd0\x00", b"\xe0\x00"


class RememberingHooks(OpenHooks):
    """Lets everybody in, and remembers their CONNECTs."""

    def __init__(self) -> None:
        super().__init__(anonymous=True)
        self.requests: list[ConnectRequest] = []
        self.ends: list[str] = []
        self.gate: asyncio.Event | None = None  # a CONNECT waits for it

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        return Accept()

    def on_disconnected(self, client: Any, reason: str) -> None:
        self.ends.append(reason)


def connect(client_id: str, *, version: int = 4, keep_alive_s: int = 0) -> bytes:
    """A CONNECT with clean session."""
    properties = b"\0" if version == 5 else b""
    return packet(
        0x10, field("MQTT"), bytes((version, 2)), keep_alive_s.to_bytes(2, "big"), properties, field(client_id)
    )


def publish(topic: str, payload: bytes, *, qos: int = 0, packet_id: int = 1) -> bytes:
    """A 3.1.1 PUBLISH."""
    return packet(0x30 | qos << 1, field(topic), packet_id.to_bytes(2, "big") if qos else b"", payload)


def subscribe(topic_filter: str, qos: int = 0) -> bytes:
    """A 3.1.1 SUBSCRIBE."""
    return packet(0x82, b"\0\1", field(topic_filter), bytes((qos,)))


class Peer:
    """A stream to a broker, packets in and out as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, **options: Any) -> Self:
        """TCP, or TLS with ``ssl=``."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, **options))

    async def login(self, client_id: str, *, version: int = 4) -> bytes:
        """Sends CONNECT; the CONNACK."""
        self.send(connect(client_id, version=version))
        return await self.receive()

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.writer.write(data)

    async def receive(self) -> bytes:
        """The next packet; b"" at the end of the stream."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                head = await self.reader.readexactly(2)
                length, shift = head[1] & 127, 7
                while head[-1] > 127:
                    head += await self.reader.readexactly(1)
                    length |= (head[-1] & 127) << shift
                    shift += 7
                return head + await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def ended(self) -> bool:
        """Whether the broker has closed, without another byte, within the time."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True

    async def close(self) -> None:
        """Lets go of the socket."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, OSError):
            return
