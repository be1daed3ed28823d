"""Packets as bytes and as values: one table that the codec tests and the server tests both run through."""

from __future__ import annotations

from typing import Any, NamedTuple

import mqtt5
from mqtt5 import QoS

from raw_client import field, frame
from terrazzo_broker.codec.subscribe import RequestedFilter, SubscribePacket, UnsubscribePacket


class Row(NamedTuple):
    """``version`` 4 or 5; ``packet`` is what ``data`` reads as."""

    name: str
    version: int
    data: bytes
    packet: Any


class BadRow(NamedTuple):
    """``reason`` is what MQTT 5 answers."""

    name: str
    version: int
    data: bytes
    reason: int


ID = b"\x12\x34"
USER = b"\x26" + field("k") + field("v")


def connect(
    flags: int = 2,
    *,
    version: int = 5,
    properties: bytes = b"\0",
    rest: bytes = b"",
    first: int = 0x10,
) -> bytes:
    """A CONNECT of client ``id`` with whatever is in it."""
    props = properties if version == 5 else b""
    return frame(first, field("MQTT"), bytes((version, flags)), b"\x00\x0a", props, field("id"), rest)


def acks() -> list[Row]:
    """The four acknowledgements of publishes."""
    rows = []
    for first, name, packet, codes in (
        (0x40, "PUBACK", mqtt5.PubAckPacket, mqtt5.PubAckReasonCode),
        (0x50, "PUBREC", mqtt5.PubRecPacket, mqtt5.PubRecReasonCode),
        (0x62, "PUBREL", mqtt5.PubRelPacket, mqtt5.PubRelReasonCode),
        (0x70, "PUBCOMP", mqtt5.PubCompPacket, mqtt5.PubCompReasonCode),
    ):
        code = 0x92 if first in (0x62, 0x70) else 0x87
        rows += [
            Row(name, 4, frame(first, ID), packet(0x1234)),
            Row(name, 5, frame(first, ID), packet(0x1234)),
            Row(f"{name} with a reason", 5, frame(first, ID, bytes((code,))), packet(0x1234, reason_code=codes(code))),
            Row(
                f"{name} with properties",
                5,
                frame(first, ID, bytes((code,)), bytes((len(USER) + 5,)), b"\x1f" + field("no"), USER),
                packet(0x1234, reason_code=codes(code), reason_str="no", user_properties=[("k", "v")]),
            ),
        ]
    return rows


def subscriptions() -> list[Row]:
    """SUBSCRIBE and UNSUBSCRIBE."""
    plain = RequestedFilter("a/+", 1)
    rich = RequestedFilter("$share/g/#", 2, retain_as_published=True, retain_handling=2)
    return [
        Row("SUBSCRIBE", 4, frame(0x82, ID, field("a/+"), b"\1"), SubscribePacket(0x1234, [plain])),
        Row("SUBSCRIBE", 5, frame(0x82, ID, b"\0", field("a/+"), b"\1"), SubscribePacket(0x1234, [plain])),
        Row(
            "SUBSCRIBE with everything",
            5,
            frame(
                0x82,
                ID,
                bytes((len(USER) + 3,)),
                b"\x0b\x80\x01",
                USER,
                field("a/+"),
                b"\1",
                field("$share/g/#"),
                b"\x2a",
            ),
            SubscribePacket(0x1234, [plain, rich], 128, [("k", "v")]),
        ),
        Row("UNSUBSCRIBE", 4, frame(0xA2, ID, field("a"), field("b")), UnsubscribePacket(0x1234, ["a", "b"])),
        Row("UNSUBSCRIBE", 5, frame(0xA2, ID, b"\0", field("a")), UnsubscribePacket(0x1234, ["a"])),
    ]


GOOD: list[Row] = [
    *acks(),
    *subscriptions(),
    Row("PINGREQ", 4, b"\xc0\x00", mqtt5.PingReqPacket()),
    Row("PINGREQ", 5, b"\xc0\x00", mqtt5.PingReqPacket()),
    Row("DISCONNECT", 4, b"\xe0\x00", mqtt5.DisconnectPacket()),
    Row("DISCONNECT", 5, b"\xe0\x00", mqtt5.DisconnectPacket()),
    Row("DISCONNECT with will", 5, b"\xe0\x01\x04", mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode(4))),
    Row(
        "DISCONNECT with an expiry",
        5,
        frame(0xE0, b"\0\x05\x11\0\0\0\x07"),
        mqtt5.DisconnectPacket(session_expiry_interval=7),
    ),
    Row(
        "AUTH",
        5,
        frame(0xF0, b"\x18\x0a\x15", field("ab"), b"\x16", field(b"\xff\0")),
        mqtt5.AuthPacket(
            reason_code=mqtt5.AuthReasonCode(0x18), authentication_method="ab", authentication_data=b"\xff\0"
        ),
    ),
]

CONNECTS: list[Row] = [
    Row("CONNECT", 4, connect(version=4), mqtt5.ConnectPacket("id", clean_start=True, keep_alive=10)),
    Row(
        "CONNECT that keeps its session",
        4,
        connect(0, version=4),
        mqtt5.ConnectPacket("id", keep_alive=10, session_expiry_interval=0xFFFFFFFF),
    ),
    Row("CONNECT", 5, connect(), mqtt5.ConnectPacket("id", clean_start=True, keep_alive=10)),
    Row(
        "CONNECT with will and credentials",
        4,
        connect(0xEE, version=4, rest=field("w") + field(b"\xff") + field("u") + field(b"p")),
        mqtt5.ConnectPacket(
            "id",
            clean_start=True,
            keep_alive=10,
            username="u",
            password=b"p",
            will=mqtt5.Will("w", payload=b"\xff", qos=QoS(1), retain=True),
        ),
    ),
    Row(
        "CONNECT with everything",
        5,
        connect(
            0x56,
            properties=bytes((5 + 3 + 3 + 5 + 2 + 2 + len(USER),))
            + b"\x11\0\0\0\x09\x21\0\x0a\x22\0\x05\x27\0\0\x10\0\x17\0\x19\1"
            + USER,
            rest=bytes((5 + 2 + len(USER),)) + b"\x18\0\0\0\x03\x01\x01" + USER + field("w") + field("x") + field(b"p"),
        ),
        mqtt5.ConnectPacket(
            "id",
            clean_start=True,
            keep_alive=10,
            password=b"p",
            session_expiry_interval=9,
            receive_max=10,
            topic_alias_max=5,
            max_packet_size=4096,
            request_problem_info=False,
            request_response_info=True,
            user_properties=[("k", "v")],
            will=mqtt5.Will(
                "w",
                payload=b"x",
                qos=QoS(2),
                will_delay_interval=3,
                payload_format_indicator=1,
                user_properties=[("k", "v")],
            ),
        ),
    ),
]


def publish(first: int, *parts: bytes, topic: bytes | str = "a/b") -> bytes:
    """A PUBLISH with whatever is in it."""
    return frame(first, field(topic), *parts)


# What an open connection may not send.
BAD: list[BadRow] = [
    BadRow("QoS 3", 5, publish(0x36, b"\0\1\0x"), 0x81),
    BadRow("DUP at QoS 0", 5, publish(0x38, b"\0x"), 0x81),
    BadRow("packet identifier 0", 5, publish(0x32, b"\0\0\0x"), 0x82),
    BadRow("packet identifier 0 of an earlier topic", 5, publish(0x32, b"\0\1\0x") + publish(0x32, b"\0\0\0x"), 0x82),
    BadRow("no room for a packet identifier", 5, publish(0x32, b"\0"), 0x81),
    BadRow("topic longer than the packet", 5, frame(0x30, b"\x00\x09abc"), 0x81),
    BadRow("topic without its length", 5, frame(0x30, b"\x00"), 0x81),
    BadRow("topic not UTF-8", 5, publish(0x30, b"\0x", topic=b"\xff\xfe"), 0x81),
    BadRow("surrogate in a topic", 5, publish(0x30, b"\0x", topic=b"\xed\xa0\x80"), 0x81),
    BadRow("U+0000 in a topic", 5, publish(0x30, b"\0x", topic=b"a\0b"), 0x81),
    BadRow("wildcard # in a topic", 5, publish(0x30, b"\0x", topic=b"a/#"), 0x90),
    BadRow("wildcard + in a topic", 5, publish(0x30, b"\0x", topic=b"+/a"), 0x90),
    BadRow("empty topic", 5, publish(0x30, b"\0x", topic=b""), 0x82),
    BadRow("too many levels", 5, publish(0x30, b"\0x", topic=b"/" * 200), 0x90),
    BadRow("no properties", 5, publish(0x30), 0x81),
    BadRow("properties longer than the packet", 5, publish(0x30, b"\x7f\x01\x01"), 0x81),
    BadRow("property cut by its length", 5, publish(0x30, b"\x01\x01\x01"), 0x81),
    BadRow("property length in five bytes", 5, publish(0x30, b"\x80\x80\x80\x80\x01"), 0x81),
    BadRow("overlong property length", 5, publish(0x30, b"\x80\x00x"), 0x81),
    BadRow("unknown property", 5, publish(0x30, b"\x02\x7f\x00x"), 0x81),
    BadRow("property of another packet", 5, publish(0x30, b"\x05\x11\0\0\0\1x"), 0x81),
    BadRow("property twice", 5, publish(0x30, b"\x04\x01\x01\x01\x01x"), 0x82),
    BadRow("payload format 2", 5, publish(0x30, b"\x02\x01\x02x"), 0x82),
    BadRow("subscription identifier from a client", 5, publish(0x30, b"\x02\x0b\x05x"), 0x82),
    BadRow("topic alias 0", 5, publish(0x30, b"\x03\x23\0\0x"), 0x94),
    BadRow("topic alias over the maximum", 5, publish(0x30, b"\x03\x23\xff\xffx"), 0x94),
    BadRow("topic alias never set", 5, publish(0x30, b"\x03\x23\0\1x", topic=b""), 0x82),
    BadRow("wildcards in a response topic", 5, publish(0x30, b"\x06\x08", field("a/#"), b"x"), 0x82),
    BadRow("user property not UTF-8", 5, publish(0x30, b"\x07\x26\0\1\xff\0\1v"), 0x81),
    BadRow("SUBSCRIBE without filters", 5, frame(0x82, ID, b"\0"), 0x82),
    BadRow("SUBSCRIBE with wrong flags", 5, frame(0x80, ID, b"\0", field("a"), b"\0"), 0x81),
    BadRow("SUBSCRIBE with identifier 0", 5, frame(0x82, b"\0\0\0", field("a"), b"\0"), 0x82),
    BadRow("SUBSCRIBE at QoS 3", 5, frame(0x82, ID, b"\0", field("a"), b"\3"), 0x82),
    BadRow("SUBSCRIBE with retain handling 3", 5, frame(0x82, ID, b"\0", field("a"), b"\x30"), 0x82),
    BadRow("SUBSCRIBE with reserved options", 5, frame(0x82, ID, b"\0", field("a"), b"\x40"), 0x81),
    BadRow("SUBSCRIBE without options", 5, frame(0x82, ID, b"\0", field("a")), 0x81),
    BadRow("SUBSCRIBE to nothing", 5, frame(0x82, ID, b"\0", field(""), b"\0"), 0x81),
    BadRow("subscription identifier 0", 5, frame(0x82, ID, b"\2\x0b\0", field("a"), b"\0"), 0x82),
    BadRow("subscription identifier twice", 5, frame(0x82, ID, b"\4\x0b\1\x0b\2", field("a"), b"\0"), 0x82),
    BadRow("no local on a shared subscription", 5, frame(0x82, ID, b"\0", field("$share/g/a"), b"\x04"), 0x82),
    BadRow("UNSUBSCRIBE from nothing", 5, frame(0xA2, ID, b"\0", field("")), 0x81),
    BadRow("UNSUBSCRIBE without filters", 5, frame(0xA2, ID, b"\0"), 0x82),
    BadRow("PUBACK with wrong flags", 5, frame(0x41, ID), 0x81),
    BadRow("PUBREL with wrong flags", 5, frame(0x60, ID), 0x81),
    BadRow("PUBACK without identifier", 5, frame(0x40, b"\0"), 0x81),
    BadRow("PUBACK with identifier 0", 5, frame(0x40, b"\0\0"), 0x82),
    BadRow("PUBACK with an unknown reason", 5, frame(0x40, ID, b"\x55"), 0x81),
    BadRow("PUBACK with bytes left", 5, frame(0x40, ID, b"\0\0zz"), 0x81),
    BadRow("PINGREQ with a body", 5, b"\xc0\x01\x00", 0x81),
    BadRow("PINGREQ with flags", 5, b"\xc1\x00", 0x81),
    BadRow("DISCONNECT with flags", 5, b"\xe1\x00", 0x81),
    BadRow("DISCONNECT with an unknown reason", 5, b"\xe0\x01\x55", 0x81),
    BadRow("DISCONNECT that gives an ending session an expiry", 5, frame(0xE0, b"\0\x05\x11\0\0\0\x07"), 0x82),
    BadRow("AUTH without a method", 5, b"\xf0\x00", 0x82),
    BadRow("a second CONNECT", 5, connect(), 0x82),
    BadRow("packet type 0", 5, b"\x00\x00", 0x81),
    BadRow("CONNACK from a client", 5, b"\x20\x03\0\0\0", 0x82),
    BadRow("PINGRESP from a client", 5, b"\xd0\x00", 0x82),
    BadRow("remaining length in five bytes", 5, b"\x30\xff\xff\xff\xff\x01", 0x81),
    BadRow("overlong remaining length", 5, b"\xc0\x80\x00", 0x81),
    BadRow("a packet over the limit", 5, b"\x30\xff\xff\xff\x7f", 0x95),
    BadRow("AUTH in 3.1.1", 4, b"\xf0\x00", 0x81),
    BadRow("SUBSCRIBE with 5.0 options", 4, frame(0x82, ID, field("a"), b"\x04"), 0x81),
    BadRow("SUBSCRIBE at QoS 3", 4, frame(0x82, ID, field("a"), b"\3"), 0x82),
    BadRow("QoS 3", 4, publish(0x36, b"\0\1x"), 0x81),
    BadRow("empty topic", 4, publish(0x30, b"x", topic=b""), 0x90),
    BadRow("wildcard in a topic", 4, publish(0x30, b"x", topic=b"a/#"), 0x90),
    BadRow("packet identifier 0", 4, publish(0x34, b"\0\0x"), 0x82),
    BadRow("a second CONNECT", 4, connect(version=4), 0x82),
    BadRow("DISCONNECT with a body", 4, b"\xe0\x01\x00", 0x81),
]

# What a CONNECT may not say.
BAD_CONNECTS: list[BadRow] = [
    BadRow("reserved flag", 5, connect(3), 0x81),
    BadRow("reserved flag", 4, connect(3, version=4), 0x81),
    BadRow("flags in the first byte", 5, connect(first=0x11), 0x81),
    BadRow("will QoS without a will", 5, connect(0x0A), 0x81),
    BadRow("will retain without a will", 4, connect(0x22, version=4), 0x81),
    BadRow("will QoS 3", 5, connect(0x1E, rest=b"\0" + field("w") + field("")), 0x81),
    BadRow("will with wildcards", 5, connect(6, rest=b"\0" + field("w/#") + field("")), 0x90),
    BadRow("will that isn't text", 5, connect(6, rest=b"\2\1\1" + field("w") + field(b"\xff")), 0x99),
    BadRow("password without a user name", 4, connect(0x42, version=4, rest=field("p")), 0x81),
    BadRow("user name missing", 5, connect(0x82), 0x81),
    BadRow("user name not UTF-8", 5, connect(0x82, rest=field(b"\xff")), 0x81),
    BadRow("bytes left", 5, connect(rest=b"zz"), 0x81),
    BadRow("receive maximum 0", 5, connect(properties=b"\3\x21\0\0"), 0x82),
    BadRow("maximum packet size 0", 5, connect(properties=b"\5\x27\0\0\0\0"), 0x82),
    BadRow("request problem information 2", 5, connect(properties=b"\2\x17\2"), 0x82),
    BadRow("authentication data without a method", 5, connect(properties=b"\3\x16\0\0"), 0x82),
    BadRow("session expiry twice", 5, connect(properties=b"\x0a\x11\0\0\0\1\x11\0\0\0\1"), 0x82),
    BadRow("a will's property in CONNECT", 5, connect(properties=b"\5\x18\0\0\0\1"), 0x81),
]


def names(rows: list[Any]) -> list[str]:
    """Test ids."""
    return [f"{row.name} v{row.version}" for row in rows]
