"""Bytes to packets and back, for each packet type and both protocol versions."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import QoS
from packet_table import BAD, BAD_CONNECTS, CONNECTS, GOOD, Row, names

from terrazzo_broker.codec.errors import PacketError, UnsupportedProtocol
from terrazzo_broker.codec.publish import parse_publish
from terrazzo_broker.codec.reader import ProtocolLevel, parse_connect, parse_packet
from terrazzo_broker.codec.wire import Cursor, encode_length, parse_frame
from terrazzo_broker.codec.writer import ack, connack_return_code, encode_packet
from terrazzo_broker.delivery.encoder import PublishEncoder, render
from terrazzo_broker.message import ApplicationMessage, PublishProperties


def read(data: bytes, version: int):
    """One whole packet; PUBLISH too."""
    frame = parse_frame(data, 0)
    assert frame is not None
    start, end = frame
    cursor = Cursor(data[:end], start)
    if data[0] >> 4 == 3:
        return parse_publish(data[0], cursor, version)
    if data[0] >> 4 == 1:
        return parse_connect(data[0], cursor)
    return parse_packet(data[0], cursor, version)


def described(packet) -> str:
    """``mqtt5``'s packets say all their fields in their repr."""
    return repr(packet)


@pytest.mark.parametrize("row", GOOD, ids=names(GOOD))
def test_packets_are_read(row: Row):
    assert described(read(row.data, row.version)) == described(row.packet)


@pytest.mark.parametrize("row", CONNECTS, ids=names(CONNECTS))
def test_connects_are_read(row: Row):
    packet, protocol = read(row.data, row.version)
    assert (described(packet), protocol) == (described(row.packet), (row.version, False))


@pytest.mark.parametrize("row", GOOD + CONNECTS, ids=names(GOOD + CONNECTS))
def test_every_truncated_body_is_malformed_or_shorter(row: Row):
    start, end = parse_frame(row.data, 0)
    answers = set()
    for cut in range(end - start):
        data = row.data[:1] + encode_length(cut) + row.data[start : start + cut]
        try:
            packet = read(data, row.version)
        except PacketError as error:
            answers.add(int(error.reason))
        except UnsupportedProtocol:
            answers.add(0x84)
        else:
            assert described(packet) != described(row.packet)
    assert answers <= {0x81, 0x82, 0x84}


@pytest.mark.parametrize("row", GOOD + CONNECTS, ids=names(GOOD + CONNECTS))
def test_every_mutated_byte_is_read_or_refused(row: Row):
    for index in range(len(row.data)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, row.data[index] ^ 1, row.data[index] ^ 0x80):
            data = row.data[:index] + bytes((value,)) + row.data[index + 1 :]
            try:
                frame = parse_frame(data, 0)
                if frame is not None and frame[1] <= len(data):
                    read(data, row.version)
            except (PacketError, UnsupportedProtocol):
                continue


_NOT_THE_CODECS = ("a second", "topic alias", "a packet over", "DISCONNECT that")
CODEC_BAD = [row for row in BAD if not row.name.startswith(_NOT_THE_CODECS)]


def _refused_by_the_session(row) -> bool:
    """What only the connection can tell."""
    return row.reason in (0x90, 0x94, 0x99) or row.name in {
        "packet identifier 0 of an earlier topic",
        "empty topic",
        "topic not UTF-8",
        "surrogate in a topic",
        "U+0000 in a topic",
        "wildcards in a response topic",
        "SUBSCRIBE to nothing",
        "AUTH without a method",
    }


REFUSED = [row for row in CODEC_BAD + BAD_CONNECTS if not _refused_by_the_session(row)]


@pytest.mark.parametrize("row", REFUSED, ids=names(REFUSED))
def test_bad_packets_are_refused_with_their_reason(row):
    with pytest.raises(PacketError) as caught:
        read(row.data, row.version)
    assert int(caught.value.reason) == row.reason


@pytest.mark.parametrize(
    ("packet", "version", "data"),
    [
        (mqtt5.ConnAckPacket(session_present=True), 4, b"\x20\x02\x01\x00"),
        (mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode(0x87), session_present=True), 4, b"\x20\x02\x00\x05"),
        (mqtt5.ConnAckPacket(session_present=True), 5, b"\x20\x03\x01\x00\x00"),
        (
            mqtt5.SubAckPacket(7, [mqtt5.SubAckReasonCode(code) for code in (0, 1, 2, 0x87, 0x8F)]),
            4,
            b"\x90\x07\0\7\0\1\2\x80\x80",
        ),
        (mqtt5.SubAckPacket(7, [mqtt5.SubAckReasonCode(0x8F)]), 5, b"\x90\x04\0\7\0\x8f"),
        (mqtt5.UnsubAckPacket(7, [mqtt5.UnsubAckReasonCode(0x11)]), 4, b"\xb0\x02\0\7"),
        (mqtt5.UnsubAckPacket(7, [mqtt5.UnsubAckReasonCode(0x11)]), 5, b"\xb0\x04\0\7\0\x11"),
        (mqtt5.PubAckPacket(7), 4, b"\x40\x02\0\7"),
        (mqtt5.PubRecPacket(7), 4, b"\x50\x02\0\7"),
        (mqtt5.PubRelPacket(7), 4, b"\x62\x02\0\7"),
        (mqtt5.PubCompPacket(7), 4, b"\x70\x02\0\7"),
        (mqtt5.PingRespPacket(), 4, b"\xd0\x00"),
        (mqtt5.PingRespPacket(), 5, b"\xd0\x00"),
        (mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode(0x8E)), 4, b""),
        (mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode(0x8E)), 5, b"\xe0\x01\x8e"),
    ],
)
def test_packets_are_written(packet, version, data):
    assert encode_packet(packet, version) == data


def test_short_acknowledgements_are_what_mqtt5_writes():
    assert mqtt5.read(memoryview(ack(0x40, 9, 0x10, 5)))[0].reason_code == mqtt5.PubAckReasonCode(0x10)
    assert ack(0x40, 9, 0x10, 4) == ack(0x40, 9, 0, 5) == b"\x40\x02\0\x09"
    assert [connack_return_code(code) for code in (0, 0x84, 0x85, 0x88, 0x86, 0x87, 0x8C)] == [0, 1, 2, 3, 4, 5, 5]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
topics = st.text(st.characters(codec="utf-8", exclude_characters="\0+#"), max_size=20)
user_properties = st.lists(st.tuples(texts, texts), max_size=3)


@st.composite
def publishes(draw):
    """PUBLISH packets as a client may send them."""
    qos = draw(st.integers(0, 2))
    return mqtt5.PublishPacket(
        draw(topics.filter(bool)),
        draw(st.binary(max_size=300)),
        qos=QoS(qos),
        retain=draw(st.booleans()),
        packet_id=draw(st.integers(1, 65535)) if qos else None,
        duplicate=bool(qos) and draw(st.booleans()),
        payload_format_indicator=draw(st.integers(0, 1)),
        message_expiry_interval=draw(st.none() | st.integers(0, 2**32 - 1)),
        content_type=draw(st.none() | texts),
        response_topic=draw(st.none() | topics),
        correlation_data=draw(st.none() | st.binary(max_size=20)),
        topic_alias=draw(st.none() | st.integers(1, 65535)),
        user_properties=draw(user_properties),
    )


@given(publishes())
def test_publishes_of_mqtt5_are_read_and_passed_on(packet):
    publish = read(packet.write(), 5)
    assert (publish.topic.decode(), publish.payload, publish.qos) == (packet.topic, packet.payload, int(packet.qos))
    assert (publish.alias, publish.expiry_s) == (packet.topic_alias, packet.message_expiry_interval)
    message = ApplicationMessage(publish.topic, publish.payload, publish.qos, publish.retain, publish.properties)
    head, tail = render(message, 5, 0)
    identifier = publish.packet_id.to_bytes(2, "big") if publish.qos else b""
    passed_on, length = mqtt5.read(memoryview(head + identifier + tail))
    assert length == len(head + identifier + tail)
    for name in ("topic", "payload", "retain", "payload_format_indicator", "content_type", "response_topic"):
        assert getattr(passed_on, name) == getattr(packet, name)
    assert passed_on.correlation_data == packet.correlation_data
    assert passed_on.user_properties == packet.user_properties
    assert passed_on.message_expiry_interval is None


@given(
    st.builds(
        mqtt5.ConnectPacket,
        texts,
        username=st.none() | texts,
        password=st.none() | st.binary(max_size=20),
        clean_start=st.booleans(),
        keep_alive=st.integers(0, 65535),
        session_expiry_interval=st.integers(0, 2**32 - 1),
        receive_max=st.integers(1, 65535),
        max_packet_size=st.none() | st.integers(1, 2**32 - 1),
        topic_alias_max=st.integers(0, 65535),
        user_properties=user_properties,
    )
)
def test_connects_of_mqtt5_are_read(packet):
    ours, protocol = read(packet.write(), 5)
    assert (described(ours), protocol) == (described(packet), ProtocolLevel(5, is_bridge=False))


@given(st.binary(min_size=2, max_size=60), st.sampled_from([4, 5]))
@settings(max_examples=500)
def test_any_bytes_are_read_or_refused(data, version):
    try:
        frame = parse_frame(data, 0)
        if frame is not None and frame[1] <= len(data):
            read(data, version)
    except (PacketError, UnsupportedProtocol):
        return


@given(st.integers(0, 268_435_455))
def test_lengths_round_trip(value):
    encoded = encode_length(value)
    assert Cursor(encoded).length() == value
    assert parse_frame(b"\x30" + encoded, 0) == (1 + len(encoded), 1 + len(encoded) + value)
    assert all(parse_frame(b"\x30" + encoded[:cut], 0) is None for cut in range(len(encoded)))


def test_aliases_are_used_as_soon_as_a_topic_repeats():
    encoder = PublishEncoder(5, alias_maximum=1)
    packets = [
        mqtt5.read(memoryview(encoder.encode(ApplicationMessage(topic, b"x"), 0, 0)))[0]
        for topic in (b"a", b"a", b"b", b"b")
    ]
    assert [(each.topic, each.topic_alias) for each in packets] == [("a", 1), ("", 1), ("b", None), ("b", None)]


def test_packets_too_large_for_the_client_are_not_written():
    encoder = PublishEncoder(5, alias_maximum=2, packet_bytes=20)
    assert encoder.encode(ApplicationMessage(b"a", b"x" * 20), 0, 0) is None
    assert mqtt5.read(memoryview(encoder.encode(ApplicationMessage(b"a", b"x"), 0, 0)))[0].topic == "a"


def test_server_side_properties_are_those_of_mqtt5():
    properties = PublishProperties(
        payload_format_indicator=1,
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\xff",
        user_properties=(("a", "1"), ("a", "2")),
    )
    message = ApplicationMessage(b"t", b"x", properties=properties.encode(), expires_us=5_000_000)
    packet, _ = mqtt5.read(memoryview(b"".join(render(message, 5, 1_500_000))))
    assert (packet.payload_format_indicator, packet.content_type, packet.response_topic) == (1, "text/plain", "r")
    assert (packet.correlation_data, packet.user_properties) == (b"\xff", [("a", "1"), ("a", "2")])
    assert packet.message_expiry_interval == 4
