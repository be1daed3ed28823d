"""Maximum Packet Size in both directions, problem information, enhanced authentication, the reasons of a goodbye."""

from __future__ import annotations

import conformance_wire as wire
import pytest
from conformance_wire import AUTH, CONNACK, DISCONNECT, PUBLISH

from mqtt_bytes import frame

PROTOCOL_ERROR, BAD_METHOD, PACKET_TOO_LARGE = 0x82, 0x8C, 0x95


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_packet_too_large_for_a_client_counts_as_sent(dial, name, qos):
    peer, writer = await dial(5, name, keep=True, maximum_packet_size=64), await dial(5, name + "p")
    await peer.subscribe((name, 2))
    await writer.publish(name, b"x" * 64, qos=qos)
    await writer.publish(name, b"fits", qos=qos)
    message = await peer.take()
    assert (message.payload, message.size <= 64) == (b"fits", True)
    await peer.leave()
    await (await dial(5, name, keep=True)).silence()


async def test_a_packet_of_just_the_maximum_arrives(dial, name):
    writer, plain = await dial(5, name + "p"), await dial(5, name + "q")
    await plain.subscribe((name, 1))
    await writer.publish(name, b"x" * 50, qos=1)
    size = (await plain.take()).size
    for maximum, arrives in ((size, True), (size - 1, False)):
        peer = await dial(5, f"{name}{maximum}", maximum_packet_size=maximum)
        await peer.subscribe((name, 1))
        await writer.publish(name, b"x" * 50, qos=1)
        if arrives:
            assert (await peer.take()).size == size
        await peer.silence()


async def test_messages_from_before_keep_to_a_new_maximum(dial, name):
    peer, writer = await dial(5, name, keep=True), await dial(5, name + "p")
    await peer.subscribe((name, 1))
    await writer.publish(name, b"x" * 100, qos=1)
    await peer.expect(PUBLISH)
    await peer.leave()
    await writer.publish(name, b"y" * 100, qos=1)
    await writer.publish(name, b"z", qos=1)
    again = await dial(5, name, keep=True, maximum_packet_size=80)
    assert (await again.take()).payload == b"z"
    await again.silence()


async def test_a_retained_message_too_large_stays_away(dial, name):
    peer, writer = await dial(5, name, maximum_packet_size=64), await dial(5, name + "p")
    await writer.publish(name, b"x" * 100, qos=1, retain=True)
    await peer.subscribe((name, 1))
    await peer.silence()
    await writer.publish(name, qos=1, retain=True)


@pytest.mark.parametrize("maximum", [20, 30, 64])
async def test_refusals_keep_to_the_maximum(dial, name, maximum):
    """The reason string gives way."""
    stranger = await dial(5)
    connack = await stranger.connect(name, auth_method="none", maximum_packet_size=maximum)
    assert (connack.reason, connack.size <= maximum) == (BAD_METHOD, True)
    peer = await dial(5, name, maximum_packet_size=maximum)
    assert peer.connack.size <= maximum
    peer.send(wire.publish("#", version=5))
    goodbye = (await peer.end())[0]
    assert (goodbye.reason, goodbye.size <= maximum) == (0x90, True)


async def test_answers_too_large_are_not_sent(dial, name):
    peer = await dial(5, name, maximum_packet_size=24)
    filters = [(f"{name}/{number}", 0) for number in range(40)]
    peer.send(wire.subscribe(1, *filters, version=5))
    await peer.silence()
    peer.send(wire.publish(f"{name}/7", version=5, payload=b""))
    await peer.take()


async def test_an_assigned_client_id_too_long_for_the_maximum(dial):
    peer = await dial(5)
    peer.send(wire.connect("", version=5, maximum_packet_size=20))
    for packet in await peer.end():
        assert packet.size <= 20
        assert packet.reason >= 0x80


async def test_a_packet_too_large_for_the_server(dial, version, name):
    peer = await dial(version, name)
    maximum = peer.connack.maximum_packet_size or 1 << 20
    peer.send(wire.publish(name, b"x" * maximum, version=version))
    assert await peer.refused() == (PACKET_TOO_LARGE if version == 5 else 0)


async def test_a_packet_of_just_the_servers_maximum(dial, version, name):
    peer = await dial(version, name)
    maximum = peer.connack.maximum_packet_size or 1 << 20
    payload = b"x" * (maximum - len(wire.publish(name, b"", version=version)) - 2)
    assert len(wire.publish(name, payload, version=version)) == maximum
    await peer.subscribe((name, 0))
    peer.send(wire.publish(name, payload, version=version))
    assert (await peer.take()).payload == payload


async def test_the_size_is_judged_before_all_of_it_is_there(dial, version, name):
    peer = await dial(version, name)
    peer.send(b"\x30\xff\xff\xff\x7f")
    assert await peer.refused() == (PACKET_TOO_LARGE if version == 5 else 0)


@pytest.mark.parametrize("wanted", [0, 1])
async def test_problem_information(dial, name, wanted):
    """Without the wish for it, only PUBLISH, CONNACK and DISCONNECT say more than a code."""
    peer = await dial(5, name, request_problem_info=wanted)
    peer.send(
        wire.publish(name, b"\xff", version=5, qos=1, packet_id=1, payload_format=1),
        wire.publish(name, b"\xff", version=5, qos=2, packet_id=2, payload_format=1),
        wire.ack(wire.PUBREL, 9),
        wire.ack(wire.PUBREC, 9),
        wire.subscribe(3, ("a/#/b", 0), version=5),
        wire.unsubscribe(4, "never", version=5),
    )
    for _ in range(6):
        packet = await peer.receive()
        assert packet.reason >= 0x80 or packet.reasons
        assert wanted or not packet.properties


@pytest.mark.parametrize("maximum", range(30, 110, 8))
async def test_answers_that_refuse_keep_to_the_maximum(dial, name, maximum):
    """PUBACK, PUBREC and SUBACK say why only where the client's Maximum Packet Size has room for it."""
    peer = await dial(5, name, maximum_packet_size=maximum)
    peer.send(
        wire.publish(name, b"\xff", version=5, qos=1, packet_id=1, payload_format=1),
        wire.publish(name, b"\xff", version=5, qos=2, packet_id=2, payload_format=1),
        wire.subscribe(3, ("a/#/b", 0), ("b/#/c", 0), version=5),
    )
    for _ in range(3):
        packet = await peer.receive()
        assert packet.reason >= 0x80 or min(packet.reasons) >= 0x80
        assert packet.size <= maximum
        assert packet.properties or maximum < 80


async def test_a_goodbye_carries_no_session_expiry_and_is_the_last_word(dial, name):
    peer = await dial(5, name, keep=True)
    peer.send(wire.publish("#", version=5), b"\xc0\x00", wire.subscribe(1, (name, 0), version=5))
    packets = await peer.end()
    assert [(each.kind, each.reason) for each in packets] == [(DISCONNECT, 0x90)]
    assert set(packets[0].properties) <= {"reason_string"}


async def test_the_reason_arrives_even_if_the_client_talks_on(dial, name):
    for _ in range(20):
        peer = await dial(5, name)
        peer.send(wire.publish("#", version=5), *[wire.publish(name, b"x" * 1000, version=5)] * 200)
        assert await peer.refused() == 0x90


# Enhanced authentication: alone, the broker offers no method


@pytest.mark.parametrize("data", [{}, {"auth_data": b"n,,n=u,r=x"}])
async def test_a_method_that_is_not_offered(dial, name, data):
    peer = await dial(5)
    assert (await peer.connect(name, auth_method="SCRAM-SHA-1", **data)).reason == BAD_METHOD
    assert await peer.end() == []


async def test_without_a_method_the_server_asks_for_none(dial, name):
    connack = (await dial(5, name)).connack
    assert connack.kind == CONNACK
    assert {"auth_method", "auth_data"}.isdisjoint(connack.properties)


@pytest.mark.parametrize(
    "packet",
    [
        frame(AUTH << 4),
        frame(AUTH << 4, b"\x18", wire.encode_properties(5, {"auth_method": "x"})),
        frame(AUTH << 4, b"\x19", wire.encode_properties(5, {"auth_method": "x", "auth_data": b"y"})),
        frame(AUTH << 4, b"\x19", b"\0"),
    ],
)
async def test_auth_without_a_method_in_connect(dial, name, packet):
    peer = await dial(5, name)
    peer.send(packet)
    assert await peer.refused() == PROTOCOL_ERROR


@pytest.mark.parametrize("body", [b"\x55", b"\x18\x02\x11\x00", b"\x18\x08\x15\0\1x\x15\0\1x"])
async def test_malformed_auth(dial, name, body):
    peer = await dial(5, name)
    peer.send(frame(AUTH << 4, body))
    assert await peer.refused() in (0x81, PROTOCOL_ERROR)
