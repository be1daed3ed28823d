"""A bare MQTT 5 client on asyncio: packets out, packets in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Self

import mqtt5

TIMEOUT_S = 5.0


async def until(condition: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Waits for a condition of the loop.

    Raises:
        AssertionError: it didn't come true in time.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not condition():
        assert loop.time() < deadline_s, f"no {what} within {timeout_s} s"
        await asyncio.sleep(0.01)


class Client:
    """One connection; nothing is acknowledged on its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.connack: mqtt5.ConnAckPacket

    @classmethod
    async def open(cls, port: int) -> Self:
        """A socket."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def connect(self, client_id: str, **options: Any) -> mqtt5.ConnAckPacket:
        """CONNECT and CONNACK, which must be a success."""
        self.send(mqtt5.ConnectPacket(client_id, **options))
        self.connack = await self.receive()
        assert self.connack.reason_code == mqtt5.ConnAckReasonCode.SUCCESS
        return self.connack

    def send(self, *packets: Any) -> None:
        """In one write."""
        self._writer.write(b"".join(each.write() for each in packets))

    async def receive(self, timeout_s: float = TIMEOUT_S) -> Any:
        """The next packet.

        Raises:
            TimeoutError: none comes; nothing of it has been read.
        """
        async with asyncio.timeout(timeout_s):
            raw = await self._reader.readexactly(1)
        while raw[-1] > 127 or len(raw) == 1:
            raw += await self._reader.readexactly(1)
        length = sum((digit & 127) << 7 * place for place, digit in enumerate(raw[1:]))
        return mqtt5.read(memoryview(raw + await self._reader.readexactly(length)))[0]

    def publish(self, topic: str, payload: bytes, *, qos: int = 0, **options: Any) -> None:
        """Sends PUBLISH."""
        self.send(mqtt5.PublishPacket(topic, payload, qos=mqtt5.QoS(qos), **options))

    async def subscribe(self, *filters: tuple[str, int]) -> None:
        """SUBSCRIBE and SUBACK."""
        wishes = [mqtt5.TopicFilter(name, max_qos=mqtt5.QoS(qos)) for name, qos in filters]
        self.send(mqtt5.SubscribePacket(1, wishes))
        assert all(int(code) < 0x80 for code in (await self.receive()).reason_codes)

    async def unsubscribe(self, *filters: str) -> None:
        """UNSUBSCRIBE and UNSUBACK."""
        self.send(mqtt5.UnsubscribePacket(1, list(filters)))
        assert isinstance(await self.receive(), mqtt5.UnsubAckPacket)

    async def ping(self) -> None:
        """Checks that nothing else is there to be received."""
        self.send(mqtt5.PingReqPacket())
        packet = await self.receive()
        assert isinstance(packet, mqtt5.PingRespPacket), packet

    async def disconnect(self, *, expiry_s: int | None = None) -> None:
        """DISCONNECT, and the broker closes."""
        self.send(mqtt5.DisconnectPacket(session_expiry_interval=expiry_s))
        assert await self._reader.read() == b""
        await self.finish()

    async def finish(self) -> None:
        """Lets go of the socket."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
