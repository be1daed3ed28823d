"""MQTT packets as bytes, written here so that tests and loads share no code with the broker."""

from __future__ import annotations


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


def login(client_id: str, username: str, password: str, *, protocol: int = 4, keep_alive_s: int = 0) -> bytes:
    """A CONNECT with user name and password and a clean session; ``protocol`` is 4 (3.1.1) or 5."""
    head = field("MQTT") + bytes((protocol, 0xC2)) + keep_alive_s.to_bytes(2, "big")
    return frame(0x10, head, _no_properties(protocol), field(client_id), field(username), field(password))


def publish(topic: str, payload: bytes, *, packet_id: int = 1, protocol: int = 4) -> bytes:
    """A PUBLISH at QoS 1."""
    return frame(0x32, field(topic), packet_id.to_bytes(2, "big"), _no_properties(protocol), payload)


def _no_properties(protocol: int) -> bytes:
    return b"\0" if protocol == 5 else b""
