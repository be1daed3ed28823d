"""The connections of a load process: packets coded beforehand, counting by division, acknowledging by slicing.

All PUBLISH packets of one run have the same size. Nothing here waits but ``connect``.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mqtt_bytes import field, frame

READ_BYTES = 1 << 18


def connect(port: int, client_id: str) -> socket.socket:
    """A connected MQTT 3.1.1 client with a clean session; blocking until its CONNACK."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(frame(0x10, field("MQTT") + bytes((4, 2, 0, 0)) + field(client_id)))
    head = sock.recv(2)
    body = sock.recv(head[1])
    if head[0] != 0x20 or body[1]:
        raise SystemExit(f"refused: {head + body!r}")
    return sock


def subscribe(sock: socket.socket, topic_filter: str, qos: int) -> None:
    """Subscribes; blocking until its SUBACK."""
    sock.sendall(frame(0x82, b"\0\1", field(topic_filter), bytes((qos,))))
    head = sock.recv(2)
    codes = sock.recv(head[1])[2:]
    if head[0] != 0x90 or codes != bytes((qos,)):
        raise SystemExit(f"not subscribed to {topic_filter} at QoS {qos}: {head + codes!r}")


@dataclass(slots=True)
class Credit:
    """How many messages may be on their way from all publishers together; bounds the broker's queue."""

    left: int


class Publisher:
    """One publishing connection: a cycle of packets again and again, at QoS 1 and 2 at most a window unacknowledged.

    The cycle goes over ``topics`` in turn. Its length is the window, so that no packet identifier is used again while
    it is in flight. A write holds up to ``block`` packets.
    """

    def __init__(
        self, sock: socket.socket, topics: list[str], *, qos: int, window: int, block: int, payload: bytes
    ) -> None:
        self.sock, self.qos = sock, qos
        packets = [
            frame(0x30 | qos << 1, field(topics[n % len(topics)]), (n + 1).to_bytes(2, "big") if qos else b"", payload)
            for n in range(window)
        ]
        self.size = len(packets[0])
        self.cycle = memoryview(b"".join(packets))
        self.block_bytes = block * self.size
        self.credit: Credit | None = None
        self.sent_bytes = self.acked = self.at = 0
        self.partial = b""

    @property
    def sent(self) -> int:
        """Whole packets sent."""
        return self.sent_bytes // self.size

    def _allowed_bytes(self) -> int:
        allowed = min(self.block_bytes - self.at % self.block_bytes, len(self.cycle) - self.at)
        if self.qos:
            allowed = min(allowed, len(self.cycle) + self.acked * self.size - self.sent_bytes)
        if self.credit is not None:
            allowed = min(allowed, self.credit.left * self.size)
        return allowed

    def send(self) -> bool:
        """One write of what is allowed; False when nothing is, or when the socket is full."""
        allowed = self._allowed_bytes()
        if not allowed:
            return False
        try:
            count = self.sock.send(self.cycle[self.at : self.at + allowed])
        except BlockingIOError:
            return False
        self.sent_bytes += count
        self.at = (self.at + count) % len(self.cycle)
        if self.credit is not None:
            self.credit.left -= count // self.size
        return count == allowed

    def receive(self) -> None:
        """Counts acknowledgements: 4 bytes each; QoS 2 goes on with PUBREL."""
        data = self.sock.recv(READ_BYTES)
        if not data:
            raise SystemExit("the broker closed a publisher")
        data = self.partial + data
        whole = len(data) & ~3
        data, self.partial = data[:whole], data[whole:]
        if self.qos < 2:
            self.acked += whole // 4
            return
        release = bytearray()
        for start in range(0, whole, 4):
            if data[start] == 0x50:
                release += b"\x62\x02" + data[start + 2 : start + 4]
            else:
                self.acked += 1
        if release:
            self.sock.sendall(release)


class Subscriber:
    """One subscribing connection: counts whole messages of one size and acknowledges them."""

    def __init__(self, sock: socket.socket, topic_filter: str, *, qos: int, size: int) -> None:
        self.sock, self.qos, self.size = sock, qos, size
        self.count = 0
        self.partial = b""
        subscribe(sock, topic_filter, qos)

    def receive(self) -> None:
        """Takes what has arrived."""
        data = self.sock.recv(READ_BYTES)
        if not data:
            raise SystemExit("the broker closed a subscriber")
        data = self.partial + data if self.partial else data
        if self.qos == 2:
            self._exactly_once(data)
            return
        number, rest = divmod(len(data), self.size)
        # A packet of another size would shift all that follow: each read must start with a PUBLISH of this size.
        if number and (data[0] | 8, data[1]) != (0x38 | self.qos << 1, self.size - 2):
            raise SystemExit(f"not the expected PUBLISH: {data[:20]!r}")
        self.partial = data[-rest:] if rest else b""
        self.count += number
        if self.qos and number:
            self.sock.sendall(_acks(data, 4 + data[3], self.size, number))

    def _exactly_once(self, data: bytes) -> None:
        position, answer = 0, bytearray()
        while position < len(data):
            size = 4 if data[position] == 0x62 else self.size
            if position + size > len(data):
                break
            if size == 4:
                answer += b"\x70\x02" + data[position + 2 : position + 4]
            else:
                at = position + 4 + data[position + 3]
                answer += b"\x50\x02" + data[at : at + 2]
                self.count += 1
            position += size
        self.partial = data[position:]
        if answer:
            self.sock.sendall(answer)


def _acks(data: bytes, at: int, size: int, number: int) -> bytearray:
    """PUBACKs for ``number`` packets of ``size`` bytes whose identifiers stand ``at`` bytes from their starts."""
    acks = bytearray(b"\x40\x02\0\0" * number)
    acks[2::4] = data[at : number * size : size]
    acks[3::4] = data[at + 1 : number * size : size]
    return acks


def publish_bytes(topic: str, qos: int, payload: bytes) -> int:
    """The size of a PUBLISH; remaining lengths over 127 and topics over 255 bytes are not for these loads."""
    size = len(frame(0x30, field(topic), b"\0\0" if qos else b"", payload))
    if size > 2 + 127 or len(topic) > 255:
        raise SystemExit("the loads count packets with one byte of remaining length and short topics")
    return size
