"""Slow consumers, fast publishers and too many of either: bounded, counted, and nobody else's trouble."""

from __future__ import annotations

import asyncio

import mqtt5
import pytest
from own_broker import RecordingHooks

from raw_client import publish_4, until
from terrazzo_broker import Accept
from terrazzo_broker.admission import publish_pace
from terrazzo_broker.admission.publish_pace import PublishPace


async def flood(publisher, packet: bytes, enough) -> None:
    """Publishes until ``enough()``."""
    async with asyncio.timeout(20):
        while not enough():
            publisher.send(packet * 20)
            await publisher.writer.drain()
            await asyncio.sleep(0)  # the broker is in this loop, and drain() alone gives it no turn


async def test_a_slow_consumer_loses_qos_0_and_slows_nobody(start, dial):
    running = await start(queued_bytes=200_000)
    slow, quick, publisher = [await dial(name, port=running.port) for name in ("slow", "quick", "p")]
    await slow.subscribe(("t", 0))
    await quick.subscribe(("other", 0))
    slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
    dropped = running.broker.stats.dropped
    await flood(publisher, publish_5("t", b"x" * 10_000), lambda: dropped.get("slow consumer", 0) > 50)
    connection = running.broker.sessions["slow"].connection
    assert connection.out_bytes <= 200_000
    publisher.publish("other", b"here")
    assert (await quick.receive()).payload == b"here"
    slow.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert (await slow.receive()).payload == b"x" * 10_000


async def test_a_slow_consumer_keeps_qos_1_within_its_bound(start, dial):
    running = await start(queued_bytes=200_000, inflight_to_client=10)
    slow, publisher = await dial("slow", port=running.port), await dial("p", port=running.port)
    await slow.subscribe(("t", 1))
    reasons = []
    for number in range(40):
        publisher.publish("t", b"%02d" % number + b"x" * 10_000, qos=1, packet_id=number + 1)
        reasons.append(int((await publisher.receive()).reason_code))
    taken = reasons.count(0)
    assert reasons == [0] * taken + [0x97] * (40 - taken)
    assert 20 < taken < 40
    assert running.broker.sessions["slow"].queued_bytes <= 200_000
    for number in range(taken):
        message = await slow.receive()
        assert message.payload[:2] == b"%02d" % number
        slow.send(mqtt5.PubAckPacket(message.packet_id))
    await slow.silence()


def publish_5(topic: str, payload: bytes) -> bytes:
    """A QoS 0 PUBLISH."""
    return mqtt5.PublishPacket(topic, payload).write()


async def test_more_clients_than_allowed_are_refused(start, dial):
    running = await start(connections=2)
    for number in range(2):
        assert int((await dial(str(number), port=running.port)).connack.reason_code) == 0
    refused = await dial("more", port=running.port)
    assert int(refused.connack.reason_code) in (0x89, 0x97)
    old = await dial("old", port=running.port, version=4)
    assert old.connack == (0x20, b"\0\3")
    assert running.broker.stats.connects_refused == 2


async def test_connects_go_at_their_pace(start, dial):
    running, loop = await start(connects_per_second=20), asyncio.get_running_loop()
    started_s = loop.time()
    codes = [int((await dial(str(number), port=running.port)).connack.reason_code) for number in range(10)]
    assert codes == [0] * 10
    assert loop.time() - started_s > 0.4


async def test_a_fast_publisher_is_read_more_slowly(start, dial):
    running = await start(publish_per_second=50)
    client = await dial("c", port=running.port, version=4)
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    for start_id in (1, 51, 101):
        client.send(
            b"".join(publish_4("t", b"x", qos=1, packet_id=number) for number in range(start_id, start_id + 50))
        )
        for number in range(start_id, start_id + 50):
            assert await client.receive() == (0x40, number.to_bytes(2, "big"))
    assert loop.time() - started_s > 0.9
    assert running.broker.stats.rate_limited >= 1


async def test_a_few_publishes_after_the_login_are_within_the_rate(start, dial):
    running = await start(publish_per_second=50)
    client = await dial("c", port=running.port, version=4)
    for number in range(1, 4):
        client.send(publish_4("t", b"x", qos=1, packet_id=number))
        assert await client.receive() == (0x40, number.to_bytes(2, "big"))
    assert running.broker.stats.rate_limited == 0


async def test_the_clients_of_an_owner_have_a_rate_together(start, dial):
    async def by_name(request):
        return Accept("someone", owner=request.client_id[0])

    running = await start(RecordingHooks(by_name), owner_publish_per_second=50)
    loop, owned = asyncio.get_running_loop(), [await dial(name, port=running.port, version=4) for name in ("a1", "a2")]
    other, started_s = await dial("b1", port=running.port, version=4), loop.time()

    async def publish(client, count: int) -> float:
        for number in range(1, count + 1):
            client.send(publish_4("t", b"x", qos=1, packet_id=number))
            assert await client.receive() == (0x40, number.to_bytes(2, "big"))
        return loop.time() - started_s

    *slow_s, quick_s = await asyncio.gather(publish(owned[0], 60), publish(owned[1], 60), publish(other, 40))
    assert max(slow_s) > 1.2, "120 of them, 50 at once"
    assert quick_s < min(slow_s)
    assert running.broker.stats.rate_limited > 1


def test_owners_who_rest_are_forgotten(monkeypatch):
    monkeypatch.setattr(publish_pace, "_MOST_BUCKETS", 100)
    pace = PublishPace(0, 10)
    assert pace.take("busy", 1_000, 0.0) == 99.0
    for number in range(1_000):
        assert pace.take(f"o{number}", 5, number * 0.05) == 0.0
    assert len(pace._buckets) <= 101
    assert pace.take("fast", 0, 0.0) == 0.0
    assert pace.take("busy", 10, 99.0) == pytest.approx(1.0), "what it owes stays"


async def test_subscriptions_are_limited(start, dial):
    running = await start(subscriptions_per_session=2)
    client = await dial("c", port=running.port)
    codes = (await client.subscribe(("a", 0), ("b", 0), ("c", 0), ("a", 1))).reason_codes
    assert [int(code) for code in codes] == [0, 0, 0x97, 1]


async def test_retained_topics_are_limited(start, dial):
    running = await start(retained_messages=1)
    client = await dial("c", port=running.port)
    for topic in ("a", "b"):
        client.publish(topic, b"x", retain=True)
    await client.silence()
    assert (running.broker.retained.count, running.broker.stats.dropped) == (1, {"too many retained messages": 1})


async def test_a_packet_announced_too_large_is_refused_before_it_arrives(start, dial):
    running = await start(packet_bytes=1000)
    client = await dial("c", port=running.port)
    client.send(b"\x30\xe9\x07")  # 1001 bytes are to follow
    assert int((await client.receive()).reason_code) == 0x95
    await client.closed()


async def test_byte_by_byte_is_as_good_as_at_once(start, dial):
    running = await start()
    client, subscriber = await dial("c", port=running.port), await dial("s", port=running.port)
    await subscriber.subscribe(("t", 0))
    for byte in publish_5("t", b"y" * 300):
        client.send(bytes((byte,)))
        await client.writer.drain()
    assert (await subscriber.receive()).payload == b"y" * 300
    await until(lambda: running.broker.sessions["c"].connection.partial is None)
