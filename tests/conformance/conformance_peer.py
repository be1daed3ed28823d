"""A client that does nothing of its own accord, over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import conformance_wire as wire
from conformance_wire import PINGRESP, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBACK, UNSUBACK, Packet

TIMEOUT_S = 6.0


class Ended(Exception):
    """The broker has closed the connection."""


class Peer:
    """One connection of one protocol version."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int) -> None:
        self.reader, self.writer, self.version = reader, writer, version
        self.connack = Packet(0)
        self._last_id = 100  # identifiers below are the tests' own

    @classmethod
    async def open(cls, port: int, version: int) -> Self:
        """A socket; no packet yet."""
        return cls(*await asyncio.open_connection("127.0.0.1", port), version)

    def send(self, *packets: bytes) -> None:
        """Sends bytes as they are, in one write."""
        self.writer.write(b"".join(packets))

    async def receive(self, timeout_s: float = TIMEOUT_S) -> Packet:
        """The next packet.

        Raises:
            Ended: the broker has closed; it has nothing more to say.
        """
        async with asyncio.timeout(timeout_s):
            try:
                return await self._packet()
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise Ended from error

    async def _packet(self) -> Packet:
        head = await self.reader.readexactly(2)
        while head[-1] > 127:
            head += await self.reader.readexactly(1)
        length = wire.Reader(head[1:]).length()
        body = await self.reader.readexactly(length)
        return wire.decode(head[0], body, version=self.version, size=len(head) + length)

    async def expect(self, kind: int) -> Packet:
        """The next packet, which must be of this kind."""
        packet = await self.receive()
        assert packet.kind == kind, packet
        return packet

    async def connect(self, client_id: str | bytes = "", **options: Any) -> Packet:
        """Sends CONNECT; the CONNACK."""
        self.send(wire.connect(client_id, version=self.version, **options))
        self.connack = await self.expect(wire.CONNACK)
        return self.connack

    async def subscribe(self, *filters: tuple[str, int], **properties: Any) -> list[int]:
        """Subscribes; the reason codes."""
        identifier = self._next_id()
        self.send(wire.subscribe(identifier, *filters, version=self.version, **properties))
        suback = await self.expect(SUBACK)
        assert suback.packet_id == identifier  # [MQTT-3.8.4-2]
        return suback.reasons

    async def unsubscribe(self, *filters: str) -> list[int]:
        """Unsubscribes; the reason codes, none in 3.1.1."""
        identifier = self._next_id()
        self.send(wire.unsubscribe(identifier, *filters, version=self.version))
        unsuback = await self.expect(UNSUBACK)
        assert unsuback.packet_id == identifier  # [MQTT-3.10.4-5]
        return unsuback.reasons

    async def publish(self, topic: str, payload: bytes = b"", *, qos: int = 0, **options: Any) -> int:
        """Publishes and sees the exchange through to its end; the reason code of PUBACK or PUBREC."""
        identifier = self._next_id() if qos else 0
        self.send(wire.publish(topic, payload, version=self.version, qos=qos, packet_id=identifier, **options))
        if not qos:
            await self.silence()
            return 0
        answer = await self.expect(PUBACK if qos == 1 else PUBREC)
        assert answer.packet_id == identifier  # [MQTT-2.2.1-5]
        if qos == 2 and answer.reason < 0x80:
            self.send(wire.ack(PUBREL, identifier))
            assert (await self.expect(PUBCOMP)).packet_id == identifier
        return answer.reason

    async def take(self) -> Packet:
        """The next message, acknowledged in full."""
        message = await self.expect(PUBLISH)
        if message.qos == 1:
            self.send(wire.ack(PUBACK, message.packet_id))
        elif message.qos == 2:
            self.send(wire.ack(PUBREC, message.packet_id))
            assert (await self.expect(PUBREL)).packet_id == message.packet_id
            self.send(wire.ack(PUBCOMP, message.packet_id))
        return message

    async def silence(self) -> None:
        """Checks that the broker has nothing to say: the answer to a PINGREQ comes first."""
        self.send(b"\xc0\x00")
        await self.expect(PINGRESP)

    async def end(self) -> list[Packet]:
        """What the broker says until it closes, which it must."""
        packets = []
        try:
            while True:
                packets.append(await self.receive())
        except Ended:
            return packets

    async def refused(self) -> int:
        """Waits for the end; the reason code of the DISCONNECT before it, 0 where 3.1.1 has none."""
        packets = await self.end()
        if self.version < 5:
            assert packets == []
            return 0
        assert [each.kind for each in packets] == [wire.DISCONNECT], packets
        return packets[0].reason

    async def leave(self, reason: int | None = None, **properties: Any) -> None:
        """Says goodbye and waits until the broker has closed."""
        self.send(wire.disconnect(reason, **properties))
        assert await self.end() == []

    def vanish(self) -> None:
        """Cuts the line."""
        self.writer.transport.abort()

    async def finish(self) -> None:
        """Lets go of the socket."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id
