"""Topics and filters have a size, and of long ones nothing is kept."""

from __future__ import annotations

import mqtt5
import pytest

from raw_client import publish_4, until


async def test_a_topic_or_a_filter_beyond_the_limit_is_refused(start, dial):
    running = await start(topic_bytes=64)
    peer = await dial("one", port=running.port)
    fits, longer = "t/" + "é" * 31, "t/" + "é" * 31 + "x"
    answer = await peer.subscribe((fits, 0), (longer, 0), ("$share/g/" + fits, 0))
    assert [int(code) for code in answer.reason_codes] == [0, 0x8F, 0x8F]
    peer.publish(fits, b"x")
    assert (await peer.receive()).payload == b"x"
    peer.publish(longer, b"x")
    assert int((await peer.receive()).reason_code) == 0x90
    await peer.closed()
    old = await dial("old", port=running.port, version=4)
    old.send(publish_4(longer, b"x"))
    await old.closed()


async def test_a_session_keeps_the_filters_that_it_has(start, dial):
    running = await start(topic_bytes=64)
    peer = await dial("one", port=running.port)
    await peer.subscribe(("t/1", 0))
    session, pattern = running.broker.sessions["one"], "t/" + "x" * 100
    session.subscriptions[pattern] = session.subscriptions["t/1"]
    answer = await peer.subscribe((pattern, 1))
    assert [int(code) for code in answer.reason_codes] == [1]


@pytest.mark.parametrize(("size", "kept"), [(1_000, 20), (2_000, 0)])
async def test_of_long_topics_a_connection_keeps_nothing(running, dial, size: int, kept: int):
    watcher, peer = await dial("watcher"), await dial("one")
    await watcher.subscribe(("#", 0))
    topics = [f"{number:02}" + "x" * (size - 2) for number in range(20)]
    for _ in range(2):
        for topic in topics:
            peer.send(mqtt5.PublishPacket(topic, b"1"))
            assert (await watcher.receive()).topic == topic
    connection = running.broker.sessions["one"].connection
    await until(lambda: len(connection.routes) == kept)
    assert len(connection.grants or ()) == kept
