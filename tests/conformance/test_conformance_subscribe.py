"""SUBSCRIBE, UNSUBSCRIBE, subscription options, overlapping and shared subscriptions."""

from __future__ import annotations

import conformance_wire as wire
import pytest
from conformance_wire import PUBACK, PUBLISH, PUBREC, PUBREL, SUBACK, UNSUBACK

from mqtt_bytes import field, frame

MALFORMED, PROTOCOL_ERROR, FILTER_INVALID = 0x81, 0x82, 0x8F
NO_LOCAL = 4


async def test_one_code_for_each_filter_in_order(dial, version, name):
    peer = await dial(version, name)
    filters = [(f"{name}/{number}", qos) for number, qos in enumerate((2, 0, 1, 2))]
    assert await peer.subscribe(*filters) == [2, 0, 1, 2]
    refused = 0x80 if version == 4 else FILTER_INVALID
    assert await peer.subscribe((name, 1), ("a/#/b", 1), (name, 2)) == [1, refused, 2]


@pytest.mark.parametrize("pattern", ["a/#/b", "#/a", "a#", "##", "a+", "+a", "a/b+/c", "a/#b", "$share/g", "$share//a"])
async def test_filters_that_are_none(dial, version, name, pattern):
    peer = await dial(version, name)
    assert await peer.subscribe((pattern, 0)) == [0x80 if version == 4 else FILTER_INVALID]


@pytest.mark.parametrize("pattern", ["#", "+", "/", "+/+", "+/#", "/#", "a//b", "//", "$x/#", "$shared/a", "a b"])
async def test_filters_that_are(dial, version, name, pattern):
    peer = await dial(version, name)
    assert await peer.subscribe((pattern, 1)) == [1]


async def test_an_empty_filter(dial, version, name):
    for packet in (wire.subscribe(1, ("", 0), version=version), wire.unsubscribe(1, "", version=version)):
        peer = await dial(version, name)
        peer.send(packet)
        assert await peer.refused() == (MALFORMED if version == 5 else 0)


async def test_no_filter_at_all(dial, version, name):
    for packet in (wire.subscribe(1, version=version), wire.unsubscribe(1, version=version)):
        peer = await dial(version, name)
        peer.send(packet)
        assert await peer.refused() == (PROTOCOL_ERROR if version == 5 else 0)


async def test_a_filter_without_options(dial, version, name):
    peer = await dial(version, name)
    peer.send(frame(0x82, b"\0\1", b"\0" if version == 5 else b"", field(name)))
    assert await peer.refused() == (MALFORMED if version == 5 else 0)


@pytest.mark.parametrize("options", [3, 4, 8, 0x10, 0x20, 0x40, 0x80])
async def test_reserved_options_of_3_1_1(dial, name, options):
    peer = await dial(4, name)
    peer.send(wire.subscribe(1, (name, options), version=4))
    assert await peer.end() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [(3, PROTOCOL_ERROR), (0x30, PROTOCOL_ERROR), (0x40, MALFORMED), (0x80, MALFORMED), (0xC1, MALFORMED)],
)
async def test_bad_options_of_5_0(dial, name, options, reason):
    peer = await dial(5, name)
    peer.send(wire.subscribe(1, (name, options), version=5))
    assert await peer.refused() == reason


async def test_one_bad_filter_spoils_nothing_else(dial, version, name):
    peer = await dial(version, name)
    await peer.subscribe((f"{name}/#/x", 0), (name, 0))
    peer.send(wire.publish(name, b"here", version=version))
    assert (await peer.take()).payload == b"here"


async def test_subscribing_again_replaces(dial, version, name):
    peer, writer = await dial(version, name), await dial(version, name + "p")
    for granted in (0, 2, 1):
        assert await peer.subscribe((name, granted)) == [granted]
        await writer.publish(name, qos=2)
        assert (await peer.take()).qos == granted
        await peer.silence()
    assert await peer.unsubscribe(name) == ([0] if version == 5 else [])
    await writer.publish(name, qos=1)
    await peer.silence()


async def test_a_replaced_subscription_loses_nothing(dial, version, name):
    peer, writer = await dial(version, name), await dial(version, name + "p")
    await peer.subscribe((name, 1))
    for number in range(20):
        writer.send(wire.publish(name, b"%d" % number, version=version, qos=1, packet_id=number + 1))
    for number in range(5):
        peer.send(wire.subscribe(number + 1, (name, 1), version=version))
    packets = [await peer.receive() for _ in range(25)]
    assert sorted(int(each.payload) for each in packets if each.kind == PUBLISH) == list(range(20))
    assert [each.packet_id for each in packets if each.kind == SUBACK] == [1, 2, 3, 4, 5]


async def test_unsubscribe(dial, version, name):
    peer, writer = await dial(version, name), await dial(version, name + "p")
    await peer.subscribe((f"{name}/a", 0), (f"{name}/b", 0), (f"{name}/+", 0))
    reasons = await peer.unsubscribe(f"{name}/a", f"{name}/#", f"{name}/+", f"{name}/A")
    assert reasons == ([0, 0x11, 0, 0x11] if version == 5 else [])
    for topic in ("a", "b", "c"):
        await writer.publish(f"{name}/{topic}", qos=1)
    assert (await peer.take()).topic == f"{name}/b"
    await peer.silence()


@pytest.mark.parametrize("pattern", ["a/#/b", "a+", "$share/g", "+a/#"])
async def test_unsubscribing_from_what_is_no_filter(dial, version, name, pattern):
    peer = await dial(version, name)
    reasons = await peer.unsubscribe(pattern)
    assert reasons == [] if version == 4 else reasons in ([0x11], [FILTER_INVALID])


async def test_what_is_on_its_way_is_finished_after_unsubscribe(dial, version, name):
    peer, writer = await dial(version, name), await dial(version, name + "p")
    await peer.subscribe((name, 2))
    await writer.publish(name, b"1", qos=1)
    await writer.publish(name, b"2", qos=2)
    first, second = await peer.expect(PUBLISH), await peer.expect(PUBLISH)
    await peer.unsubscribe(name)
    await writer.publish(name, b"3", qos=2)
    peer.send(wire.ack(PUBACK, first.packet_id), wire.ack(PUBREC, second.packet_id))
    assert (await peer.expect(PUBREL)).packet_id == second.packet_id
    peer.send(wire.ack(wire.PUBCOMP, second.packet_id))
    await peer.silence()


async def test_overlapping_subscriptions_take_the_highest_qos(dial, version, name):
    peer, writer = await dial(version, name), await dial(version, name + "p")
    await peer.subscribe((f"{name}/#", 2), (f"{name}/+", 1), (f"{name}/a", 0))
    await writer.publish(f"{name}/a", b"x", qos=2)
    message = await peer.take()
    assert (message.payload, message.qos) == (b"x", 2)
    await peer.silence()


async def test_a_refused_publish_is_answered_all_the_same(dial, name):
    peer = await dial(4, name)
    for qos in (1, 2):
        await peer.publish("$SYS/mine", qos=qos)


# 5.0


async def test_subscription_identifiers(dial, name):
    peer, writer = await dial(5, name), await dial(5, name + "p")
    await peer.subscribe((f"{name}/#", 0), subscription_id=1)
    await peer.subscribe((f"{name}/+", 1), (f"{name}/b", 1), subscription_id=268_435_455)
    await peer.subscribe((f"{name}/a", 0))
    await writer.publish(f"{name}/a", qos=1)
    assert sorted((await peer.take()).subscription_id) == [1, 268_435_455]
    await writer.publish(f"{name}/a/a", qos=0)
    assert (await peer.take()).subscription_id == [1]
    await peer.subscribe((f"{name}/#", 0))
    await writer.publish(f"{name}/a/a")
    assert (await peer.take()).subscription_id is None


async def test_identifiers_outlive_a_connection(dial, name):
    peer, writer = await dial(5, name, keep=True), await dial(5, name + "p")
    await peer.subscribe((name, 1), subscription_id=200)
    await peer.leave()
    await writer.publish(name, qos=1)
    again = await dial(5, name, keep=True)
    assert (await again.take()).subscription_id == [200]


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_no_local(dial, name, qos):
    peer, writer = await dial(5, name), await dial(5, name + "p")
    await peer.subscribe((name, NO_LOCAL | 2))
    await peer.publish(name, b"mine", qos=qos)
    await writer.publish(name, b"another's", qos=qos)
    assert (await peer.take()).payload == b"another's"
    await peer.subscribe((name, 2))
    peer.send(wire.publish(name, b"mine", version=5))
    assert (await peer.take()).payload == b"mine"


async def test_no_local_beside_a_subscription_without(dial, name):
    peer = await dial(5, name)
    await peer.subscribe((name, NO_LOCAL | 1), (f"{name}/#", 0))
    peer.send(wire.publish(name, version=5, qos=1, packet_id=1))
    assert {(await peer.receive()).kind for _ in range(2)} == {PUBLISH, PUBACK}


async def test_nobody_subscribed(dial, name):
    peer = await dial(5, name)
    assert [await peer.publish(name, qos=qos) for qos in (1, 2)] == [0x10, 0x10]
    await peer.subscribe((name + "x", 0))
    assert await peer.publish(name, qos=1) == 0x10
    other = await dial(5, name + "o")
    await other.subscribe((name, 0))
    assert [await peer.publish(name, qos=qos) for qos in (1, 2)] == [0, 0]


# Shared subscriptions


async def test_a_message_goes_to_one_of_the_members(dial, version, name):
    members = [await dial(version, f"{name}{number}") for number in range(3)]
    writer, plain = await dial(version, name + "p"), await dial(version, name + "q")
    for member in members:
        assert await member.subscribe((f"$share/{name}/{name}/+", 1)) == [1]
    await plain.subscribe((f"{name}/a", 1))
    for number in range(9):
        await writer.publish(f"{name}/a", b"%d" % number, qos=1)
    received = []
    for member in members:
        member.send(b"\xc0\x00")
        packet = await member.expect(PUBLISH)
        while packet.kind == PUBLISH:
            received.append(int(packet.payload))
            packet = await member.receive()
    assert sorted(received) == list(range(9))
    assert [int((await plain.take()).payload) for _ in range(9)] == list(range(9))


async def test_groups_are_apart(dial, version, name):
    one, two, writer = await dial(version, name + "1"), await dial(version, name + "2"), await dial(version, name)
    await one.subscribe((f"$share/a{name}/{name}", 0))
    await two.subscribe((f"$share/b{name}/{name}", 0), (f"$share/a{name}/{name}/x", 0))
    await writer.publish(name, b"both", qos=1)
    assert (await one.take()).payload == (await two.take()).payload == b"both"


async def test_members_may_have_different_qos(dial, version, name):
    low, high, writer = await dial(version, name + "1"), await dial(version, name + "2"), await dial(version, name)
    await low.subscribe((f"$share/{name}/{name}", 0))
    await high.subscribe((f"$share/{name}/{name}", 1))
    for _ in range(4):
        await writer.publish(name, qos=2)
    for member, qos in ((low, 0), (high, 1)):
        assert [(await member.take()).qos for _ in range(2)] == [qos, qos]
        await member.silence()


async def test_leaving_a_group(dial, version, name):
    one, two, writer = await dial(version, name + "1"), await dial(version, name + "2"), await dial(version, name)
    for member in (one, two):
        await member.subscribe((f"$share/{name}/{name}", 1))
    assert await one.unsubscribe(f"$share/{name}/{name}") == ([0] if version == 5 else [])
    for _ in range(3):
        await writer.publish(name, qos=1)
        await two.take()
    await one.silence()


async def test_a_group_prefers_who_is_there(dial, version, name):
    away, here, writer = await dial(version, name + "1", keep=True), await dial(version, name), await dial(version, "")
    for member in (away, here):
        await member.subscribe((f"$share/{name}/{name}", 1))
    await away.leave()
    for number in range(4):
        await writer.publish(name, b"%d" % number, qos=1)
    assert [int((await here.take()).payload) for _ in range(4)] == [0, 1, 2, 3]


async def test_qos_2_is_finished_with_the_member_that_it_was_begun_with(dial, version, name):
    one, two, writer = await dial(version, name + "1", keep=True), await dial(version, name), await dial(version, "")
    await one.subscribe((f"$share/{name}/{name}", 2))
    await writer.publish(name, b"x", qos=2)
    begun = await one.expect(PUBLISH)
    await two.subscribe((f"$share/{name}/{name}", 2))
    await one.leave()
    await two.silence()
    again = await dial(version, name + "1", keep=True)
    message = await again.take()
    assert (message.packet_id, message.payload, message.dup) == (begun.packet_id, b"x", True)
    await two.silence()


@pytest.mark.parametrize("kind", [PUBACK, PUBREC])
async def test_a_message_that_a_member_refuses_goes_to_nobody_else(dial, name, kind):
    one, two, writer = await dial(5, name + "1", keep=True), await dial(5, name), await dial(5, "")
    qos = 1 if kind == PUBACK else 2
    await one.subscribe((f"$share/{name}/{name}", qos))
    await writer.publish(name, b"x", qos=qos)
    message = await one.expect(PUBLISH)
    await two.subscribe((f"$share/{name}/{name}", qos))
    one.send(wire.ack(kind, message.packet_id, 0x97))
    await one.silence()
    await two.silence()
    await one.leave()
    await (await dial(5, name + "1", keep=True)).silence()
    await two.silence()


async def test_the_session_of_a_member_ends_with_its_messages(dial, name):
    one, two, writer = await dial(5, name + "1", keep=True), await dial(5, name), await dial(5, "")
    await one.subscribe((f"$share/{name}/{name}", 2))
    await writer.publish(name, b"x", qos=2)
    await one.expect(PUBLISH)
    await two.subscribe((f"$share/{name}/{name}", 2))
    await one.leave(0, session_expiry=0)
    await two.silence()


async def test_no_local_does_not_go_with_sharing(dial, name):
    peer = await dial(5, name)
    peer.send(wire.subscribe(1, (f"$share/{name}/{name}", NO_LOCAL), version=5))
    assert await peer.refused() == PROTOCOL_ERROR


@pytest.mark.parametrize("pattern", ["$share/g+/a", "$share/g#/a", "$share/+/a", "$share/g/", "$share", "$share/g/a#"])
async def test_share_names(dial, name, pattern):
    peer = await dial(5, name)
    assert await peer.subscribe((pattern, 0)) == [FILTER_INVALID]
    assert (await peer.unsubscribe(pattern)) in ([0x11], [FILTER_INVALID])
    peer.send(wire.unsubscribe(9, f"$share/{name}/never", version=5))
    assert (await peer.expect(UNSUBACK)).reasons == [0x11]
