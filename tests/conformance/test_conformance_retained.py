"""Retained messages, and the subscription options that are about them."""

from __future__ import annotations

import asyncio

import conformance_wire as wire
import pytest

NO_LOCAL, AS_PUBLISHED, IF_NEW, NEVER = 4, 8, 16, 32


@pytest.fixture
async def keep(dial, version):
    """Publishes retained messages, and takes them away again afterwards."""
    peer, topics = await dial(version, ""), set()

    async def _keep(topic: str, payload: bytes = b"kept", *, qos: int = 1, **options) -> None:
        topics.add(topic)
        await peer.publish(topic, payload, qos=qos, retain=True, **options)

    yield _keep
    for topic in topics:
        await peer.publish(topic, qos=1, retain=True)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_new_subscriber_gets_it_with_the_flag(dial, version, name, keep, qos):
    await keep(name, b"first", qos=2)
    await keep(name, b"last", qos=qos)
    for granted in (0, 1, 2):
        late = await dial(version, f"{name}{granted}")
        await late.subscribe((name, granted))
        message = await late.take()
        assert (message.payload, message.qos, message.retain) == (b"last", min(qos, granted), True)
        await late.silence()


async def test_who_subscribed_before_gets_it_without_the_flag(dial, version, name, keep):
    watcher = await dial(version, name)
    await watcher.subscribe((name, 1))
    for qos in (0, 1, 2):
        await keep(name, qos=qos)
        assert not (await watcher.take()).retain


async def test_an_empty_payload_takes_it_away(dial, version, name, keep):
    watcher = await dial(version, name)
    await watcher.subscribe((name, 1))
    for qos in (0, 1, 2):
        await keep(name, b"there", qos=1)
        await keep(name, b"", qos=qos)
        assert [(await watcher.take()).payload for _ in range(2)] == [b"there", b""]
        late = await dial(version, f"{name}{qos}")
        await late.subscribe((name, 0))
        await late.silence()


async def test_without_the_flag_nothing_is_kept_or_replaced(dial, version, name, keep):
    peer, late = await dial(version, name), await dial(version, name + "l")
    await peer.publish(name, b"passing", qos=1)
    await late.subscribe((name, 0))
    await late.silence()
    await keep(name, b"kept")
    assert (await late.take()).payload == b"kept"
    await peer.publish(name, b"passing", qos=1)
    await peer.publish(name, b"", qos=1)
    assert [(await late.take()).payload for _ in range(2)] == [b"passing", b""]
    later = await dial(version, name + "m")
    await later.subscribe((name, 0))
    assert (await later.take()).payload == b"kept"


async def test_it_outlives_the_session_of_who_published_it(dial, version, name, keep):
    peer = await dial(version, name)
    await peer.publish(name, b"left", qos=1, retain=True)
    await peer.leave()
    late = await dial(version, name)
    await late.subscribe((name, 0))
    assert (await late.take()).payload == b"left"
    await keep(name, b"")


async def test_subscribing_again_brings_it_again(dial, version, name, keep):
    await keep(name)
    peer = await dial(version, name)
    for qos in (0, 2, 2):
        await peer.subscribe((name, qos))
        assert (await peer.take()).qos == min(qos, 1)
    await peer.silence()


async def test_wildcards_bring_all_that_match(dial, version, name, keep):
    for topic in ("a", "a/b", "a/b/c", "b"):
        await keep(f"{name}/{topic}")
    for pattern, expected in (
        ("#", {"a", "a/b", "a/b/c", "b"}),
        ("a/#", {"a", "a/b", "a/b/c"}),
        ("+", {"a", "b"}),
        ("+/b", {"a/b"}),
    ):
        peer = await dial(version, name)
        await peer.subscribe((f"{name}/{pattern}", 1))
        received = {(await peer.take()).topic for _ in expected}
        assert received == {f"{name}/{topic}" for topic in expected}
        await peer.silence()


async def test_retain_handling(dial, name):
    writer, peer = await dial(5, name + "p"), await dial(5, name)
    await writer.publish(name, b"kept", qos=1, retain=True)
    for options, comes in ((NEVER, False), (IF_NEW, False), (0, True), (0, True), (IF_NEW | 1, False)):
        await peer.subscribe((name, options))
        if comes:
            assert (await peer.take()).retain
        await peer.silence()
    await peer.unsubscribe(name)
    await peer.subscribe((name, IF_NEW | 1))
    assert (await peer.take()).payload == b"kept"
    await writer.publish(name, qos=1, retain=True)


async def test_retain_as_published(dial, name):
    plain, exact, writer = await dial(5, name + "a"), await dial(5, name + "b"), await dial(5, name)
    await plain.subscribe((name, 1))
    await exact.subscribe((name, AS_PUBLISHED | 1))
    for qos in (0, 1):
        for retain in (True, False):
            await writer.publish(name, b"x", qos=qos, retain=retain)
            assert (await plain.take()).retain is False
            assert (await exact.take()).retain is retain
    await writer.publish(name, qos=1, retain=True)


async def test_what_is_kept_carries_the_subscription_identifier(dial, name):
    writer, peer = await dial(5, name + "p"), await dial(5, name)
    await writer.publish(name, b"kept", qos=1, retain=True)
    await peer.subscribe((f"{name}/#", 1), subscription_id=268_435_455)
    assert (await peer.take()).subscription_id == [268_435_455]
    await writer.publish(name, qos=1, retain=True)


async def test_no_local_holds_for_what_is_kept(dial, name):
    peer, other = await dial(5, name), await dial(5, name + "o", will=wire.Will(name + "/will", b"w", 1, True))
    await peer.publish(name, b"own", qos=1, retain=True)
    await peer.publish(name + "/other", b"own", qos=1, retain=True)
    await other.publish(name + "/other", b"another's", qos=1, retain=True)
    await peer.subscribe((name, NO_LOCAL | 1), (f"{name}/other", NO_LOCAL | 1))
    assert (await peer.take()).payload == b"another's"
    await peer.silence()
    await other.subscribe((name, NO_LOCAL | 1))
    assert (await other.take()).payload == b"own"
    other.vanish()
    again = await dial(5, name + "o")
    await again.subscribe((name + "/will", NO_LOCAL | 1))
    await again.silence()
    await again.subscribe((name + "/will", 1))
    assert (await again.take()).payload == b"w"
    for topic in (name, f"{name}/other", f"{name}/will"):
        await peer.publish(topic, qos=1, retain=True)


async def test_a_shared_subscription_brings_none(dial, name):
    writer, peer = await dial(5, name + "p"), await dial(5, name)
    await writer.publish(name, b"kept", qos=1, retain=True)
    await peer.subscribe((f"$share/{name}/{name}", 1))
    await peer.silence()
    await writer.publish(name, qos=1, retain=True)


async def test_what_is_kept_expires(dial, name):
    writer = await dial(5, name)
    await writer.publish(f"{name}/short", b"x", qos=1, retain=True, message_expiry=1)
    await writer.publish(f"{name}/long", b"x", qos=1, retain=True, message_expiry=100)
    await asyncio.sleep(1.2)  # the clock is what this is about
    late = await dial(5, name + "l")
    await late.subscribe((f"{name}/#", 0))
    message = await late.take()
    assert message.topic == f"{name}/long"
    assert 97 <= message.message_expiry <= 99
    await late.silence()
    await writer.publish(f"{name}/long", qos=1, retain=True)


async def test_retained_messages_keep_to_the_receive_maximum(dial, name):
    writer = await dial(5, name + "p")
    for number in range(5):
        await writer.publish(f"{name}/{number}", b"x", qos=1, retain=True)
    peer = await dial(5, name, receive_maximum=2)
    await peer.subscribe((f"{name}/#", 1))
    first = [await peer.expect(wire.PUBLISH) for _ in range(2)]
    await peer.silence()
    for each in first:
        peer.send(wire.ack(wire.PUBACK, each.packet_id))
    rest = [await peer.take() for _ in range(3)]
    assert {each.topic for each in first + rest} == {f"{name}/{number}" for number in range(5)}
    for number in range(5):
        await writer.publish(f"{name}/{number}", qos=1, retain=True)
