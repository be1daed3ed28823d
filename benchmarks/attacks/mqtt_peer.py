"""A terminal's end of an MQTT connection, as bare as attacks need it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from mqtt_bytes import field, frame, login

WINDOW = 50  # publishes that are not acknowledged yet
PUBLISH, PUBACK, SUBACK = 3, 4, 9
RETAIN = 1


class MqttPeer:
    """A connection that has logged in. ``answers``: whether it acknowledges what it is sent at QoS 1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: int) -> None:
        self.answers = True
        self.received = 0
        self._reader = reader
        self._writer = writer
        self._properties = b"\0" if protocol == 5 else b""
        self._ids = itertools.cycle(range(1, 65_536))

    async def send(self, *packets: bytes) -> None:
        """Writes them."""
        self._writer.write(b"".join(packets))
        await self._writer.drain()

    async def publish(self, topic: str, payload: bytes, *, flags: int = 0, properties: bytes = b"") -> None:
        """One publish at QoS 1, until it is acknowledged."""
        await self.send(self.packet(topic, payload, flags=flags, properties=properties))
        await self.until(PUBACK)

    async def publish_all(
        self, reports: Iterable[tuple[str, bytes]], *, flags: int = 0, properties: Iterable[bytes] = ()
    ) -> None:
        """Publishes at QoS 1, some at a time, until all are acknowledged; ``properties``: of one after the other."""
        waiting, said = 0, iter(properties)
        for topic, payload in reports:
            await self.send(self.packet(topic, payload, flags=flags, properties=next(said, b"")))
            waiting += 1
            if waiting == WINDOW:
                await self.until(PUBACK)
                waiting -= 1
        for _ in range(waiting):
            await self.until(PUBACK)

    def packet(self, topic: str, payload: bytes, *, flags: int = 0, properties: bytes = b"") -> bytes:
        """A PUBLISH at QoS 1; ``properties`` (MQTT 5) without their length, below 128 bytes."""
        said = bytes((len(properties),)) + properties if properties else self._properties
        return frame(0x32 | flags, field(topic), next(self._ids).to_bytes(2, "big"), said, payload)

    async def subscribe(self, filters: Iterable[str], *, qos: int = 1) -> None:
        """One SUBSCRIBE with all filters, until it is acknowledged."""
        entries = b"".join(field(each) + bytes((qos,)) for each in filters)
        await self.send(frame(0x82, next(self._ids).to_bytes(2, "big"), self._properties, entries))
        await self.until(SUBACK)

    async def until(self, kind: int) -> bytes:
        """The body of the next packet of a kind; deliveries before it are taken.

        Raises:
            IncompleteReadError: the connection has ended.
        """
        while True:
            first = (await self._reader.readexactly(1))[0]
            body = await self._reader.readexactly(await self._length())
            if first >> 4 == PUBLISH:
                await self._take(first, body)
            if first >> 4 == kind:
                return body

    async def _take(self, first: int, body: bytes) -> None:
        self.received += 1
        if first & 6 and self.answers:
            at = 2 + int.from_bytes(body[:2], "big")
            await self.send(frame(0x40, body[at : at + 2]))

    async def _length(self) -> int:
        length = shift = 0
        while True:
            digit = (await self._reader.readexactly(1))[0]
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                return length


@asynccontextmanager
async def connected(port: int, uid: str, *, protocol: int = 4, connect: bytes = b"") -> AsyncIterator[MqttPeer]:
    """A terminal that has logged in, by ``connect`` if given.

    Raises:
        ConnectionError: the login is refused.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        peer = MqttPeer(reader, writer, protocol)
        await peer.send(connect or login(uid, f"u-{uid}", f"pin-{uid}"[:16], protocol=protocol))
        if (code := (await peer.until(2))[1]) != 0:
            raise ConnectionRefusedError(f"CONNACK {code}")
        yield peer
    finally:
        writer.close()
