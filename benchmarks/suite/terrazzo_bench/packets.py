"""MQTT 3.1.1 packets as bytes: loads share no code with the broker that they measure."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def field(data: bytes | str) -> bytes:
    """A string or binary field: two bytes of length, then itself."""
    data = data.encode() if isinstance(data, str) else data
    return len(data).to_bytes(2, "big") + data


def frame(first: int, *parts: bytes) -> bytes:
    """A packet: first byte, remaining length, body."""
    body = b"".join(parts)
    length, encoded = len(body), bytearray()
    while True:
        length, digit = length >> 7, length & 127
        encoded.append(digit | (128 if length else 0))
        if not length:
            return bytes((first,)) + bytes(encoded) + body


def publish(topic: str, payload: bytes, *, packet_id: int) -> bytes:
    """A PUBLISH at QoS 1."""
    return frame(0x32, field(topic), packet_id.to_bytes(2, "big"), payload)


def connect(port: int, client_id: str, *, username: str = "", password: str = "") -> socket.socket:
    """A connected client with a clean session and no keep-alive; blocking until its CONNACK.

    Raises:
        ConnectionError: it was refused.
    """
    sock = socket.create_connection((LOOPBACK, port), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    flags, given = (0xC2, field(username) + field(password)) if username else (0x02, b"")
    sock.sendall(frame(0x10, field("MQTT") + bytes((4, flags, 0, 0)) + field(client_id) + given))
    answer = exactly(sock, 4)
    if answer[0] != 0x20 or answer[3]:
        raise ConnectionError(f"{client_id}: CONNACK {answer.hex()}")
    return sock


def subscribe(sock: socket.socket, topic_filter: str) -> None:
    """Subscribes at QoS 1; blocking until its SUBACK.

    Raises:
        ConnectionError: it was refused.
    """
    sock.sendall(frame(0x82, b"\0\1", field(topic_filter), b"\1"))
    answer = exactly(sock, 5)
    if answer[0] != 0x90 or answer[4] != 1:
        raise ConnectionError(f"{topic_filter}: SUBACK {answer.hex()}")


def exactly(sock: socket.socket, count: int) -> bytes:
    """So many bytes.

    Raises:
        ConnectionError: the other side closed.
    """
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionError("the server closed a connection")
        data += more
    return data
