"""An MQTT client that does nothing of its own accord: packets out, packets in, over a real socket.

MQTT 5 goes through ``mqtt5``; MQTT 3.1.1 is written and read here, sharing no code with the broker.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

import mqtt5

from mqtt_bytes import field, frame
from waiting import until

TIMEOUT_S = 5.0
__all__ = ["Closed", "RawClient", "connect_4", "field", "frame", "publish_4", "subscribe_4", "subscribe_5", "until"]


def connect_4(
    client_id: str, *, clean: bool = True, keep_alive: int = 0, will: tuple[str, bytes, int, bool] | None = None
) -> bytes:
    """A 3.1.1 CONNECT; ``will`` is topic, payload, QoS, retain."""
    flags, tail = 2 * clean, b""
    if will is not None:
        topic, payload, qos, retain = will
        flags |= 4 | qos << 3 | retain << 5
        tail = field(topic) + field(payload)
    return frame(0x10, field("MQTT"), bytes((4, flags)), keep_alive.to_bytes(2, "big"), field(client_id), tail)


def publish_4(
    topic: str, payload: bytes, *, qos: int = 0, packet_id: int = 0, retain: bool = False, dup: bool = False
) -> bytes:
    """A 3.1.1 PUBLISH."""
    identifier = packet_id.to_bytes(2, "big") if qos else b""
    return frame(0x30 | qos << 1 | retain | dup << 3, field(topic), identifier, payload)


def subscribe_4(packet_id: int, *filters: tuple[str, int]) -> bytes:
    """A 3.1.1 SUBSCRIBE."""
    return frame(0x82, packet_id.to_bytes(2, "big"), *(field(name) + bytes((qos,)) for name, qos in filters))


def subscribe_5(packet_id: int, *filters: tuple[str, int], identifier: int = 0) -> bytes:
    """A SUBSCRIBE; the second of each pair is the whole options byte, the identifier at most 127."""
    properties = bytes((2, 0x0B, identifier)) if identifier else b"\0"
    wishes = (field(name) + bytes((options,)) for name, options in filters)
    return frame(0x82, packet_id.to_bytes(2, "big"), properties, *wishes)


class Closed(Exception):
    """The broker has closed the connection."""


class RawClient:
    """One connection. ``receive`` gives ``mqtt5`` packets in MQTT 5, ``(first byte, body)`` in 3.1.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int) -> None:
        self.reader, self.writer, self.version = reader, writer, version

    @classmethod
    async def open(cls, port: int, version: int = 5) -> Self:
        """A socket, no packet yet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        return cls(reader, writer, version)

    async def connect(self, client_id: str = "raw", **options: Any) -> Any:
        """Sends CONNECT; the CONNACK."""
        if self.version == 5:
            options.setdefault("clean_start", True)
            self.send(mqtt5.ConnectPacket(client_id, **options))
        else:
            self.send(connect_4(client_id, **options))
        return await self.receive()

    def send(self, *packets: Any) -> None:
        """Sends packets (or bytes as they are) in one write."""
        self.writer.write(b"".join(each if isinstance(each, bytes) else each.write() for each in packets))

    async def receive(self, timeout_s: float = TIMEOUT_S) -> Any:
        """The next packet.

        Raises:
            Closed: there is none.
            TimeoutError: it doesn't come in time.
        """
        raw = await asyncio.wait_for(self._frame(), timeout_s)
        if self.version == 5:
            return mqtt5.read(memoryview(raw))[0]
        start = next(index for index in range(1, 5) if raw[index] < 128) + 1
        return raw[0], raw[start:]

    async def _frame(self) -> bytes:
        try:
            raw = await self.reader.readexactly(2)
            length, shift = raw[-1] & 127, 7
            while raw[-1] > 127:
                raw += await self.reader.readexactly(1)
                length |= (raw[-1] & 127) << shift
                shift += 7
            return raw + await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Closed from error

    async def silence(self) -> None:
        """Checks that the broker has nothing more to say: a PINGREQ is answered first."""
        self.send(b"\xc0\x00")
        packet = await self.receive()
        assert packet == (0xD0, b"") or isinstance(packet, mqtt5.PingRespPacket), packet

    async def closed(self) -> None:
        """Checks that the broker closes without another word."""
        try:
            packet = await self.receive()
        except Closed:
            return
        raise AssertionError(f"{packet} instead of the end")

    async def rest(self) -> list[Any]:
        """All packets up to the end of the connection."""
        packets = []
        try:
            while True:
                packets.append(await self.receive())
        except Closed:
            return packets

    async def subscribe(self, *filters: tuple[str, int], packet_id: int = 1, **options: Any) -> Any:
        """Sends SUBSCRIBE; the SUBACK."""
        if self.version == 5:
            self.send(subscribe_5(packet_id, *filters, **options))
        else:
            self.send(subscribe_4(packet_id, *filters))
        return await self.receive()

    def publish(self, topic: str, payload: bytes = b"", *, qos: int = 0, **options: Any) -> None:
        """Sends PUBLISH."""
        if self.version == 5:
            self.send(mqtt5.PublishPacket(topic, payload, qos=mqtt5.QoS(qos), **options))
        else:
            self.send(publish_4(topic, payload, qos=qos, **options))

    async def finish(self) -> None:
        """Lets go of the socket, without DISCONNECT."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return
