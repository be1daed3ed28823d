"""Messages get from publishers to subscribers at the right QoS, in both protocol versions."""

from __future__ import annotations

import mqtt5
import pytest

from raw_client import publish_4

VERSIONS = (4, 5)


@pytest.mark.parametrize("publisher_version", VERSIONS)
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("sent", [0, 1, 2])
async def test_qos_is_the_lower_of_the_two(dial, publisher_version, granted, sent):  # [MQTT-3.8.4-8]
    subscriber = await dial("s")
    await subscriber.subscribe(("t/+", granted))
    publisher = await dial("p", version=publisher_version)
    publisher.publish("t/1", b"x", qos=sent, **({"packet_id": 7} if sent else {}))
    message = await subscriber.receive()
    assert (message.topic, message.payload, int(message.qos)) == ("t/1", b"x", min(granted, sent))


@pytest.mark.parametrize("version", VERSIONS)
async def test_qos_2_both_ways(dial, version):
    client = await dial("c", version=version)
    await client.subscribe(("t", 2))
    client.publish("t", b"once", qos=2, packet_id=9)
    client.publish("t", b"once", qos=2, packet_id=9, **({"duplicate": True} if version == 5 else {"dup": True}))
    client.send(b"\x62\x02\x00\x09")
    first = [await client.receive() for _ in range(4)]
    if version == 5:
        kinds = sorted(type(each).__name__ for each in first)
        assert kinds == ["PubCompPacket", "PubRecPacket", "PubRecPacket", "PublishPacket"]
        identifier = next(each.packet_id for each in first if isinstance(each, mqtt5.PublishPacket))
    else:
        assert sorted(each[0] for each in first) == [0x34, 0x50, 0x50, 0x70]
        identifier = next(int.from_bytes(each[1][3:5], "big") for each in first if each[0] == 0x34)
    client.send(b"\x50\x02" + identifier.to_bytes(2, "big"))
    released = await client.receive()
    client.send(b"\x70\x02" + identifier.to_bytes(2, "big"))
    assert released == (0x62, identifier.to_bytes(2, "big")) or released.packet_id == identifier
    await client.silence()


async def test_many_in_one_write_keep_their_order(dial):
    subscriber, publisher = await dial("s"), await dial("p", version=4)
    await subscriber.subscribe(("t/#", 1))
    packets = [publish_4(f"t/{n % 3}", b"%d" % n, qos=n % 2, packet_id=n + 1) for n in range(60)]
    publisher.send(b"".join(packets))
    received = []
    while len(received) < 60:
        message = await subscriber.receive()
        received.append((message.topic, int(message.payload)))
        if message.packet_id:
            subscriber.send(mqtt5.PubAckPacket(message.packet_id))
    assert received == [(f"t/{n % 3}", n) for n in range(60)]


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_packets_may_arrive_in_pieces(dial, size):
    subscriber, publisher = await dial("s"), await dial("p", version=4)
    await subscriber.subscribe(("t", 0))
    stream = b"".join(publish_4("t", b"%d" % n * 50, qos=1, packet_id=n + 1) for n in range(5))
    for start in range(0, len(stream), size):
        publisher.send(stream[start : start + size])
        await publisher.writer.drain()
    assert [(await subscriber.receive()).payload for _ in range(5)] == [b"%d" % n * 50 for n in range(5)]
    assert [await publisher.receive() for _ in range(5)] == [(0x40, bytes((0, n + 1))) for n in range(5)]
