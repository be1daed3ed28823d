"""MQTT 3.1 (``MQIsdp``, level 3), by bytes: what differs from 3.1.1; the level's highest bit, which bridges set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mqtt5 import ConnAckReasonCode

from raw_client import RawClient, connect_4, field, frame, publish_4, subscribe_4, until
from terrazzo_broker import Refuse

Dial = Callable[..., Awaitable[RawClient]]
ACCEPTED, REFUSED_VERSION, REFUSED_ID, REFUSED_LOGIN = (
    (0x20, b"\0\0"),
    (0x20, b"\0\1"),
    (0x20, b"\0\2"),
    (0x20, b"\0\5"),
)


def connect_3(
    client_id: str = "old", *, flags: int = 2, level: int = 3, name: str = "MQIsdp", rest: bytes = b""
) -> bytes:
    """A CONNECT of 3.1."""
    return frame(0x10, field(name), bytes((level, flags)), b"\0\0", field(client_id), rest)


async def old(dial: Dial, client_id: str = "old", **options: Any) -> RawClient:
    """A client of 3.1 that is connected."""
    client = await dial(None, version=4)
    client.send(connect_3(client_id, **options))
    assert await client.receive() == ACCEPTED
    return client


async def test_it_is_let_in_and_known_for_what_it_is(running: Any, dial: Dial) -> None:
    client = await old(dial)
    assert running.hooks.requests[-1].protocol == 3
    assert [each.protocol for each in running.broker.clients()] == [3]
    await client.silence()


@pytest.mark.parametrize("client_id", ["a", "x" * 23, "x" * 24, "x" * 300, "Ümläut 7"])
async def test_client_ids(dial: Dial, client_id: str) -> None:
    await old(dial, client_id)


@pytest.mark.parametrize("flags", [0, 2])
async def test_an_empty_client_id_is_refused(dial: Dial, flags: int) -> None:
    client = await dial(None, version=4)
    client.send(connect_3("", flags=flags))
    assert await client.receive() == REFUSED_ID
    await client.closed()


@pytest.mark.parametrize(("name", "level"), [("MQIsdp", 4), ("MQIsdp", 2), ("MQIsdp", 5), ("MQTT", 3), ("MQTT", 0x83)])
async def test_names_and_levels_that_do_not_go_together(dial: Dial, name: str, level: int) -> None:
    client = await dial(None, version=4)
    client.send(connect_3(name=name, level=level))
    assert await client.receive() == REFUSED_VERSION
    await client.closed()


async def test_connack_has_no_session_present(dial: Dial) -> None:
    for _ in range(2):
        client = await old(dial, "stays", flags=0)
        client.send(subscribe_4(1, ("kept", 1)))
        await client.receive()
        await client.finish()
    again = await dial(None, version=4)
    assert await again.connect("stays", clean=False) == (0x20, b"\1\0"), "3.1.1 is told"


async def test_a_refusal_of_the_hooks(running: Any, dial: Dial) -> None:
    async def verdict(request: Any) -> Refuse:
        return Refuse(ConnAckReasonCode.NOT_AUTHORIZED)

    running.hooks.verdict = verdict
    client = await dial(None, version=4)
    client.send(connect_3())
    assert await client.receive() == REFUSED_LOGIN


@pytest.mark.parametrize(
    ("flags", "rest", "username", "password"),
    [
        (0xC2, field("u") + field("p"), "u", b"p"),
        (0x82, field("u"), "u", None),
        (0xC2, field("u"), "u", None),
        (0x82, b"", None, None),
        (0xC2, b"", None, None),
    ],
)
async def test_what_a_flag_announces_may_be_missing(
    running: Any, dial: Dial, flags: int, rest: bytes, username: str | None, password: bytes | None
) -> None:
    """MQTT 3.1, section 3.1: the remaining length goes before the flags of user name and password."""
    await old(dial, flags=flags, rest=rest)
    request = running.hooks.requests[-1]
    assert (request.username, request.password) == (username, password)


@pytest.mark.parametrize("flags", [0x03, 0x0A, 0x22])
async def test_flags_that_3_1_does_not_define_are_not_looked_at(dial: Dial, flags: int) -> None:
    await old(dial, flags=flags)


@pytest.mark.parametrize(
    ("flags", "rest"),
    [(0x42, field("p")), (0x06, b""), (0x1E, field("w") + field("m")), (0x02, field("x")), (0x82, b"\0\5u")],
    ids=["password without user name", "will missing", "will QoS 3", "bytes left", "cut"],
)
async def test_what_is_wrong_in_3_1_too(dial: Dial, flags: int, rest: bytes) -> None:
    client = await dial(None, version=4)
    client.send(connect_3(flags=flags, rest=rest))
    await client.closed()


async def test_a_refused_filter_is_answered_by_the_qos_that_was_asked_for(running: Any, dial: Dial) -> None:
    """3.1 has no return code for it; so does Mosquitto."""
    running.hooks.may_subscribe = lambda client, pattern: pattern == "mine"
    client = await old(dial)
    client.send(subscribe_4(7, ("mine", 0), ("theirs", 1), ("bad/#/x", 2)))
    assert await client.receive() == (0x90, b"\0\7\0\1\2")
    running.broker.publish("theirs", b"secret")
    running.broker.publish("mine", b"1")
    assert await client.receive() == (0x30, field("mine") + b"1")
    assert running.broker.stats.subscribes_refused == 2


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_messages_go_both_ways_between_the_versions(dial: Dial, qos: int) -> None:
    older, newer = await old(dial), await dial(None, version=4)
    assert await newer.connect("new") == ACCEPTED
    for client in (older, newer):
        client.send(subscribe_4(1, ("t", 2)))
        assert await client.receive() == (0x90, b"\0\1\2")
    older.send(publish_4("t", b"x", qos=qos, packet_id=9))
    answers = {0: [], 1: [(0x40, b"\0\x09")], 2: [(0x50, b"\0\x09")]}[qos]
    got = [await older.receive() for _ in range(1 + len(answers))]
    assert sorted(got) == sorted([*answers, await newer.receive()])


async def test_dup_on_what_is_sent_again(dial: Dial) -> None:
    """MQTT 3.1, section 2.1: DUP may be set on PUBREL, SUBSCRIBE and UNSUBSCRIBE too."""
    client = await old(dial)
    client.send(frame(0x8A, b"\0\1", field("t"), b"\1"))
    assert await client.receive() == (0x90, b"\0\1\1")
    client.send(publish_4("other", b"x", qos=2, packet_id=5), publish_4("other", b"x", qos=2, packet_id=5, dup=True))
    assert [await client.receive() for _ in range(2)] == [(0x50, b"\0\5")] * 2
    client.send(b"\x6a\2\0\5", b"\x6a\2\0\5")
    assert [await client.receive() for _ in range(2)] == [(0x70, b"\0\5")] * 2
    client.send(frame(0xAA, b"\0\2", field("t")))
    assert await client.receive() == (0xB0, b"\0\2")
    strict = await dial(None, version=4)
    await strict.connect("strict")
    strict.send(frame(0x8A, b"\0\1", field("t"), b"\1"))
    await strict.closed()


async def test_a_session_is_kept_and_resent_as_in_3_1_1(running: Any, dial: Dial) -> None:
    client = await old(dial, flags=0)
    client.send(subscribe_4(1, ("t", 1)))
    await client.receive()
    await client.finish()
    await until(lambda: not running.broker.clients(), "the broker has not seen the end of the connection")
    running.broker.publish("t", b"x", qos=1)
    again = await old(dial, flags=0)
    first, body = await again.receive()
    assert (first, body[-1:]) == (0x32, b"x")
    again.writer.transport.abort()
    third = await old(dial, flags=0)
    assert await third.receive() == (0x3A, body), "with DUP"


@pytest.mark.parametrize(("name", "level"), [("MQIsdp", 0x83), ("MQTT", 0x84)])
async def test_a_bridge_keeps_the_retain_flag_and_does_not_hear_itself(
    running: Any, dial: Dial, name: str, level: int
) -> None:
    bridge = await old(dial, "bridge", name=name, level=level)
    bridge.send(subscribe_4(1, ("#", 1), ("$share/g/t", 1)))
    assert await bridge.receive() == (0x90, b"\0\1\1\1")
    bridge.send(publish_4("mine", b"1"))
    running.broker.publish("kept", b"2", retain=True)
    assert await bridge.receive() == (0x31, field("kept") + b"2")
    await bridge.silence()
    plain = await dial(None, version=4)
    plain.send(connect_4("plain"))
    await plain.receive()
    plain.send(subscribe_4(1, ("#", 1)))
    assert [await plain.receive() for _ in range(2)] == [(0x90, b"\0\1\1"), (0x31, field("kept") + b"2")]
    running.broker.publish("kept", b"3", retain=True)
    assert await plain.receive() == (0x30, field("kept") + b"3")
