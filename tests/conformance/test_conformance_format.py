"""Strings, lengths, flag bits, packet identifiers and properties, as they stand in packets of every type."""

from __future__ import annotations

import conformance_wire as wire
import pytest
from conformance_peer import Peer
from conformance_wire import AUTH, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBACK, UNSUBACK

from mqtt_bytes import field, frame

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
ID = b"\x00\x07"
SURROGATE, OVERLONG, HALF, NULL = b"\xed\xa0\x80", b"\xc0\xaf", b"\xe2\x82", b"a\0b"
BOM = "\ufeff"


def no_properties(version: int) -> bytes:
    return b"\0" if version == 5 else b""


async def refused_with(peer: Peer, reason: int) -> None:
    """The connection ends, in MQTT 5 with this reason."""
    assert await peer.refused() == (reason if peer.version == 5 else 0)


@pytest.mark.parametrize("bad", [SURROGATE, OVERLONG, HALF, NULL, b"\xff"], ids=repr)
@pytest.mark.parametrize("where", ["topic", "filter", "second filter", "unsubscribe"])
async def test_text_that_is_no_utf_8_ends_the_connection(dial, version, name, bad, where):
    peer = await dial(version, name)
    packets = {
        "topic": wire.publish(bad, version=version),
        "filter": wire.subscribe(7, (bad, 0), version=version),
        "second filter": wire.subscribe(7, (name, 0), (bad, 0), version=version),
        "unsubscribe": wire.unsubscribe(7, bad, version=version),
    }
    peer.send(packets[where])
    await refused_with(peer, MALFORMED)


@pytest.mark.parametrize("bad", [SURROGATE, NULL, b"\xff"], ids=repr)
@pytest.mark.parametrize("where", ["client id", "user name", "will topic"])
async def test_text_in_connect_is_utf_8(dial, version, name, bad, where):
    options = {"user name": {"username": bad}, "will topic": {"will": wire.Will(bad)}}.get(where, {})
    peer = await dial(version)
    peer.send(wire.connect(bad if where == "client id" else name, version=version, **options))
    await refused_connect(peer, MALFORMED)


async def refused_connect(peer: Peer, reason: int) -> None:
    """A CONNACK with this reason in MQTT 5; 3.1.1 closes without a word. [MQTT-3.1.4-1]"""
    packets = await peer.end()
    if peer.version < 5:
        assert packets == []
    else:
        assert [(each.kind, each.reason) for each in packets] == [(wire.CONNACK, reason)]


@pytest.mark.parametrize("bad", [SURROGATE, NULL, b"\xff"], ids=repr)
@pytest.mark.parametrize("where", ["content_type", "response_topic", "user", "user value"])
async def test_text_in_properties_is_utf_8(dial, name, bad, where):
    pairs = {"user": (bad, b"v"), "user value": (b"k", bad)}
    peer = await dial(5, name)
    peer.send(wire.publish(name, version=5, **{where.split()[0]: pairs.get(where, bad)}))
    await refused_with(peer, MALFORMED)


async def test_a_byte_order_mark_stays(dial, version, name):
    peer = await dial(version, BOM + name)
    await peer.subscribe((BOM + name, 0), (f"{name}/{BOM}", 0))
    peer.send(wire.publish(BOM + name, b"1", version=version), wire.publish(f"{name}/{BOM}", b"2", version=version))
    assert [(await peer.take()).topic for _ in range(2)] == [BOM + name, f"{name}/{BOM}"]
    await peer.publish(name, b"another topic")


async def test_unusual_text_passes_unchanged(dial, version, name):
    peer = await dial(version, name)
    for odd in ("\U0001f600", "\ufffd", "é", "e\u0301", "\uffff", "\x7f", " ", "Ａ", "\U0010ffff"):
        topic = f"{name}/{odd}"
        assert await peer.subscribe((topic, 0)) == [0]
        peer.send(wire.publish(topic, odd.encode(), version=version))
        message = await peer.take()
        assert (message.topic, message.payload) == (topic, odd.encode())


@pytest.mark.parametrize(
    "packet",
    [b"\x30\xff\xff\xff\xff\x01", b"\xc0\x80\x80\x80\x80\x00", b"\xc0\x80\x00"],
    ids=["five bytes", "five bytes of nothing", "longer than needed"],
)
async def test_a_remaining_length_that_is_none(dial, version, name, packet):
    peer = await dial(version, name)
    peer.send(packet)
    await refused_with(peer, MALFORMED)


@pytest.mark.parametrize("size", [0, 1, 127 - 15, 128 - 15, 16_383 - 15, 16_384 - 15, 200_000])
async def test_payloads_of_any_length(dial, version, name, size):
    peer = await dial(version, name)
    await peer.subscribe((name, 1))
    peer.send(wire.publish(name, b"x" * size, version=version))
    assert (await peer.take()).payload == b"x" * size


FLAGS = {
    "CONNECT": 0,
    "PUBACK": 0,
    "PUBREC": 0,
    "PUBREL": 2,
    "PUBCOMP": 0,
    "SUBSCRIBE": 2,
    "UNSUBSCRIBE": 2,
    "PINGREQ": 0,
    "DISCONNECT": 0,
    "AUTH": 0,
}


@pytest.mark.parametrize("kind", FLAGS)
async def test_reserved_flag_bits(dial, version, name, kind):
    properties = no_properties(version)
    bodies = {
        **dict.fromkeys(("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"), ID),
        "SUBSCRIBE": ID + properties + field(name) + b"\0",
        "UNSUBSCRIBE": ID + properties + field(name),
    }
    for flags in {0, 1, 2, 4, 8, 15} - {FLAGS[kind]}:
        first = getattr(wire, kind) << 4 | flags
        if kind == "CONNECT":
            peer = await dial(version)
            peer.send(bytes((first,)) + wire.connect(name, version=version)[1:])
            await refused_connect(peer, MALFORMED)
        else:
            peer = await dial(version, name)
            peer.send(frame(first, bodies.get(kind, b"")))
            await refused_with(peer, MALFORMED)


@pytest.mark.parametrize("kind", [0, 2, 9, 11, 13])
async def test_packets_that_no_client_sends(dial, version, name, kind):
    peer = await dial(version, name)
    peer.send(frame(kind << 4, ID))
    assert await peer.refused() in (0, MALFORMED, PROTOCOL_ERROR)


async def test_auth_is_no_packet_of_3_1_1(dial, name):
    peer = await dial(4, name)
    peer.send(frame(AUTH << 4))
    await peer.refused()


async def test_packet_identifier_zero(dial, version, name):
    for packet in (
        wire.publish(name, version=version, qos=1),
        wire.publish(name, version=version, qos=2),
        wire.subscribe(0, (name, 0), version=version),
        wire.unsubscribe(0, name, version=version),
    ):
        peer = await dial(version, name)
        peer.send(packet)
        await refused_with(peer, PROTOCOL_ERROR)


@pytest.mark.parametrize("identifier", [1, 256, 65_535])
async def test_answers_carry_the_identifier(dial, version, name, identifier):
    peer = await dial(version, name)
    peer.send(
        wire.subscribe(identifier, (f"{name}/other", 0), version=version),
        wire.unsubscribe(identifier, f"{name}/other", version=version),
        wire.publish(name, version=version, qos=1, packet_id=identifier),
        wire.publish(name, version=version, qos=2, packet_id=identifier),
        wire.ack(PUBREL, identifier),
    )
    for kind in (SUBACK, UNSUBACK, PUBACK, PUBREC, PUBCOMP):
        assert (await peer.expect(kind)).packet_id == identifier


async def test_what_we_send_has_identifiers_not_in_use(dial, version, name):
    peer, other = await dial(version, name), await dial(version, name + "p")
    await peer.subscribe((name, 1))
    for _ in range(30):
        await other.publish(name, qos=1)
    first = [await peer.expect(PUBLISH) for _ in range(30)]
    assert len({each.packet_id for each in first}) == 30
    for each in first[1:]:
        peer.send(wire.ack(PUBACK, each.packet_id))
    for _ in range(30):
        await other.publish(name, qos=1)
    second = [await peer.expect(PUBLISH) for _ in range(30)]
    assert first[0].packet_id not in {each.packet_id for each in second}


async def test_qos_0_has_no_packet_identifier(dial, version, name):
    peer = await dial(version, name)
    await peer.subscribe((name, 0))
    await peer.subscribe((f"{name}/+", 2))
    peer.send(wire.publish(name, b"\0\1", version=version), wire.publish(f"{name}/1", b"\0\1", version=version))
    assert [(await peer.take()).payload for _ in range(2)] == [b"\0\1", b"\0\1"]


@pytest.mark.parametrize("kind", [PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, wire.SUBSCRIBE, wire.UNSUBSCRIBE])
async def test_packets_that_end_too_early(dial, version, name, kind):
    peer = await dial(version, name)
    peer.send(frame(kind << 4 | {PUBLISH: 2, PUBREL: 2, wire.SUBSCRIBE: 2, wire.UNSUBSCRIBE: 2}.get(kind, 0), b"\0"))
    await refused_with(peer, MALFORMED)


@pytest.mark.parametrize("body", [b"\0", b"\0\0"])
async def test_packets_that_go_on_too_long(dial, name, body):
    for packet in (frame(0xC0, body), frame(0xE0, body) if len(body) == 1 else frame(0xC0, body)):
        peer = await dial(4, name)
        peer.send(packet)
        assert await peer.end() == []
    peer = await dial(5, name)
    peer.send(frame(0xC0, body))
    await refused_with(peer, MALFORMED)


SUBSCRIBE_TAIL = field("t") + b"\0"
BAD_PROPERTIES = [
    ("an unknown identifier", PUBLISH, b"\x02\x7f\x00", MALFORMED),
    ("an identifier of two bytes", PUBLISH, b"\x03\xa6\x01\x00", MALFORMED),
    ("session expiry in PUBLISH", PUBLISH, b"\x05\x11\0\0\0\1", MALFORMED),
    ("a reason string in PUBLISH", PUBLISH, b"\x04\x1f\0\1a", MALFORMED),
    ("content type in SUBSCRIBE", wire.SUBSCRIBE, b"\x04\x03\0\1a", MALFORMED),
    ("a subscription identifier in UNSUBSCRIBE", wire.UNSUBSCRIBE, b"\x02\x0b\1", MALFORMED),
    ("a will delay in DISCONNECT", wire.DISCONNECT, b"\x05\x18\0\0\0\1", MALFORMED),
    ("a server reference in DISCONNECT", wire.DISCONNECT, b"\x04\x1c\0\1a", MALFORMED),
    ("topic alias in PUBACK", PUBACK, b"\x03\x23\0\1", MALFORMED),
    ("payload format twice", PUBLISH, b"\x04\x01\0\x01\0", PROTOCOL_ERROR),
    ("message expiry twice", PUBLISH, b"\x0a\x02\0\0\0\1\x02\0\0\0\1", PROTOCOL_ERROR),
    ("content type twice", PUBLISH, b"\x08\x03\0\1a\x03\0\1a", PROTOCOL_ERROR),
    ("response topic twice", PUBLISH, b"\x08\x08\0\1a\x08\0\1a", PROTOCOL_ERROR),
    ("correlation data twice", PUBLISH, b"\x08\x09\0\1a\x09\0\1a", PROTOCOL_ERROR),
    ("topic alias twice", PUBLISH, b"\x06\x23\0\1\x23\0\1", PROTOCOL_ERROR),
    ("a subscription identifier twice", wire.SUBSCRIBE, b"\x04\x0b\1\x0b\1", PROTOCOL_ERROR),
    ("a subscription identifier of 0", wire.SUBSCRIBE, b"\x02\x0b\0", PROTOCOL_ERROR),
    ("a reason string twice", PUBACK, b"\x08\x1f\0\1a\x1f\0\1a", PROTOCOL_ERROR),
    ("session expiry twice", wire.DISCONNECT, b"\x0a\x11\0\0\0\0\x11\0\0\0\0", PROTOCOL_ERROR),
    ("payload format 2", PUBLISH, b"\x02\x01\x02", PROTOCOL_ERROR),
    ("a value cut short", PUBLISH, b"\x03\x02\0\0", MALFORMED),
    ("more than the packet", PUBLISH, b"\x7f\x01\0", MALFORMED),
    ("no length", PUBLISH, b"", MALFORMED),
    ("a length of five bytes", PUBLISH, b"\x80\x80\x80\x80\x01", MALFORMED),
    ("no length in SUBACK's request", wire.SUBSCRIBE, None, MALFORMED),
]


@pytest.mark.parametrize(
    ("kind", "data", "reason"), [row[1:] for row in BAD_PROPERTIES], ids=[r[0] for r in BAD_PROPERTIES]
)
async def test_bad_properties(dial, name, kind, data, reason):
    heads = {PUBLISH: field(name), PUBACK: ID + b"\0", wire.DISCONNECT: b"\0"}
    tails = {wire.SUBSCRIBE: SUBSCRIBE_TAIL, wire.UNSUBSCRIBE: field("t")}
    flags = 2 if kind in tails else 0
    peer = await dial(5, name)
    body = ID if data is None else heads.get(kind, ID) + data + tails.get(kind, b"")
    peer.send(frame(kind << 4 | flags, body))
    await refused_with(peer, reason)


@pytest.mark.parametrize(
    ("kind", "reason"), [(PUBACK, 0x55), (PUBREC, 0x92), (PUBREL, 0x10), (PUBCOMP, 0x97), (wire.DISCONNECT, 0x01)]
)
async def test_reason_codes_of_other_packets(dial, name, kind, reason):
    peer = await dial(5, name)
    peer.send(frame(kind << 4 | 2 * (kind == PUBREL), b"" if kind == wire.DISCONNECT else ID, bytes((reason,))))
    assert await peer.refused() in (MALFORMED, PROTOCOL_ERROR)


async def test_acknowledgements_may_carry_everything(dial, name):
    peer, other = await dial(5, name), await dial(5, name + "p")
    await peer.subscribe((name, 2))
    tail = b"\0" + wire.encode_properties(5, {"reason_string": "fine", "user": [("a", "b"), ("a", "b")]})
    await other.publish(name, qos=1)
    peer.send(frame(PUBACK << 4, (await peer.expect(PUBLISH)).packet_id.to_bytes(2, "big"), tail))
    await other.publish(name, qos=2)
    identifier = (await peer.expect(PUBLISH)).packet_id.to_bytes(2, "big")
    peer.send(frame(PUBREC << 4, identifier, tail))
    await peer.expect(PUBREL)
    peer.send(frame(PUBCOMP << 4, identifier, tail))
    peer.send(frame(0xE0, tail))
    assert await peer.end() == []
