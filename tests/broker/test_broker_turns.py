"""Nobody has the loop for long, whatever their packets ask for; meanwhile others are answered as ever."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import mqtt5
import pytest
from loop_probe import ThreadPeer, connect_5, probed

from mqtt_bytes import field, frame
from raw_client import until
from terrazzo_broker import Accept

ANSWERED_S = 2.0  # far above what an answer takes, far below what a held loop looks like
PAIRS = b"\x26" + field("") + field("")


def length(value: int) -> bytes:
    """A Variable Byte Integer."""
    return frame(0, bytes(value))[1 : -value or None]


def properties(count: int) -> bytes:
    """So many empty user properties, with their length."""
    return length(count * len(PAIRS)) + PAIRS * count


def subscribe(*patterns: str, packet_id: int = 1) -> bytes:
    """A SUBSCRIBE of MQTT 5 at QoS 0."""
    return frame(0x82, packet_id.to_bytes(2, "big"), b"\0", *(field(each) + b"\0" for each in patterns))


def unsubscribe(*patterns: str) -> bytes:
    """An UNSUBSCRIBE of MQTT 5."""
    return frame(0xA2, b"\0\2\0", *(field(each) for each in patterns))


async def by_name(request: Any) -> Accept:
    """Owners are the first letters of client ids."""
    return Accept("someone", owner=request.client_id[0])


DISTINCT = [f"t/{number}" for number in range(10_000)]
REQUESTS = {
    "one filter repeated": subscribe(*["#"] * 10_000),
    "many filters": subscribe(*DISTINCT),
    "very many filters": subscribe(*["a"] * 200_000),
    "many SUBSCRIBEs": subscribe("#") * 400,
    "many UNSUBSCRIBEs": unsubscribe("#") * 10_000,
    "one long UNSUBSCRIBE": subscribe(*DISTINCT[:900]) + unsubscribe(*DISTINCT),
    "SUBSCRIBE with properties": frame(0x82, b"\0\1", properties(200_000), field("#"), b"\0"),
    "PUBLISH with properties": frame(0x30, field("t"), properties(200_000)),
    "PUBACK with properties": frame(0x40, b"\0\1\x10", properties(200_000)),
    "PUBLISH on many topics": b"".join(frame(0x30, field(f"t/{number}"), b"\0x") for number in range(30_000)),
    "wildcards over what is retained": subscribe("+/+", "t/#", "+/1/#", "#", "t/+"),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
async def test_no_request_holds_the_loop(start: Any, dial: Any, request_: bytes) -> None:
    running = await start()
    running.hooks.verdict = by_name
    for number in range(500):
        running.broker.publish(f"t/{number}", b"x", retain=True, owner="a")
    honest = await dial("b", port=running.port)
    await honest.silence()
    longest_s = 0.0
    with probed() as probe, closing(ThreadPeer(running.port, connect_5("a") + request_)) as peer:
        ended_s = time.monotonic() + 60
        while not peer.is_answered:
            assert time.monotonic() < ended_s
            began_s = time.perf_counter()
            await honest.silence()
            honest.publish("t", qos=1, packet_id=1)
            assert (await honest.receive()).reason_code == mqtt5.PubAckReasonCode.NO_MATCHING_SUBSCRIBERS
            longest_s = max(longest_s, time.perf_counter() - began_s)
        assert probe.turns > 3
    assert longest_s < ANSWERED_S
    assert running.broker.stats.internal_errors == 0


async def test_a_filter_repeated_in_one_packet_gets_what_is_retained_once(start: Any, dial: Any) -> None:
    """At the last QoS that was asked for; where only the first of them was owed it, too. [MQTT-3.8.4-5]"""
    running = await start()
    for number in range(500):
        running.broker.publish(f"t/{number}", b"x", qos=1, retain=True, owner="")
    for again in (0, 0x10, 0x20):  # retain handling
        client = await dial(f"c{again}", port=running.port)
        answer = await client.subscribe(("#", 0x10), *[("#", again | 1)] * 2_000)
        assert [int(each) for each in answer.reason_codes] == [0, *[1] * 2_000]
        found = [await client.receive() for _ in range(100)]
        client.send(*(frame(0x40, each.packet_id.to_bytes(2, "big")) for each in found))
        for _ in range(4):
            more = [await client.receive() for _ in range(100)]
            client.send(*(frame(0x40, each.packet_id.to_bytes(2, "big")) for each in more))
            found += more
        assert {each.topic for each in found} == {f"t/{number}" for number in range(500)}
        assert {(int(each.qos), each.retain) for each in found} == {(1, True)}
        await client.silence()


async def test_packets_behind_a_long_one_wait_for_it_and_keep_their_order(start: Any, dial: Any) -> None:
    running = await start()
    client = await dial("c", port=running.port)
    client.send(subscribe("t", *["a"] * 50_000), unsubscribe("t"), subscribe("t", packet_id=3))
    client.publish("t", b"1")
    client.publish("t", b"2")
    kinds = [type(await client.receive()).__name__ for _ in range(3)]
    assert kinds == ["SubAckPacket", "UnsubAckPacket", "SubAckPacket"]
    assert [(await client.receive()).payload for _ in range(2)] == [b"1", b"2"]
    assert running.broker.stats.work_deferred > 0
    await client.silence()


async def test_who_leaves_or_is_taken_over_in_the_middle_leaves_no_work_behind(start: Any, dial: Any) -> None:
    running = await start(subscriptions_per_session=100_000)
    running.hooks.verdict = by_name
    for _ in range(2):
        with closing(ThreadPeer(running.port, connect_5("a") + subscribe(*[f"{n}" for n in range(40_000)]))):
            await until(lambda: "a" in running.broker.sessions and running.broker.sessions["a"].subscriptions)
            client = await dial("a", port=running.port)  # takes over, with a clean start
            await client.silence()
            assert len(running.broker.sessions["a"].subscriptions) == 0
            await client.finish()
            await until(lambda: not running.broker.sessions)
    assert running.broker.stats.subscriptions == 0
    assert running.broker.stats.internal_errors == 0


# Many receivers

GROUPS = [f"$share/g{number}/t" for number in range(900)]
DEEP = ["/".join("a+"[number >> bit & 1] for bit in range(10)) + "/+" * 180 for number in range(900)]
DEEP_TOPIC = "a/" * 10 + "b/" * 179
FANS = {
    "groups on one topic": subscribe(*GROUPS) + frame(0x30, field("t"), b"\0x") * 100,
    "groups, at QoS 1": subscribe(*GROUPS) + frame(0x32, field("t"), b"\0\1\0x") * 100,
    "deep wildcards": subscribe(*DEEP)
    + b"".join(frame(0x30, field(f"{DEEP_TOPIC}{number}"), b"\0x") for number in range(20)),
    "a will to many groups": b"",
}


@pytest.mark.parametrize("request_", FANS.values(), ids=FANS.keys())
async def test_no_message_to_many_receivers_holds_the_loop(start: Any, dial: Any, request_: bytes) -> None:
    running = await start()
    running.hooks.verdict = by_name
    listeners = [await dial(f"a{number}", port=running.port) for number in range(20)]
    for listener in listeners:
        listener.send(subscribe(*GROUPS))
        await listener.receive()
    honest = await dial("b", port=running.port)
    await honest.silence()
    with probed():
        if request_:
            ended = closing(ThreadPeer(running.port, connect_5("a") + request_))
            with ended as peer:
                while not peer.is_answered:
                    await honest.silence()
        else:
            for number in range(10):
                will = mqtt5.Will(topic="t", payload=b"x", qos=mqtt5.QoS.AT_LEAST_ONCE)
                leaver = await dial(f"aw{number}", port=running.port, will=will)
                leaver.writer.transport.abort()
            while running.broker.stats.messages_out < 10 * len(GROUPS):
                await honest.silence()
    assert running.broker.stats.internal_errors == 0


async def test_the_end_of_sessions_holds_nobody_up(start: Any, dial: Any) -> None:
    """Thousands of deep subscriptions of sessions that begin anew, with what waits in them, and that expire at once."""
    running = await start(queued_messages=5_000, inflight_to_client=5_000)
    running.hooks.verdict = by_name
    honest = await dial("b", port=running.port)
    for number in range(4):
        client = await dial(f"a{number}", port=running.port, session_expiry_interval=5)
        client.send(subscribe(*DEEP))
        await client.receive()
        await client.subscribe(("q", 1))
        await client.finish()
    await until(lambda: running.broker.stats.clients == 1)
    for _ in range(5_000):
        running.broker.publish("q", b"x", qos=1, owner="a")
    await until(lambda: sum(each.queued for each in running.broker.sessions.values()) == 20_000)
    with probed():
        again = await dial("a0", port=running.port)
        await again.silence()
        await until(lambda: len(running.broker.sessions) == 2, "they have expired")
        await until(lambda: running.broker.stats.subscriptions == 0)
        await honest.silence()
    assert running.broker.stats.dropped["session ended"] == 20_000
    assert running.broker.core.storage.queues.of("a", running.broker.settings).messages == 0


async def test_receivers_that_leave_meanwhile_are_left_out_and_order_holds(start: Any, dial: Any) -> None:
    running = await start()
    receivers = [await dial(f"r{number}", port=running.port) for number in range(250)]
    for receiver in receivers:
        await receiver.subscribe(("t/#", 0))
    sender = await dial("s", port=running.port)
    sender.send(*(frame(0x30, field(f"t/{number % 7}"), b"\0" + str(number).encode()) for number in range(100)))
    for receiver in receivers[200:]:
        await receiver.finish()
    for receiver in receivers[:200]:
        assert [(await receiver.receive()).payload for _ in range(100)] == [str(n).encode() for n in range(100)]
    await sender.silence()
    assert running.broker.stats.internal_errors == 0


async def test_messages_for_shares_of_different_topics_stay_with_them(start: Any, dial: Any) -> None:
    running = await start()
    first, second, sender = [await dial(name, port=running.port) for name in ("one", "two", "s")]
    await first.subscribe(("$share/g/a", 0))
    await second.subscribe(("$share/g/b", 0))
    for topic in ("a", "b"):
        sender.publish(topic, b"known from now on")
        assert (await (first if topic == "a" else second).receive()).topic == topic
    sender.send(*(frame(0x30, field("ab"[number % 2]), b"\0x") for number in range(10)))
    assert [(await first.receive()).topic for _ in range(5)] == ["a"] * 5
    assert [(await second.receive()).topic for _ in range(5)] == ["b"] * 5
    await first.silence()


async def test_an_owners_subscriptions_cost_another_nothing(start: Any, dial: Any) -> None:
    """Neither their number nor their coming and going: the other's routes stay."""
    running = await start()
    running.hooks.verdict = by_name
    one, other = await dial("a", port=running.port), await dial("b", port=running.port)
    other.publish("t", qos=1, packet_id=1)
    await other.receive()
    connection: Any = running.broker.sessions["b"].connection
    (route,) = connection.routes.values()
    await one.subscribe(("#", 0), ("+/+", 0))
    other.publish("t", qos=1, packet_id=1)
    await other.receive()
    assert list(connection.routes.values()) == [route]
    assert len(list(running.broker.core.tree.matching("t", "b"))) <= 2
    await other.subscribe(("t", 0))
    other.publish("t", b"heard")
    assert (await other.receive()).payload == b"heard"


def heard(packet: Any) -> tuple[bytes, int]:
    """The payload and the QoS of a message on a topic of three characters, in either version."""
    if isinstance(packet, tuple):
        header, body = packet
        return body[5 + 2 * bool(header & 6) :], header >> 1 & 3
    return packet.payload, int(packet.qos)


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_runs_to_many_receivers_come_whole_to_each_of_them(start: Any, dial: Any, qos: int) -> None:
    """Of both versions, each at the lower QoS, in order on two topics; answered when all have them."""
    running = await start(inflight_to_client=200)
    receivers = [await dial(f"r{number}", port=running.port, version=4 + number % 2) for number in range(120)]
    for number, receiver in enumerate(receivers):
        await receiver.subscribe(("t/#", number % 3))
    sender = await dial("s", port=running.port)
    for topic in ("t/0", "t/1"):
        sender.publish(topic, b"known from now on")
    for receiver in receivers:
        for _ in range(2):
            assert heard(await receiver.receive()) == (b"known from now on", 0)
    ids = [(number + 2).to_bytes(2, "big") if qos else b"" for number in range(100)]
    bodies = ((field(f"t/{n % 2}"), each, b"\0%d" % n) for n, each in enumerate(ids))
    sender.send(*(frame(0x30 | qos << 1, *body) for body in bodies))
    for number, receiver in enumerate(receivers):
        messages = [heard(await receiver.receive()) for _ in range(100)]
        assert messages == [(b"%d" % n, min(qos, number % 3)) for n in range(100)]
    if qos:
        assert [(await sender.receive()).packet_id for _ in range(100)] == list(range(2, 102))
    await sender.silence()
    assert running.broker.stats.internal_errors == 0


async def test_an_identifier_of_zero_in_a_run_to_many_ends_its_sender_alone(start: Any, dial: Any) -> None:
    running = await start()
    receivers = [await dial(f"r{number}", port=running.port) for number in range(110)]
    for receiver in receivers:
        await receiver.subscribe(("t", 0))
    sender = await dial("s", port=running.port)
    sender.publish("t", b"known from now on", qos=1, packet_id=1)
    await sender.receive()
    sender.send(frame(0x32, field("t"), b"\0\2\0x"), frame(0x32, field("t"), b"\0\0\0x"))
    await until(lambda: "s" not in running.broker.sessions)
    assert (await receivers[-1].receive()).payload == b"known from now on"
    await receivers[-1].receive()
    await receivers[-1].silence()
