"""What is taken together in one read: publishes to the same receivers on any topics, acknowledgements of one kind."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqtt_bytes import field
from raw_client import frame, publish_4
from terrazzo_broker.codec.scan import scan_acks


@pytest.mark.parametrize("qos", [0, 1])
async def test_topics_of_the_same_receivers_keep_their_order(dial, qos):
    wide, narrow, five = await dial("wide", version=4), await dial("narrow", version=4), await dial("five")
    await wide.subscribe(("t/#", 1))
    await narrow.subscribe(("t/b", 1))
    await five.subscribe(("t/+", 0))
    sender = await dial("s", version=4)
    topics = ["t/a", "t/bb", "t/b", "t/a", "t/a", "t/cc", "t/b", "t/d"] * 3
    for _ in range(3):  # the first round works the routes out
        sender.send(
            *(publish_4(topic, b"%d" % number, qos=qos, packet_id=number + 1) for number, topic in enumerate(topics))
        )
        if qos:
            assert [await sender.receive() for _ in topics] == [
                (0x40, (number + 1).to_bytes(2, "big")) for number in range(len(topics))
            ]
        expected = [(topic, b"%d" % number) for number, topic in enumerate(topics)]
        got = []
        for _ in topics:
            first, body = await wide.receive()
            end = 2 + int.from_bytes(body[:2], "big")
            got.append((body[2:end].decode(), body[end + 2 * qos :]))
            if qos:
                wide.send(frame(0x40, body[end : end + 2]))
            assert first == 0x30 | qos << 1
        assert got == expected
        assert [((each := await five.receive()).topic, each.payload) for _ in topics] == expected
        for _, payload in (each for each in expected if each[0] == "t/b"):
            first, body = await narrow.receive()
            assert body.endswith(payload)
            if qos:
                narrow.send(frame(0x40, body[5:7]))


@pytest.mark.parametrize("second", [b"\x30\x01a", frame(0x30, b"\0\x09t"), frame(0x30, field(b"t/\xff"), b"x")])
async def test_a_run_ends_before_what_is_malformed(dial, second):
    watcher, sender = await dial("w"), await dial("s", version=4)
    await watcher.subscribe(("t", 0))
    sender.send(publish_4("t", b"1"))
    await watcher.receive()
    sender.send(publish_4("t", b"2"), second)
    assert (await watcher.receive()).payload == b"2"
    await sender.closed()
    await watcher.silence()


async def test_each_packet_of_a_run_is_held_to_the_limit(start, dial):
    port = (await start(packet_bytes=100)).port
    watcher, sender = await dial("w", port=port), await dial("s", version=4, port=port)
    await watcher.subscribe(("t", 0))
    sender.send(publish_4("t", b"1"))
    await watcher.receive()
    sender.send(publish_4("t", b"2"), publish_4("t", b"x" * 200))
    assert (await watcher.receive()).payload == b"2"
    await sender.closed()
    await watcher.silence()


async def test_pubrecs_and_pubcomps_in_one_read(dial):
    taker, sender = await dial("t", version=4), await dial("s")
    await taker.subscribe(("q", 2))
    for number in (1, 2, 3):
        sender.publish("q", b"%d" % number, qos=2, packet_id=number)
        assert isinstance(await sender.receive(), mqtt5.PubRecPacket)
    identifiers = [(await taker.receive())[1][3:5] for _ in range(3)]
    taker.send(*(frame(0x50, each) for each in [*identifiers, b"\0\x77"]))
    assert [await taker.receive() for _ in range(4)] == [(0x62, each) for each in [*identifiers, b"\0\x77"]]
    taker.send(*(frame(0x70, each) for each in identifiers))
    await taker.silence()
    taker.send(*(frame(0x50, each) for each in [b"\0\x77", b"\0\0"]))
    await taker.closed()


@given(st.lists(st.tuples(st.sampled_from(b"\x40\x50\x70"), st.sampled_from(b"\2\3"), st.integers(0, 65_535))))
def test_acknowledgements_are_found_as_far_as_they_are_alike(packets):
    data = b"".join(bytes(each[:2]) + each[2].to_bytes(2, "big") for each in packets)
    alike = 0
    while alike < len(packets) and packets[alike][:2] == (packets[0][0], 2):
        alike += 1
    if alike:
        assert scan_acks(data + b"\x40", 0) == tuple(each[2] for each in packets[:alike])
