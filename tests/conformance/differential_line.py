"""One connection to one broker, and what came of it, so that two brokers' answers can be compared.

What is left out of the answers, as servers may choose it: identifiers of the server's own packets, reason strings and
user properties of acknowledgements, the limits in a CONNACK, topic aliases (resolved), by how much the lifetime of a
message has shrunk, and the order of messages of different topics or QoS. [MQTT-4.6.0-5]
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import conformance_wire as wire
from conformance_wire import CONNACK, DISCONNECT, PINGRESP, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, Packet

Event = tuple[Any, ...]

_NAMES = {
    wire.CONNACK: "CONNACK",
    PUBACK: "PUBACK",
    PUBREC: "PUBREC",
    PUBREL: "PUBREL",
    PUBCOMP: "PUBCOMP",
    wire.SUBACK: "SUBACK",
    wire.UNSUBACK: "UNSUBACK",
    wire.DISCONNECT: "DISCONNECT",
    wire.AUTH: "AUTH",
}
ANSWER_S = 2.0
"""For the answer to a PINGREQ; who doesn't give it is called silent."""


def _place(event: Event) -> tuple[int, str]:
    """Answers to different packets may come in any order; what ends the connection comes last."""
    return ("DISCONNECT", "closed").index(event[0]) + 1 if event[0] in ("DISCONNECT", "closed") else 0, str(event)


class Line:
    """Reads all the time and answers what has to be answered, where it acknowledges; ``events`` since one looked."""

    def __init__(self, version: int, *, acknowledges: bool) -> None:
        self.version, self.acknowledges = version, acknowledges
        self.events: list[Event] = []
        self.unreleased: set[int] = set()  # of its own messages at QoS 2 that it was told not to release
        self.open = True
        self._aliases: dict[int, str] = {}
        self._owed: list[bytes] = []
        self._pongs = asyncio.Semaphore(0)

    async def start(self, port: int, prefix: str) -> None:
        """Connects the socket; topics lose ``prefix`` in what is told of them."""
        self._prefix = prefix
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._task = asyncio.create_task(self._read())

    def send(self, data: bytes) -> None:
        """These bytes, if it is still open."""
        if self.open:
            self._writer.write(data)

    async def settle(self) -> None:
        """Until all that the broker has sent so far has come, or it has closed."""
        if not self.open:
            return
        self.send(b"\xc0\x00")
        waiting = asyncio.ensure_future(self._pongs.acquire())
        done, _ = await asyncio.wait([waiting, self._task], timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not done:
            self.events.append(("silent",))

    async def end(self, timeout_s: float) -> bool:
        """Whether the broker closes within this time."""
        done, _ = await asyncio.wait([self._task], timeout=timeout_s)
        return bool(done)

    async def cut(self) -> None:
        """Ends the connection from this side, without a word."""
        self.open = False
        self._writer.transport.abort()
        self._task.cancel()
        await asyncio.wait([self._task])

    def acknowledge(self) -> None:
        """Sends what was held back, and holds nothing back from now on."""
        self.acknowledges = True
        for data in self._owed:
            self.send(data)
        self._owed.clear()

    def taken(self) -> list[Event]:
        """The events so far, in the order that is compared; they are forgotten."""
        messages = sorted((each for each in self.events if each[0] == "PUBLISH"), key=lambda each: (each[1], each[3]))
        others = [each for each in self.events if each[0] != "PUBLISH"]
        self.events = []
        return [*sorted(others, key=_place), *messages]

    async def _read(self) -> None:
        try:
            while True:
                first, body = await self._frame()
                try:
                    packet = wire.decode(first, body, version=self.version, size=len(body) + 2)
                except (AssertionError, KeyError, UnicodeDecodeError) as error:
                    self.events.append(("ill-formed", f"{first:02x} {body.hex()}", str(error).splitlines()[0]))
                else:
                    self._take(packet)
        except (asyncio.IncompleteReadError, ConnectionError):
            if self.open:
                self.events.append(("closed",))
            self.open = False
            with contextlib.suppress(ConnectionError):
                self._writer.close()

    async def _frame(self) -> tuple[int, bytes]:
        head = await self._reader.readexactly(2)
        while head[-1] > 127:
            head += await self._reader.readexactly(1)
        return head[0], await self._reader.readexactly(wire.Reader(head[1:]).length())

    def _take(self, packet: Packet) -> None:
        if packet.kind == PINGRESP:
            self._pongs.release()
            return
        self.events.append(self._told(packet))
        identifier = packet.packet_id
        if packet.kind == PUBLISH and packet.qos:
            self._owe(wire.ack(PUBACK if packet.qos == 1 else PUBREC, identifier))
        elif packet.kind == PUBREL:
            self._owe(wire.ack(PUBCOMP, identifier))
        elif packet.kind == PUBREC and packet.reason < 0x80 and identifier not in self.unreleased:
            self.send(wire.ack(PUBREL, identifier))

    def _owe(self, data: bytes) -> None:
        if self.acknowledges:
            self.send(data)
        else:
            self._owed.append(data)

    def _told(self, packet: Packet) -> Event:
        name = _NAMES.get(packet.kind, str(packet.kind))
        if packet.kind == PUBLISH:
            return ("PUBLISH", self._topic(packet), packet.payload, packet.qos, *self._marks(packet))
        if packet.kind == CONNACK:
            return (name, packet.reason, packet.session_present)
        if packet.kind == DISCONNECT:
            return (name, packet.reason)
        if packet.kind == PUBREL:
            return (name,)  # its identifier is the server's own
        return (name, packet.packet_id, tuple(packet.reasons) or packet.reason)

    def _topic(self, packet: Packet) -> str:
        alias, topic = packet.topic_alias, packet.topic
        if alias is not None and topic:
            self._aliases[alias] = topic
        if alias is not None and not topic:
            topic = self._aliases.get(alias, "an unknown alias")
        return topic.removeprefix(self._prefix)

    def _marks(self, packet: Packet) -> Event:
        told = {
            name: value for name, value in packet.properties.items() if name not in ("topic_alias", "subscription_id")
        }
        if "message_expiry" in told:
            told["message_expiry"] = "some"
        marks = [name for name in ("retain", "dup") if getattr(packet, name)]
        identifiers = tuple(sorted(packet.subscription_id or ()))
        return (" ".join(marks), identifiers, *(f"{name}={value!r}" for name, value in sorted(told.items())))
