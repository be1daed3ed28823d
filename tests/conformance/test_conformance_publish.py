"""PUBLISH: topics, flags and properties on their way from one client to others, and topic matching."""

from __future__ import annotations

import conformance_wire as wire
import pytest

PROTOCOL_ERROR, TOPIC_INVALID, ALIAS_INVALID = 0x82, 0x90, 0x94


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("sent", [0, 1, 2])
async def test_qos_is_the_lower_of_the_two(dial, version, name, sent, granted):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    assert await watcher.subscribe((name, granted)) == [granted]
    await peer.publish(name, b"x", qos=sent)
    message = await watcher.take()
    assert (message.topic, message.payload, message.qos) == (name, b"x", min(sent, granted))
    assert not message.dup
    assert not message.retain
    await watcher.silence()


@pytest.mark.parametrize(("old", "new"), [(4, 5), (5, 4)])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_both_protocols_meet(dial, name, old, new, qos):
    watcher, peer = await dial(old, name), await dial(new, name + "p")
    await watcher.subscribe((name, 2))
    await peer.publish(name, b"\x00\xff", qos=qos)
    assert (await watcher.take()).payload == b"\x00\xff"


async def test_qos_3_ends_the_connection(dial, version, name):
    peer = await dial(version, name)
    peer.send(wire.publish(name, version=version, qos=3, packet_id=1))
    assert await peer.refused() == (0x81 if version == 5 else 0)


async def test_dup_at_qos_0_ends_the_connection(dial, version, name):
    peer = await dial(version, name)
    peer.send(wire.publish(name, version=version, dup=True))
    assert await peer.refused() == (0x81 if version == 5 else 0)


@pytest.mark.parametrize("qos", [1, 2])
async def test_dup_is_not_passed_on(dial, version, name, qos):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((name, 2))
    await peer.publish(name, qos=qos, dup=True)
    assert not (await watcher.take()).dup


@pytest.mark.parametrize("topic", ["#", "+", "a/#", "a/+/b", "a+", "a#b"])
@pytest.mark.parametrize("qos", [0, 1])
async def test_wildcards_in_a_topic_name(dial, version, name, topic, qos):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe(("a/#", 0))
    peer.send(wire.publish(topic, version=version, qos=qos, packet_id=1))
    assert await peer.refused() == (TOPIC_INVALID if version == 5 else 0)
    await watcher.silence()


async def test_an_empty_topic_name(dial, version, name):
    peer = await dial(version, name)
    peer.send(wire.publish("", version=version))
    assert await peer.refused() == (PROTOCOL_ERROR if version == 5 else 0)


async def test_a_topic_of_65535_bytes(dial, version, name):
    topic = name + "x" * (65_535 - len(name))
    peer = await dial(version, name)
    assert await peer.subscribe((topic, 0)) == [0]
    peer.send(wire.publish(topic, version=version))
    assert (await peer.take()).topic == topic


MATCHES = [
    ("a", "a", True),
    ("a", "A", False),
    ("a b", "a b", True),
    ("/a", "a", False),
    ("a/", "a", False),
    ("/", "/", True),
    ("a//b", "a//b", True),
    ("a//b", "a/b", False),
    ("+", "a", True),
    ("+", "a/b", False),
    ("a/+", "a", False),
    ("a/+", "a/", True),
    ("+/+", "/a", True),
    ("/+", "/a", True),
    ("+", "/a", False),
    ("a/+/c", "a/b/c", True),
    ("a/+/c", "a/b/b/c", False),
    ("a/#", "a", True),
    ("a/#", "a/b/c", True),
    ("a/#", "ab", False),
    ("+/#", "a/b/c", True),
    ("a/+/#", "a/b", True),
    ("a/+/#", "a", False),
    ("é", "e\u0301", False),
]


@pytest.mark.parametrize(("pattern", "topic", "matches"), MATCHES)
async def test_filters_match_names(dial, version, name, pattern, topic, matches):
    """Live and retained messages alike."""
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    pattern, topic = f"{name}/{pattern}", f"{name}/{topic}"
    assert await watcher.subscribe((pattern, 1)) == [1]
    await peer.publish(topic, b"live", qos=1)
    await peer.publish(topic, b"kept", qos=1, retain=True)
    late = await dial(version, name + "l")
    await late.subscribe((pattern, 1))
    if matches:
        assert [(await watcher.take()).payload for _ in range(2)] == [b"live", b"kept"]
        assert (await late.take()).topic == topic
    await watcher.silence()
    await late.silence()
    await peer.publish(topic, qos=1, retain=True)


@pytest.mark.parametrize("pattern", ["#", "+/#", "+/{}", "+/+"])
async def test_leading_wildcards_leave_dollar_topics_alone(dial, version, name, pattern):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    topic = f"$dollar/{name}"
    await peer.publish(topic, b"kept", qos=1, retain=True)
    await watcher.subscribe((pattern.format(name), 0))
    await peer.publish(topic, b"live", qos=1)
    await peer.publish(topic, qos=1, retain=True)
    assert topic not in {each.topic for each in await said_so_far(watcher)}


async def said_so_far(peer) -> list:
    """What was on its way to a client."""
    peer.send(b"\xc0\x00")
    packets = [await peer.receive()]
    while packets[-1].kind != wire.PINGRESP:
        packets.append(await peer.receive())
    return packets


@pytest.mark.parametrize("pattern", ["$dollar/#", "$dollar/+", "$dollar/{}"])
async def test_dollar_topics_are_topics_for_who_names_them(dial, version, name, pattern):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((pattern.format(name), 0))
    await peer.publish(f"$dollar/{name}", b"live", qos=1)
    assert f"$dollar/{name}" in {each.topic for each in await said_so_far(watcher)}


async def test_the_servers_own_topics(dial, version, name):
    peer = await dial(version, name)
    await peer.subscribe(("$SYS/#", 0))
    assert (await peer.take()).topic.startswith("$SYS/")
    writer = await dial(version, name + "p")
    assert await writer.publish("$SYS/broker/version", b"mine", qos=1) == (0x87 if version == 5 else 0)


async def test_ping(dial, version, name):
    peer = await dial(version, name)
    for _ in range(3):
        await peer.silence()


# Properties of 5.0

PROPERTIES = {
    "payload_format": 1,
    "content_type": "text/plain",
    "response_topic": "answers/é",
    "correlation_data": b"\x00\xff",
    "user": [("b", "2"), ("a", "1"), ("b", "1"), ("", "")],
}


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_properties_arrive_unaltered_and_in_order(dial, name, qos):
    watcher, peer = await dial(5, name), await dial(5, name + "p")
    await watcher.subscribe((name, 2))
    await peer.publish(name, b"x", qos=qos, **PROPERTIES)
    assert (await watcher.take()).properties == PROPERTIES
    await peer.publish(name, b"\xff", qos=qos, payload_format=0)
    assert (await watcher.take()).payload_format in (0, None)


async def test_properties_of_retained_and_queued_messages(dial, name):
    peer = await dial(5, name + "p")
    away = await dial(5, name, keep=True)
    await away.subscribe((name, 1))
    await away.leave()
    await peer.publish(name, b"x", qos=1, retain=True, **PROPERTIES)
    back = await dial(5, name, keep=True)
    assert (await back.take()).properties == PROPERTIES
    late = await dial(5, name + "l")
    await late.subscribe((name, 0))
    assert (await late.take()).properties == PROPERTIES
    await peer.publish(name, qos=1, retain=True)


async def test_properties_do_not_reach_3_1_1(dial, name):
    watcher, peer = await dial(4, name), await dial(5, name + "p")
    await watcher.subscribe((name, 1))
    await peer.publish(name, b"plain", qos=1, message_expiry=100, **PROPERTIES)
    assert (await watcher.take()).payload == b"plain"


async def test_a_payload_that_is_not_the_text_it_claims_to_be(dial, name):
    watcher, peer = await dial(5, name), await dial(5, name + "p")
    await watcher.subscribe((name, 2))
    for qos in (1, 2):
        assert await peer.publish(name, b"\xff", qos=qos, payload_format=1) == 0x99
    await peer.publish(name, b"\xff", payload_format=1)
    await watcher.silence()


@pytest.mark.parametrize("topic", ["a/#", "+", ""])
async def test_response_topics_are_topic_names(dial, name, topic):
    peer = await dial(5, name)
    peer.send(wire.publish(name, version=5, response_topic=topic))
    assert await peer.refused() == PROTOCOL_ERROR


async def test_a_client_sends_no_subscription_identifier(dial, name):
    peer = await dial(5, name)
    peer.send(wire.publish(name, version=5, subscription_id=1))
    assert await peer.refused() == PROTOCOL_ERROR


# Topic aliases


@pytest.mark.parametrize("alias", [0, "maximum + 1", 65_535])
async def test_an_alias_out_of_range(dial, name, alias):
    peer = await dial(5, name)
    alias = peer.connack.topic_alias_maximum + 1 if isinstance(alias, str) else alias
    peer.send(wire.publish(name, version=5, topic_alias=alias))
    assert await peer.refused() == ALIAS_INVALID


async def test_an_alias_that_stands_for_nothing(dial, name):
    peer = await dial(5, name)
    peer.send(wire.publish("", version=5, topic_alias=1))
    assert await peer.refused() == PROTOCOL_ERROR


async def test_every_alias_up_to_the_maximum(dial, name):
    watcher, peer = await dial(5, name), await dial(5, name + "p")
    await watcher.subscribe((f"{name}/#", 0))
    aliases = range(1, peer.connack.topic_alias_maximum + 1)
    for alias in aliases:
        peer.send(wire.publish(f"{name}/{alias}", version=5, topic_alias=alias))
    for alias in aliases:
        peer.send(wire.publish("", version=5, topic_alias=alias))
    expected = [f"{name}/{alias}" for alias in aliases] * 2
    assert [(await watcher.take()).topic for _ in expected] == expected


async def test_an_alias_may_change_its_meaning(dial, name):
    watcher, peer = await dial(5, name), await dial(5, name + "p")
    await watcher.subscribe((f"{name}/#", 0))
    for topic in (f"{name}/1", "", f"{name}/2", ""):
        await peer.publish(topic, qos=1, topic_alias=1)
    received = [await watcher.take() for _ in range(4)]
    assert [each.topic for each in received] == [f"{name}/1"] * 2 + [f"{name}/2"] * 2
    assert {each.topic_alias for each in received} == {None}


async def test_aliases_end_with_their_connection(dial, name):
    peer = await dial(5, name, keep=True)
    await peer.publish(name, qos=1, topic_alias=1)
    await peer.leave()
    again = await dial(5, name, keep=True)
    assert again.connack.session_present
    again.send(wire.publish("", version=5, topic_alias=1))
    assert await again.refused() == PROTOCOL_ERROR


@pytest.mark.parametrize("options", [{}, {"topic_alias_maximum": 0}])
async def test_no_alias_to_who_wants_none(dial, name, options):
    watcher = await dial(5, name, **options)
    await watcher.subscribe((name, 0))
    for _ in range(3):
        watcher.send(wire.publish(name, version=5))
    assert {(each.topic, each.topic_alias) for each in [await watcher.take() for _ in range(3)]} == {(name, None)}


async def test_aliases_to_a_client_begin_with_the_first_message(dial, name):
    watcher, peer = await dial(5, name, topic_alias_maximum=2), await dial(5, name + "p")
    await watcher.subscribe((f"{name}/#", 2))
    known: dict[int, str] = {}
    for qos, level in ((0, "a"), (1, "a"), (2, "a"), (0, "b"), (1, "c"), (1, "b"), (0, "c"), (2, "a")):
        await peer.publish(f"{name}/{level}", qos=qos)
        message = await watcher.take()
        assert 0 < (message.topic_alias or 1) <= 2
        if message.topic and message.topic_alias:
            known[message.topic_alias] = message.topic
        assert (message.topic or known[message.topic_alias]) == f"{name}/{level}"
    assert known == {1: f"{name}/a", 2: f"{name}/b"}


async def test_a_message_goes_as_it_came_to_many(dial, version, name):
    watchers = [await dial(version, f"{name}{number}") for number in range(5)]
    peer = await dial(version, name)
    for qos, watcher in enumerate(watchers):
        await watcher.subscribe((name, qos % 3))
    for number in range(20):
        await peer.publish(name, b"%d" % number, qos=number % 3)
    for qos, watcher in enumerate(watchers):
        received = [await watcher.expect(wire.PUBLISH) for _ in range(20)]
        assert sorted(int(each.payload) for each in received) == list(range(20))
        assert [each.qos for each in sorted(received, key=lambda each: int(each.payload))] == [
            min(number % 3, qos % 3) for number in range(20)
        ]


async def test_a_packet_of_every_size_at_once(dial, version, name):
    """Many packets in one write are many packets."""
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((name, 1))
    sizes = [0, 1, 100, 200, 1000, 20_000]
    packets = [
        wire.publish(name, b"x" * size, version=version, qos=1, packet_id=number)
        for number, size in enumerate(sizes, 1)
    ]
    peer.send(*packets)
    assert [len((await watcher.take()).payload) for _ in sizes] == sizes
    assert [(await peer.expect(wire.PUBACK)).packet_id for _ in sizes] == list(range(1, 7))
