"""MQTT 3.1.1 and 5.0 packets as bytes and back, sharing no code with the broker or its codec.

The encoders write what they are told, well formed or not. ``decode`` is strict: whatever a server may not send fails
the test that received it: wrong flags, reason codes or properties of another packet, lengths longer than needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqtt_bytes import field as text
from mqtt_bytes import frame

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE = range(1, 9)
SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(9, 16)

BYTE, TWO, FOUR, LENGTH, TEXT, BINARY, PAIR = "byte", "two", "four", "length", "text", "binary", "pair"

PROPERTIES = {
    "payload_format": (0x01, BYTE),
    "message_expiry": (0x02, FOUR),
    "content_type": (0x03, TEXT),
    "response_topic": (0x08, TEXT),
    "correlation_data": (0x09, BINARY),
    "subscription_id": (0x0B, LENGTH),
    "session_expiry": (0x11, FOUR),
    "assigned_client_id": (0x12, TEXT),
    "server_keep_alive": (0x13, TWO),
    "auth_method": (0x15, TEXT),
    "auth_data": (0x16, BINARY),
    "request_problem_info": (0x17, BYTE),
    "will_delay": (0x18, FOUR),
    "request_response_info": (0x19, BYTE),
    "response_info": (0x1A, TEXT),
    "server_reference": (0x1C, TEXT),
    "reason_string": (0x1F, TEXT),
    "receive_maximum": (0x21, TWO),
    "topic_alias_maximum": (0x22, TWO),
    "topic_alias": (0x23, TWO),
    "maximum_qos": (0x24, BYTE),
    "retain_available": (0x25, BYTE),
    "user": (0x26, PAIR),
    "maximum_packet_size": (0x27, FOUR),
    "wildcards_available": (0x28, BYTE),
    "subscription_ids_available": (0x29, BYTE),
    "shared_available": (0x2A, BYTE),
}
_BY_NUMBER = {number: (name, kind) for name, (number, kind) in PROPERTIES.items()}
_REPEATED = ("user", "subscription_id")

_ACK = {"reason_string", "user"}
_FROM_SERVER = {
    CONNACK: {
        "session_expiry",
        "receive_maximum",
        "maximum_qos",
        "retain_available",
        "maximum_packet_size",
        "assigned_client_id",
        "topic_alias_maximum",
        "reason_string",
        "user",
        "wildcards_available",
        "subscription_ids_available",
        "shared_available",
        "server_keep_alive",
        "response_info",
        "server_reference",
        "auth_method",
        "auth_data",
    },
    PUBLISH: {
        "payload_format",
        "message_expiry",
        "topic_alias",
        "response_topic",
        "correlation_data",
        "user",
        "subscription_id",
        "content_type",
    },
    **dict.fromkeys((PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK), _ACK),
    DISCONNECT: {"reason_string", "user", "server_reference"},
    AUTH: {"auth_method", "auth_data", "reason_string", "user"},
}

_PUBLISH_CODES = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
_RELEASE_CODES = {0x00, 0x92}
_CONNECT_REFUSALS = "80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f"
_GOODBYES = "80 81 82 83 87 89 8b 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2"
_REASONS = {
    CONNACK: {0x00, *bytes.fromhex(_CONNECT_REFUSALS)},
    PUBACK: _PUBLISH_CODES,
    PUBREC: _PUBLISH_CODES,
    PUBREL: _RELEASE_CODES,
    PUBCOMP: _RELEASE_CODES,
    SUBACK: {0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2},
    UNSUBACK: {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91},
    DISCONNECT: {0x00, *bytes.fromhex(_GOODBYES)},
    AUTH: {0x00, 0x18},
}


@dataclass
class Packet:
    """One packet from the server; what its kind doesn't have keeps its default."""

    kind: int
    size: int = 0  # of the whole packet in bytes
    packet_id: int = 0
    session_present: bool = False
    reason: int = 0
    reasons: list[int] = field(default_factory=list)
    topic: str = ""
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    properties: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """A property by its name; None where it is absent."""
        if name in PROPERTIES:
            return self.properties.get(name)
        raise AttributeError(name)


@dataclass(frozen=True)
class Will:
    """What a CONNECT says of a will."""

    topic: str | bytes
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: dict[str, Any] = field(default_factory=dict)


# Bytes out


def length(value: int) -> bytes:
    """A Variable Byte Integer."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


def encode_property(name: str, value: Any) -> bytes:
    """One property."""
    number, kind = PROPERTIES[name]
    match kind:
        case "byte":
            data = bytes((value,))
        case "two":
            data = value.to_bytes(2, "big")
        case "four":
            data = value.to_bytes(4, "big")
        case "length":
            data = length(value)
        case "pair":
            data = text(value[0]) + text(value[1])
        case _:
            data = text(value)
    return bytes((number,)) + data


def encode_properties(version: int, values: dict[str, Any]) -> bytes:
    """All of them behind their length; a list stands for one property several times. 3.1.1 has none."""
    if version < 5:
        assert not values
        return b""
    parts = []
    for name, value in values.items():
        parts += [encode_property(name, each) for each in (value if isinstance(value, list) else [value])]
    data = b"".join(parts)
    return length(len(data)) + data


def connect(
    client_id: str | bytes,
    *,
    version: int,
    clean: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    username: str | bytes | None = None,
    password: bytes | None = None,
    flags: int = 0,
    name: str = "MQTT",
    level: int | None = None,
    **properties: Any,
) -> bytes:
    """A CONNECT; ``flags`` are set beside those that follow from the rest."""
    flags |= clean << 1 | (username is not None) << 7 | (password is not None) << 6
    tail = [text(client_id)]
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
        tail += [encode_properties(version, will.properties), text(will.topic), text(will.payload)]
    tail += [text(each) for each in (username, password) if each is not None]
    head = text(name) + bytes((version if level is None else level, flags)) + keep_alive.to_bytes(2, "big")
    return frame(CONNECT << 4, head, encode_properties(version, properties), *tail)


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    *,
    version: int,
    qos: int = 0,
    packet_id: int = 0,
    retain: bool = False,
    dup: bool = False,
    **properties: Any,
) -> bytes:
    """A PUBLISH."""
    identifier = packet_id.to_bytes(2, "big") if qos else b""
    first = PUBLISH << 4 | dup << 3 | qos << 1 | retain
    return frame(first, text(topic), identifier, encode_properties(version, properties), payload)


def subscribe(packet_id: int, *filters: tuple[str | bytes, int], version: int, **properties: Any) -> bytes:
    """A SUBSCRIBE; the second of each pair is the whole options byte."""
    wishes = [text(name) + bytes((options,)) for name, options in filters]
    return frame(SUBSCRIBE << 4 | 2, packet_id.to_bytes(2, "big"), encode_properties(version, properties), *wishes)


def unsubscribe(packet_id: int, *filters: str | bytes, version: int, **properties: Any) -> bytes:
    """An UNSUBSCRIBE."""
    head = packet_id.to_bytes(2, "big") + encode_properties(version, properties)
    return frame(UNSUBSCRIBE << 4 | 2, head, *map(text, filters))


def ack(kind: int, packet_id: int, reason: int | None = None) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP."""
    return frame(
        kind << 4 | 2 * (kind == PUBREL), packet_id.to_bytes(2, "big"), b"" if reason is None else bytes((reason,))
    )


def disconnect(reason: int | None = None, **properties: Any) -> bytes:
    """A DISCONNECT; without a reason the two bytes of either version."""
    if reason is None:
        return frame(DISCONNECT << 4)
    return frame(DISCONNECT << 4, bytes((reason,)), encode_properties(5, properties))


# Bytes in


class Reader:
    """Takes fields off the front of a packet's body."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        """The next bytes."""
        assert len(self.data) >= count, f"{count} bytes in {self.data!r}"
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, size: int) -> int:
        """A big-endian integer."""
        return int.from_bytes(self.take(size), "big")

    def length(self) -> int:
        """A Variable Byte Integer in its shortest form. [MQTT-1.5.5-1]"""
        value, shift = 0, 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                assert shift == 7 or byte, "a length is longer than it needs to be"
                return value

    def binary(self) -> bytes:
        """Data behind its length."""
        return self.take(self.number(2))

    def text(self) -> str:
        """A string."""
        return self.binary().decode("utf-8")

    def value(self, kind: str) -> Any:
        """The value of a property."""
        match kind:
            case "byte":
                return self.number(1)
            case "two":
                return self.number(2)
            case "four":
                return self.number(4)
            case "length":
                return self.length()
            case "pair":
                return self.text(), self.text()
            case "binary":
                return self.binary()
        return self.text()

    def properties(self, kind: int) -> dict[str, Any]:
        """The properties of a packet of this kind."""
        inner = Reader(self.take(self.length()))
        found: dict[str, Any] = {}
        while inner.data:
            name, type_ = _BY_NUMBER[inner.length()]
            assert name in _FROM_SERVER[kind], f"{name} in a packet of type {kind}"
            value = inner.value(type_)
            if name in _REPEATED:
                found.setdefault(name, []).append(value)
            else:
                assert name not in found, f"{name} twice"
                found[name] = value
        return found


def decode(first: int, body: bytes, *, version: int, size: int) -> Packet:
    """A packet from a server; fails on whatever a server may not send."""
    kind, flags = first >> 4, first & 15
    reader, packet = Reader(body), Packet(kind, size)
    if kind == PUBLISH:
        _publish(packet, flags, reader, version)
    else:
        assert flags == (2 if kind == PUBREL else 0), f"flags {flags} in packet type {kind}"  # [MQTT-2.1.3-1]
        _READERS[kind](packet, reader, version)
    assert not reader.data, f"{reader.data!r} left in packet type {kind}"
    return packet


def _publish(packet: Packet, flags: int, reader: Reader, version: int) -> None:
    packet.dup, packet.qos, packet.retain = bool(flags & 8), flags >> 1 & 3, bool(flags & 1)
    assert packet.qos < 3
    assert packet.qos or not packet.dup  # [MQTT-3.3.1-2]
    packet.topic = reader.text()
    assert not set(packet.topic) & {"+", "#"}
    if packet.qos:
        packet.packet_id = reader.number(2)
        assert packet.packet_id  # [MQTT-2.2.1-4]
    if version == 5:
        packet.properties = reader.properties(PUBLISH)
    assert packet.topic or packet.topic_alias
    packet.payload, reader.data = reader.data, b""


def _connack(packet: Packet, reader: Reader, version: int) -> None:
    flags, packet.reason = reader.number(1), reader.number(1)
    assert flags < 2  # [MQTT-3.2.2-1]
    packet.session_present = bool(flags)
    assert not (flags and packet.reason)  # [MQTT-3.2.2-6]
    if version < 5:
        assert packet.reason <= 5
        return
    _check_reason(packet, packet.reason)
    packet.properties = reader.properties(CONNACK)


def _ack(packet: Packet, reader: Reader, version: int) -> None:
    packet.packet_id = reader.number(2)
    assert version == 5 or not reader.data
    if reader.data:
        packet.reason = _check_reason(packet, reader.number(1))
    if reader.data:
        packet.properties = reader.properties(packet.kind)


def _codes(packet: Packet, reader: Reader, version: int) -> None:
    packet.packet_id = reader.number(2)
    if version == 5:
        packet.properties = reader.properties(packet.kind)
        packet.reasons = [_check_reason(packet, code) for code in reader.take(len(reader.data))]
    elif packet.kind == SUBACK:
        packet.reasons = list(reader.take(len(reader.data)))
        assert set(packet.reasons) <= {0, 1, 2, 0x80}  # [MQTT-3.9.3-2] of 3.1.1


def _pingresp(packet: Packet, reader: Reader, version: int) -> None:
    assert not reader.data


def _goodbye(packet: Packet, reader: Reader, version: int) -> None:
    assert version == 5, "a 3.1.1 server has no such packet"
    if reader.data:
        packet.reason = _check_reason(packet, reader.number(1))
    if reader.data:
        packet.properties = reader.properties(packet.kind)


def _check_reason(packet: Packet, reason: int) -> int:
    assert reason in _REASONS[packet.kind], f"reason 0x{reason:02x} in packet type {packet.kind}"
    return reason


_READERS = {
    CONNACK: _connack,
    **dict.fromkeys((PUBACK, PUBREC, PUBREL, PUBCOMP), _ack),
    **dict.fromkeys((SUBACK, UNSUBACK), _codes),
    PINGRESP: _pingresp,
    **dict.fromkeys((DISCONNECT, AUTH), _goodbye),
}
