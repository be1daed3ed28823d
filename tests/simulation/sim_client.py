"""A simulated client with MQTT 3.1.1: a session that outlives its connections, and a memory of its own.

It sends again what was not acknowledged, in order, when it is connected again; it goes on without a word after whatever
the network does. What it was promised it tells ``Ledger``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sim_network import Link, Timers

from mqtt_bytes import field as text_field
from mqtt_bytes import frame

_KEEP_ALIVE_S, _PATIENCE_S, _AGAIN_S = 20, 8.0, (0.3, 2.0)
_WINDOW = 4  # messages of its own that are under way


@dataclass(slots=True)
class Sent:
    """A message of its own, until it is acknowledged. ``step``: what the broker has said of it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool = False
    tries: int = 0
    packet_id: int = 0
    is_received: bool = False  # PUBREC came: PUBREL is all that is sent again


@dataclass(frozen=True, slots=True)
class Got:
    """A message that came, and on which of the client's connections."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    connection: int


class Ledger(Protocol):
    """Who writes down what a client was promised."""

    def on_sent(self, client: Client, sent: Sent) -> None:
        """It has gone out for the first time."""

    def on_acknowledged(self, client: Client, sent: Sent) -> None:
        """The server has taken it over."""

    def on_connected(self, client: Client, *, is_present: bool) -> None:
        """CONNACK: the will, if there is one, is the server's."""

    def on_subscribed(self, client: Client) -> None:
        """SUBACK: what is published from now on is for it."""

    def on_left(self, client: Client) -> None:
        """The connection ends in order: its will is not due."""

    def on_got(self, client: Client, got: Got) -> None:
        """A message came."""


class Network(Timers, Protocol):
    """Where a client connects to."""

    chance: random.Random

    def connect(self, client: Client) -> Link | None:
        """A new connection; None: nobody listens."""


@dataclass(slots=True, eq=False)
class Client:
    """One client; ``filters``: what it subscribes to where the server has no session of it."""

    name: str
    network: Network
    ledger: Ledger
    filters: tuple[tuple[str, int], ...] = ()
    will: Callable[[int], tuple[str, bytes]] | None = None
    is_clean: bool = False
    link: Link | None = None
    is_wanted: bool = True
    is_up: bool = False
    connections: int = 0
    waiting: list[Sent] = field(default_factory=list)
    under_way: list[Sent] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    subscribed: bool = False
    _inside: set[int] = field(default_factory=set)  # QoS 2 that came and is not released
    _buffer: bytearray = field(default_factory=bytearray)
    _next_id: int = 0
    _heard_s: float = 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of its own is open."""
        return not self.waiting and not self.under_way and (not self.is_wanted or (self.is_up and self.subscribed))

    # Connections

    def connect(self) -> None:
        """Begins a connection, beside one that is there (a takeover)."""
        if not self.is_wanted or (self.link is not None and self.link.is_open):
            return None
        link = self.network.connect(self)
        if link is None:
            return self.network.later(self.network.chance.uniform(*_AGAIN_S), self.connect)
        self.link, self.is_up = link, False
        self.connections += 1
        self._buffer.clear()
        self._heard_s = self.network.now_s
        link.send(self._hello())
        self._watch(link)
        return None

    def _hello(self) -> bytes:
        parts, flags = [text_field(self.name)], 0xC0 | (2 if self.is_clean else 0)
        if self.will is not None:
            topic, payload = self.will(self.connections)
            flags |= 0x04 | 0x08
            parts += [text_field(topic), text_field(payload)]
        parts += [text_field(f"u-{self.name}"), text_field(f"pin-{self.name}")]
        return frame(0x10, text_field("MQTT"), bytes((4, flags)), _KEEP_ALIVE_S.to_bytes(2, "big"), *parts)

    def _watch(self, link: Link) -> None:
        """Gives a connection up on which nothing is heard."""
        if link is not self.link or not link.is_open:
            return None
        silent_s = self.network.now_s - self._heard_s
        if silent_s > 2 * _PATIENCE_S:
            return link.cut(server_knows=self.network.chance.random() < 0.5)
        if self.is_up and silent_s > _PATIENCE_S:
            link.send(b"\xc0\0")
        return self.network.later(_PATIENCE_S / 2, lambda: self._watch(link))

    def take_over(self) -> None:
        """Connects anew while the server still has the connection before."""
        if self.link is not None and self.link.is_open:
            self.link.cut(server_knows=False)

    def leave(self) -> None:
        """DISCONNECT, and stays away."""
        self.is_wanted = False
        if self.link is not None and self.link.is_open and self.is_up:
            self.link.send(b"\xe0\0")
            self.link.close()
            self.ledger.on_left(self)
        self.is_up = False

    def come_back(self) -> None:
        """Is there again."""
        if not self.is_wanted:
            self.is_wanted = True
            self.connect()

    def on_lost(self, link: Link) -> None:
        """Connects again."""
        if link is self.link:
            self.is_up = False
            self.network.later(self.network.chance.uniform(*_AGAIN_S), self.connect)

    # What it sends

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> Sent:
        """Sends a message, now or when it can."""
        sent = Sent(topic, payload, qos, retain)
        self.waiting.append(sent)
        self._send_on()
        return sent

    def _send_on(self) -> None:
        while self.is_up and self.waiting and len(self.under_way) < _WINDOW:
            sent = self.waiting.pop(0)
            if sent.qos:
                self._next_id = self._next_id % 65_535 + 1
                sent.packet_id = self._next_id
                self.under_way.append(sent)
            self._send(sent)

    def _send(self, sent: Sent) -> None:
        assert self.link is not None
        if sent.is_received:
            return self.link.send(frame(0x62, sent.packet_id.to_bytes(2, "big")))
        first = 0x30 | sent.qos << 1 | sent.retain | (8 if sent.tries and sent.qos else 0)
        sent.tries += 1
        if sent.tries == 1:
            self.ledger.on_sent(self, sent)
        packet_id = sent.packet_id.to_bytes(2, "big") if sent.qos else b""
        return self.link.send(frame(first, text_field(sent.topic), packet_id, sent.payload))

    # What it hears

    def on_bytes(self, link: Link, data: bytes) -> None:
        """Takes packets as they become whole."""
        if link is not self.link:
            return
        self._heard_s = self.network.now_s
        self._buffer += data
        for first, body in whole_packets(self._buffer):
            self._take(first, body)

    def _take(self, first: int, body: bytes) -> None:
        kind = first >> 4
        if kind == 2:
            return self._accepted(body)
        if kind == 3:
            return self._arrived(first, body)
        if kind == 9:
            assert 0x80 not in body[2:], "a subscription was refused"
            self.subscribed = True
            self.ledger.on_subscribed(self)
        elif kind in (4, 5, 7):
            self._answered(kind, int.from_bytes(body[:2], "big"))
        elif kind == 6:
            self._inside.discard(int.from_bytes(body[:2], "big"))
            self._say(0x70, body[:2])
        return None

    def _accepted(self, body: bytes) -> None:
        if body[1]:
            assert self.link is not None
            return self.link.cut()
        self.is_up = True
        if not body[0]:
            self.subscribed = not self.filters
            self._inside.clear()
        self.ledger.on_connected(self, is_present=bool(body[0]))
        if not self.subscribed and self.filters:
            wanted = b"".join(text_field(name) + bytes((qos,)) for name, qos in self.filters)
            self._say(0x82, b"\xff\xff", wanted)
        for sent in list(self.under_way):
            self._send(sent)
        return self._send_on()

    def _answered(self, kind: int, packet_id: int) -> None:
        sent = next((each for each in self.under_way if each.packet_id == packet_id), None)
        if sent is None:
            return self._say(0x62, packet_id.to_bytes(2, "big")) if kind == 5 else None
        if kind == 5:
            sent.is_received = True
            return self._say(0x62, packet_id.to_bytes(2, "big"))
        self.under_way.remove(sent)
        self.ledger.on_acknowledged(self, sent)
        return self._send_on()

    def _arrived(self, first: int, body: bytes) -> None:
        qos, end = first >> 1 & 3, 2 + int.from_bytes(body[:2], "big")
        topic, packet_id = body[2:end].decode(), body[end : end + 2] if qos else b""
        number = int.from_bytes(packet_id, "big")
        if qos < 2 or number not in self._inside:
            got = Got(topic, body[end + len(packet_id) :], qos, bool(first & 1), bool(first & 8), self.connections)
            self.got.append(got)
            self.ledger.on_got(self, got)
        if qos == 2:
            self._inside.add(number)
        if qos:
            self._say(0x40 if qos == 1 else 0x50, packet_id)

    def _say(self, first: int, *parts: bytes) -> None:
        if self.link is not None:
            self.link.send(frame(first, *parts))


def whole_packets(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole packets from a buffer: first byte and body."""
    while len(buffer) >= 2:
        length, at = 0, 1
        while at < len(buffer):
            length |= (buffer[at] & 127) << 7 * (at - 1)
            at += 1
            if not buffer[at - 1] & 128:
                break
        else:
            return
        if len(buffer) < at + length:
            return
        first, body = buffer[0], bytes(buffer[at : at + length])
        del buffer[: at + length]
        yield first, body
