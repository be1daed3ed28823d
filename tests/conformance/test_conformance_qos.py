"""The QoS 1 and QoS 2 exchanges, their repetition, their order, and how many may run at a time."""

from __future__ import annotations

import socket
from typing import BinaryIO

import conformance_wire as wire
import pytest
from conformance_wire import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL

PROTOCOL_ERROR, NOT_FOUND, RECEIVE_MAXIMUM_EXCEEDED = 0x82, 0x92, 0x93


async def queued(dial, version: int, name: str, count: int, *, qos: int = 1, **options):
    """A client that comes back to ``count`` messages."""
    away, writer = await dial(version, name, keep=True), await dial(version, name + "w")
    await away.subscribe((name, 2))
    await away.leave()
    for number in range(count):
        await writer.publish(name, b"%d" % number, qos=qos)
    return await dial(version, name, keep=True, **options)


# From a client


async def test_qos_1_again_after_its_puback_is_another_message(dial, version, name):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((name, 1))
    for dup in (False, True):
        peer.send(wire.publish(name, b"x", version=version, qos=1, packet_id=5, dup=dup))
        assert (await peer.expect(PUBACK)).packet_id == 5
        await watcher.take()


async def test_qos_2_arrives_once_however_often_it_is_sent(dial, version, name):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((name, 2))
    for dup in (False, True, True):
        peer.send(wire.publish(name, b"once", version=version, qos=2, packet_id=5, dup=dup))
        assert (await peer.expect(PUBREC)).packet_id == 5
    for _ in range(2):
        peer.send(wire.ack(PUBREL, 5))
        assert (await peer.expect(PUBCOMP)).packet_id == 5
    await watcher.take()
    await watcher.silence()
    peer.send(wire.publish(name, b"again", version=version, qos=2, packet_id=5))
    await peer.expect(PUBREC)
    assert (await watcher.take()).payload == b"again"


async def test_qos_2_arrives_once_over_a_lost_connection(dial, version, name):
    watcher, peer = await dial(version, name), await dial(version, name + "p", keep=True)
    await watcher.subscribe((name, 2))
    peer.send(wire.publish(name, b"once", version=version, qos=2, packet_id=5))
    await peer.expect(PUBREC)
    peer.vanish()
    again = await dial(version, name + "p", keep=True)
    again.send(wire.publish(name, b"once", version=version, qos=2, packet_id=5, dup=True))
    assert (await again.expect(PUBREC)).reason == 0
    again.send(wire.ack(PUBREL, 5))
    assert (await again.expect(PUBCOMP)).reason == 0
    await watcher.take()
    await watcher.silence()


async def test_pubrel_of_nothing_is_answered(dial, version, name):
    peer = await dial(version, name)
    peer.send(wire.ack(PUBREL, 77))
    answer = await peer.expect(PUBCOMP)
    assert (answer.packet_id, answer.reason) == (77, NOT_FOUND if version == 5 else 0)


async def test_a_refusing_pubrec_ends_the_exchange(dial, name):
    peer = await dial(5, name)
    for _ in range(2):
        peer.send(wire.publish(name, b"\xff", version=5, qos=2, packet_id=5, payload_format=1))
        assert (await peer.expect(PUBREC)).reason == 0x99
    peer.send(wire.publish(name, b"text", version=5, qos=2, packet_id=5, payload_format=1))
    assert (await peer.expect(PUBREC)).reason < 0x80


async def test_answers_come_in_the_order_of_the_messages(dial, version, name):
    peer = await dial(version, name)
    identifiers = [9, 3, 65_535, 1, 4]
    peer.send(*(wire.publish(name, version=version, qos=1, packet_id=each) for each in identifiers))
    assert [(await peer.expect(PUBACK)).packet_id for _ in identifiers] == identifiers
    peer.send(*(wire.publish(name, version=version, qos=2, packet_id=each) for each in identifiers))
    assert [(await peer.expect(PUBREC)).packet_id for _ in identifiers] == identifiers
    peer.send(*(wire.ack(PUBREL, each) for each in identifiers))
    assert [(await peer.expect(PUBCOMP)).packet_id for _ in identifiers] == identifiers


async def test_qos_2_is_finished_although_it_has_expired(dial, name):
    peer = await dial(5, name)
    peer.send(wire.publish(name, version=5, qos=2, packet_id=5, message_expiry=0))
    await peer.expect(PUBREC)
    peer.send(wire.ack(PUBREL, 5))
    assert (await peer.expect(PUBCOMP)).reason == 0


async def test_a_client_over_the_receive_maximum_is_told_so(dial, name):
    peer = await dial(5, name)
    maximum = peer.connack.receive_maximum or 65_535
    assert maximum < 65_535, "a client has no identifier left to break the rule with"
    peer.send(*(wire.publish(name, version=5, qos=2, packet_id=each) for each in range(1, maximum + 2)))
    await peer.expect(PUBREC)
    peer.send(wire.ack(PUBREL, 2))  # one that doesn't look before it goes on
    packets = await peer.end()
    assert {each.kind for each in packets[:-1]} <= {PUBREC}
    assert (packets[-1].kind, packets[-1].reason) == (wire.DISCONNECT, RECEIVE_MAXIMUM_EXCEEDED)


def test_the_goodbye_reaches_a_client_that_reads_one_packet_and_writes_another(port, name):
    """Without the broker's patience its closed socket would fail the writes."""
    with socket.create_connection(("127.0.0.1", port), timeout=6) as sock, sock.makefile("rb") as stream:
        sock.sendall(wire.connect(name, version=5))
        connack = read_from(stream)
        for identifier in range(1, connack.receive_maximum + 2):
            sock.sendall(wire.publish(name, version=5, qos=2, packet_id=identifier))
        while (packet := read_from(stream)).kind == PUBREC:
            sock.sendall(wire.ack(PUBREL, packet.packet_id))
        assert (packet.kind, packet.reason) == (wire.DISCONNECT, RECEIVE_MAXIMUM_EXCEEDED)
        assert stream.read() == b""


def read_from(stream: BinaryIO) -> wire.Packet:
    """The next packet, which is shorter than 128 bytes."""
    first, length = stream.read(2)
    return wire.decode(first, stream.read(length), version=5, size=2 + length)


async def test_a_client_at_the_receive_maximum_goes_on(dial, name):
    peer = await dial(5, name)
    maximum = peer.connack.receive_maximum
    peer.send(*(wire.publish(name, version=5, qos=2, packet_id=each) for each in range(1, maximum + 1)))
    for _ in range(maximum):
        await peer.expect(PUBREC)
    await peer.silence()
    peer.send(wire.ack(PUBREL, 7))
    await peer.expect(PUBCOMP)
    peer.send(wire.publish(name, version=5, qos=2, packet_id=7))
    assert (await peer.expect(PUBREC)).packet_id == 7


async def test_3_1_1_knows_no_receive_maximum(dial, name):
    peer = await dial(4, name)
    count = 3000
    peer.send(*(wire.publish(name, version=4, qos=2, packet_id=each) for each in range(1, count + 1)))
    for _ in range(count):
        await peer.expect(PUBREC)
    await peer.silence()


# To a client


@pytest.mark.parametrize("qos", [1, 2])
async def test_what_is_not_acknowledged_comes_again(dial, version, name, qos):
    peer = await queued(dial, version, name, 3, qos=qos)
    first = [await peer.expect(PUBLISH) for _ in range(3)]
    assert [each.dup for each in first] == [False] * 3
    await peer.silence()  # and not before a reconnect
    peer.vanish()
    again = await dial(version, name, keep=True)
    second = [await again.expect(PUBLISH) for _ in range(3)]
    assert [(each.packet_id, each.payload, each.dup) for each in second] == [
        (each.packet_id, each.payload, True) for each in first
    ]


async def test_pubrel_comes_again_and_the_message_does_not(dial, version, name):
    peer = await queued(dial, version, name, 2, qos=2)
    first, second = await peer.expect(PUBLISH), await peer.expect(PUBLISH)
    peer.send(wire.ack(PUBREC, first.packet_id))
    await peer.expect(PUBREL)
    peer.vanish()
    again = await dial(version, name, keep=True)
    packets = [await again.receive(), await again.receive()]
    assert {(each.kind, each.packet_id) for each in packets} == {
        (PUBREL, first.packet_id),
        (PUBLISH, second.packet_id),
    }
    again.send(wire.ack(PUBCOMP, first.packet_id), wire.ack(PUBREC, second.packet_id))
    assert (await again.expect(PUBREL)).packet_id == second.packet_id
    again.send(wire.ack(PUBCOMP, second.packet_id))
    await again.leave()
    await (await dial(version, name, keep=True)).silence()


async def test_what_is_acknowledged_does_not_come_again(dial, version, name):
    peer = await queued(dial, version, name, 4, qos=2)
    for _ in range(4):
        message = await peer.expect(PUBLISH)
        peer.send(wire.ack(PUBREC, message.packet_id), wire.ack(PUBCOMP, message.packet_id))
    for _ in range(4):
        await peer.expect(PUBREL)
    await peer.leave()
    await (await dial(version, name, keep=True)).silence()


@pytest.mark.parametrize("kind", [PUBACK, PUBREC])
async def test_a_refusal_is_an_acknowledgement(dial, name, kind):
    peer = await queued(dial, 5, name, 1, qos=1 if kind == PUBACK else 2, receive_maximum=1)
    message = await peer.expect(PUBLISH)
    peer.send(wire.ack(kind, message.packet_id, 0x80))
    await peer.silence()
    await peer.leave()
    await (await dial(5, name, keep=True)).silence()


async def test_pubrec_is_answered_by_pubrel(dial, version, name):
    peer = await dial(version, name)
    peer.send(wire.ack(PUBREC, 77))
    answer = await peer.expect(PUBREL)
    assert (answer.packet_id, answer.reason) == (77, NOT_FOUND if version == 5 else 0)
    peer = await queued(dial, version, name + "q", 1, qos=2)
    message = await peer.expect(PUBLISH)
    for _ in range(2):
        peer.send(wire.ack(PUBREC, message.packet_id))
        answer = await peer.expect(PUBREL)
        assert (answer.packet_id, answer.reason) == (message.packet_id, 0)


async def test_pubrels_come_in_the_order_of_the_pubrecs(dial, version, name):
    peer = await queued(dial, version, name, 5, qos=2)
    identifiers = [(await peer.expect(PUBLISH)).packet_id for _ in range(5)]
    order = [identifiers[each] for each in (3, 0, 4, 1, 2)]
    peer.send(*(wire.ack(PUBREC, each) for each in order))
    assert [(await peer.expect(PUBREL)).packet_id for _ in order] == order


@pytest.mark.parametrize("kind", [PUBACK, PUBCOMP])
async def test_acknowledgements_of_nothing_change_nothing(dial, version, name, kind):
    peer = await dial(version, name)
    peer.send(wire.ack(kind, 77))
    await peer.silence()
    await peer.subscribe((name, 1))
    peer.send(wire.publish(name, version=version))
    await peer.take()


@pytest.mark.parametrize(
    ("qos", "kinds"),
    [
        pytest.param(1, [PUBREC], id="PUBREC for QoS 1"),
        pytest.param(1, [PUBCOMP], id="PUBCOMP for QoS 1"),
        pytest.param(2, [PUBACK], id="PUBACK for QoS 2"),
        pytest.param(2, [PUBCOMP], id="PUBCOMP before PUBREC"),
        pytest.param(2, [PUBREC, PUBACK], id="PUBACK after PUBREC"),
    ],
)
async def test_acknowledgements_of_another_exchange(dial, version, name, qos, kinds):
    peer = await queued(dial, version, name, 1, qos=qos)
    message = await peer.expect(PUBLISH)
    for kind in kinds[:-1]:
        peer.send(wire.ack(kind, message.packet_id))
        await peer.expect(PUBREL)
    peer.send(wire.ack(kinds[-1], message.packet_id))
    assert [each.reason for each in await peer.end()] == ([PROTOCOL_ERROR] if version == 5 else [])
    again = await dial(version, name, keep=True)
    still_due = await again.receive()
    assert (still_due.kind, still_due.packet_id) == (PUBREL if len(kinds) == 2 else PUBLISH, message.packet_id)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_messages_of_one_topic_keep_their_order(dial, version, name, qos):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((f"{name}/+", 2))
    packets = [
        wire.publish(f"{name}/{number % 3}", b"%d" % number, version=version, qos=qos, packet_id=number + 1)
        for number in range(90)
    ]
    peer.send(*packets)
    assert [int((await watcher.expect(PUBLISH)).payload) for _ in range(90)] == list(range(90))


async def test_queued_messages_keep_their_order_behind_those_sent_before(dial, version, name):
    peer = await queued(dial, version, name, 4)
    first = [await peer.expect(PUBLISH) for _ in range(4)]
    peer.send(wire.ack(PUBACK, first[1].packet_id))
    await peer.leave()
    writer = await dial(version, name + "x")
    for number in (4, 5):
        await writer.publish(name, b"%d" % number, qos=1)
    again = await dial(version, name, keep=True)
    assert [int((await again.take()).payload) for _ in range(5)] == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("maximum", [1, 3])
async def test_no_more_at_a_time_than_the_client_takes(dial, name, qos, maximum):
    peer = await queued(dial, 5, name, 8, qos=qos, receive_maximum=maximum)
    flying = [await peer.expect(PUBLISH) for _ in range(maximum)]
    for number in range(maximum, 8):
        await peer.silence()
        oldest = flying.pop(0)
        if qos == 2:
            peer.send(wire.ack(PUBREC, oldest.packet_id))
            assert (await peer.expect(PUBREL)).packet_id == oldest.packet_id
            await peer.silence()
        peer.send(wire.ack(PUBCOMP if qos == 2 else PUBACK, oldest.packet_id))
        flying.append(await peer.expect(PUBLISH))
        assert int(flying[-1].payload) == number


async def test_all_else_goes_on_when_no_more_may_be_sent(dial, name):
    peer = await queued(dial, 5, name, 2, receive_maximum=1)
    await peer.expect(PUBLISH)
    await peer.subscribe((f"{name}/0", 0))
    await peer.unsubscribe(f"{name}/1")
    assert [await peer.publish(f"{name}/2", qos=qos) for qos in (1, 2)] == [0x10, 0x10]
    peer.send(wire.publish(f"{name}/0", b"at once", version=5))
    assert (await peer.take()).payload == b"at once"
    await peer.silence()


async def test_a_refusing_pubrec_makes_room(dial, name):
    peer = await queued(dial, 5, name, 2, qos=2, receive_maximum=1)
    first = await peer.expect(PUBLISH)
    peer.send(wire.ack(PUBREC, first.packet_id, 0x97))
    assert (await peer.expect(PUBLISH)).payload == b"1"


async def test_redelivery_keeps_to_the_new_receive_maximum(dial, name):
    peer = await queued(dial, 5, name, 3)
    for _ in range(3):
        await peer.expect(PUBLISH)
    peer.vanish()
    again = await dial(5, name, keep=True, receive_maximum=1)
    for number in range(3):
        message = await again.expect(PUBLISH)
        assert (message.payload, message.dup) == (b"%d" % number, True)
        await again.silence()
        again.send(wire.ack(PUBACK, message.packet_id))
