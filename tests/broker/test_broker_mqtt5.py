"""What MQTT 5 adds, packet by packet."""

from __future__ import annotations

import asyncio

import mqtt5
import pytest

from raw_client import frame, until

NO_LOCAL, AS_PUBLISHED, IF_NEW, NEVER = 4, 8, 16, 32


async def test_connack_tells_the_limits(start, dial):
    running = await start(inflight_from_client=9, topic_alias_maximum=3, packet_bytes=5000, max_keepalive_s=30)
    client = await dial("", port=running.port, keep_alive=60, session_expiry_interval=5)
    connack = client.connack
    assert (connack.receive_max, connack.topic_alias_max, connack.max_packet_size) == (9, 3, 5000)
    assert connack.server_keep_alive == 30
    assert connack.session_expiry_interval is None
    relaxed = await dial("b", port=running.port, keep_alive=20)
    assert relaxed.connack.server_keep_alive is None
    endless = await dial("c", port=running.port, keep_alive=0)
    assert endless.connack.server_keep_alive == 30


async def test_properties_travel_and_user_properties_keep_their_order(dial):  # [MQTT-3.3.2-18]
    subscriber, publisher = await dial("s"), await dial("p")
    await subscriber.subscribe(("t", 1))
    properties = {
        "payload_format_indicator": 1,
        "content_type": "text/plain",
        "response_topic": "r/1",
        "correlation_data": b"\xff",
        "user_properties": [("b", "2"), ("a", "1"), ("b", "1")],
        "message_expiry_interval": 100,
    }
    publisher.publish("t", b"x", **properties)
    message = await subscriber.receive()
    assert {name: getattr(message, name) for name in properties} == properties


async def test_overlapping_subscriptions_give_one_message(dial):  # [MQTT-3.3.4-2]
    subscriber, publisher = await dial("s"), await dial("p")
    await subscriber.subscribe(("t/#", 1), identifier=1)
    await subscriber.subscribe(("t/+", 2), identifier=2)
    await subscriber.subscribe(("+/a", 0))
    publisher.publish("t/a", b"x", qos=2, packet_id=1)
    message = await subscriber.receive()
    assert (sorted(message.subscription_ids), int(message.qos)) == ([1, 2], 2)
    await subscriber.silence()


async def test_no_local(dial):  # [MQTT-3.8.3-3]
    client, other = await dial("c"), await dial("other")
    await client.subscribe(("t", NO_LOCAL | 1))
    client.publish("t", b"mine")
    other.publish("t", b"other's")
    assert (await client.receive()).payload == b"other's"


async def test_retain_as_published(dial):  # [MQTT-3.3.1-12] [MQTT-3.3.1-13]
    plain, keeping, publisher = await dial("a"), await dial("b"), await dial("p")
    await plain.subscribe(("t", 1))
    await keeping.subscribe(("t", AS_PUBLISHED | 1))
    publisher.publish("t", b"x", retain=True)
    assert not (await plain.receive()).retain
    assert (await keeping.receive()).retain


async def test_retain_handling(dial):  # [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11]
    client, publisher = await dial("c"), await dial("p")
    publisher.publish("t", b"x", qos=1, packet_id=1, retain=True)
    await publisher.receive()
    await client.subscribe(("t", NEVER))
    await client.silence()
    await client.subscribe(("t", IF_NEW))
    await client.silence()
    await client.subscribe(("t", 0))
    assert (await client.receive()).retain
    await client.subscribe(("+", IF_NEW | 1), identifier=7)
    message = await client.receive()
    assert (message.subscription_ids, message.retain, int(message.qos)) == ([7], True, 1)
    publisher.publish("t", b"", retain=True)
    late = await dial("late")
    await late.subscribe(("#", 0))
    await late.silence()


async def test_topic_aliases_from_a_client(dial):
    subscriber, publisher = await dial("s"), await dial("p")
    await subscriber.subscribe(("t/#", 1))
    publisher.publish("t/1", b"1", topic_alias=1)
    publisher.publish("", b"2", topic_alias=1)
    publisher.publish("t/2", b"3", topic_alias=1)
    publisher.publish("", b"4", topic_alias=1, qos=1, packet_id=1)
    received = [await subscriber.receive() for _ in range(4)]
    assert [each.topic for each in received] == ["t/1", "t/1", "t/2", "t/2"]
    assert all(each.topic_alias is None for each in received)


async def test_topic_aliases_to_a_client(dial):  # [MQTT-3.1.2-26]
    subscriber, publisher = await dial("s", topic_alias_max=2), await dial("p")
    await subscriber.subscribe(("#", 0))
    for topic in ("a", "a", "b", "c", "b", "c"):
        publisher.publish(topic, b"x")
    received = [await subscriber.receive() for _ in range(6)]
    assert [(each.topic, each.topic_alias) for each in received] == [
        ("a", 1),
        ("", 1),
        ("b", 2),
        ("c", None),
        ("", 2),
        ("c", None),
    ]


@pytest.mark.parametrize("qos", [1, 2])
async def test_no_more_on_the_way_than_the_client_takes(dial, qos):  # [MQTT-3.3.4-9]
    subscriber, publisher = await dial("s", receive_max=2), await dial("p")
    await subscriber.subscribe(("t", qos))
    for number in range(4):
        publisher.publish("t", b"%d" % number, qos=qos, packet_id=number + 1)
    first, second = await subscriber.receive(), await subscriber.receive()
    publisher.publish("t", b"at once")
    assert (await subscriber.receive()).payload == b"at once"
    await subscriber.silence()
    if qos == 1:
        subscriber.send(mqtt5.PubAckPacket(first.packet_id))
    else:
        subscriber.send(mqtt5.PubRecPacket(first.packet_id))
        assert isinstance(await subscriber.receive(), mqtt5.PubRelPacket)
        subscriber.send(mqtt5.PubCompPacket(first.packet_id))
    third = await subscriber.receive()
    assert [each.payload for each in (first, second, third)] == [b"0", b"1", b"2"]
    await subscriber.silence()


async def test_a_client_over_our_receive_maximum_is_closed(start, dial):  # [MQTT-3.3.4-7]
    running = await start(inflight_from_client=3)
    client = await dial("c", port=running.port)
    for number in range(1, 5):
        client.publish("t", qos=2, packet_id=number)
    packets = await client.rest()
    assert int(packets[-1].reason_code) == 0x93


async def test_packets_too_large_for_the_client_are_left_out(dial):  # [MQTT-3.1.2-24] [MQTT-3.1.2-25]
    subscriber, publisher = await dial("s", max_packet_size=50), await dial("p")
    await subscriber.subscribe(("t", 1))
    publisher.publish("t", b"x" * 100, qos=1, packet_id=1)
    publisher.publish("t", b"fits", qos=1, packet_id=2)
    assert (await subscriber.receive()).payload == b"fits"


async def test_reason_codes_of_acknowledgements(dial):
    client = await dial("c")
    client.publish("nobody", qos=1, packet_id=1)
    assert int((await client.receive()).reason_code) == 0x10
    client.publish("nobody", qos=1, packet_id=1)  # now from the cache of routes
    assert int((await client.receive()).reason_code) == 0x10
    client.publish("nobody", qos=2, packet_id=2)
    assert int((await client.receive()).reason_code) == 0x10
    client.send(mqtt5.PubRelPacket(77))
    assert int((await client.receive()).reason_code) == 0x92
    client.send(mqtt5.PubRecPacket(78))
    assert int((await client.receive()).reason_code) == 0x92
    await client.subscribe(("a", 0))
    client.send(mqtt5.UnsubscribePacket(5, ["a", "b"]))
    assert [int(code) for code in (await client.receive()).reason_codes] == [0, 0x11]


async def test_a_refusing_pubrec_ends_the_exchange(dial):  # [MQTT-4.3.3-4]
    subscriber, publisher = await dial("s", receive_max=1), await dial("p")
    await subscriber.subscribe(("t", 2))
    for number in (1, 2):
        publisher.publish("t", b"%d" % number, qos=2, packet_id=number)
    first = await subscriber.receive()
    subscriber.send(mqtt5.PubRecPacket(first.packet_id, reason_code=mqtt5.PubRecReasonCode.QUOTA_EXCEEDED))
    assert (await subscriber.receive()).payload == b"2"


async def test_message_expiry_is_counted_down_in_the_queue(running, dial):  # [MQTT-3.3.2-5] [MQTT-3.3.2-6]
    client = await dial("c", session_expiry_interval=60)
    await client.subscribe(("t", 1))
    await client.finish()
    await until(lambda: running.broker.client("c") is None)
    publisher = await dial("p")
    for payload, expiry_s in ((b"short", 1), (b"long", 100), (b"never", None)):
        publisher.publish("t", payload, qos=1, packet_id=1, message_expiry_interval=expiry_s)
        await publisher.receive()
    await asyncio.sleep(1.1)  # the clock is what this is about
    again = await dial("c", clean_start=False)
    messages = [await again.receive(), await again.receive()]
    assert [each.payload for each in messages] == [b"long", b"never"]
    assert 97 <= messages[0].message_expiry_interval <= 99
    assert messages[1].message_expiry_interval is None
    assert running.broker.stats.dropped == {"expired": 1}


async def test_a_full_queue_is_reported_to_the_publisher(start, dial):
    running = await start(queued_messages=2)
    client = await dial("c", port=running.port, session_expiry_interval=60)
    await client.subscribe(("t", 1))
    await client.finish()
    await until(lambda: running.broker.client("c") is None)
    publisher = await dial("p", port=running.port)
    publisher.publish("t", b"qos 0")
    answers = []
    for number in range(1, 5):
        publisher.publish("t", b"%d" % number, qos=1, packet_id=number)
        answers.append(int((await publisher.receive()).reason_code))
    assert answers == [0, 0, 0x97, 0x97]
    assert running.broker.stats.dropped == {"queue full": 1}
    again = await dial("c", port=running.port, clean_start=False)
    assert [(await again.receive()).payload for _ in range(2)] == [b"1", b"2"]


async def test_shared_subscriptions(dial):  # [MQTT-4.8.2-4]
    members = [await dial(f"m{number}") for number in range(2)]
    publisher, plain = await dial("p"), await dial("plain")
    publisher.publish("t/0", b"retained", retain=True)
    for member in members:
        await member.subscribe(("$share/g/t/+", 1))
        await member.silence()
    await plain.subscribe(("t/1", 1))
    for number in range(10):
        publisher.publish("t/1", b"%d" % number, qos=1, packet_id=number + 1)
    received = [[(await member.receive()).payload for _ in range(5)] for member in members]
    assert sorted(payload for each in received for payload in each) == [b"%d" % number for number in range(10)]
    assert len([await plain.receive() for _ in range(10)]) == 10


async def test_dollar_topics_need_to_be_named(dial, running):  # [MQTT-4.7.2-1]
    client = await dial("c")
    await client.subscribe(("#", 0), ("+/x", 0))
    running.broker.publish("$x/x", b"hidden")
    await client.subscribe(("$x/#", 0))
    running.broker.publish("$x/x", b"seen")
    assert (await client.receive()).payload == b"seen"


async def test_sys_topics(start, dial):
    running = await start(sys_interval_s=0.1)
    client = await dial("c", port=running.port)
    await client.subscribe(("$SYS/broker/version", 0), ("$SYS/broker/uptime", 0), ("$SYS/broker/clients/connected", 0))
    values = {}
    while values.get("$SYS/broker/clients/connected") != b"1":
        message = await client.receive()
        values[message.topic] = message.payload
    assert values["$SYS/broker/version"].startswith(b"terrazzo")
    assert values["$SYS/broker/uptime"].endswith(b" seconds")


async def test_a_session_that_ends_with_its_connection_keeps_doing_so(dial):
    client = await dial("c", session_expiry_interval=60)
    client.send(frame(0xE0, b"\0\x05\x11\0\0\0\0"))
    await client.closed()
    again = await dial("c", clean_start=False)
    assert not again.connack.session_present


async def test_old_and_new_protocol_meet(dial):
    four, five = await dial("four", version=4), await dial("five")
    await four.subscribe(("t", 2))
    await five.subscribe(("t", 2))
    five.publish("t", b"x", qos=1, packet_id=1, content_type="c", message_expiry_interval=9)
    assert (await four.receive())[1][-1:] == b"x"
    four.publish("t", b"y")
    assert (await five.receive()).payload == b"x"
    assert isinstance(await five.receive(), mqtt5.PubAckPacket)
    assert (await five.receive()).payload == b"y"
