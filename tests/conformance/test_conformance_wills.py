"""Wills, their delay, and the keep-alive that sets them off."""

from __future__ import annotations

import asyncio
import time

import conformance_wire as wire
import pytest
from conformance_wire import Will

KEEP_ALIVE_TIMEOUT = 0x8D


@pytest.fixture
async def watcher(dial, version, name):
    """Who is subscribed to the will."""
    peer = await dial(version, name + "watcher")
    await peer.subscribe((name, 2))
    return peer


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_will_is_published(dial, version, name, watcher, qos, retain):
    peer = await dial(version, name, will=Will(name, b"\x00gone", qos, retain))
    peer.vanish()
    message = await watcher.take()
    assert (message.topic, message.payload, message.qos, message.retain) == (name, b"\x00gone", qos, False)
    await watcher.silence()
    late = await dial(version, name + "late")
    await late.subscribe((name, 0))
    if retain:
        assert (await late.take()).retain
    await late.silence()
    await late.unsubscribe(name)
    await late.publish(name, qos=1, retain=True)


async def test_a_goodbye_takes_the_will_along(dial, version, name, watcher):
    peer = await dial(version, name, will=Will(name), keep=True)
    await peer.leave()
    await watcher.silence()
    again = await dial(version, name, keep=True)  # nor is it still there
    again.vanish()
    await (await dial(version, name + "other")).silence()
    await watcher.silence()


@pytest.mark.parametrize("how", ["closing", "a protocol error", "a half-closed line", "a takeover"])
async def test_each_other_end_sets_it_off(dial, version, name, watcher, how):
    peer = await dial(version, name, will=Will(name, how.encode()))
    if how == "closing":
        peer.writer.close()
    elif how == "a protocol error":
        peer.send(b"\x00\x00")
    elif how == "a half-closed line":
        peer.writer.write_eof()
    else:
        await dial(version, name)
    assert (await watcher.take()).payload == how.encode()
    await watcher.silence()


async def test_no_will_no_message(dial, version, name, watcher):
    peer = await dial(version, name)
    peer.vanish()
    await (await dial(version, name)).silence()
    await watcher.silence()


async def test_an_empty_will(dial, version, name, watcher):
    peer = await dial(version, name, will=Will(name, b""))
    peer.vanish()
    assert (await watcher.take()).payload == b""


async def test_a_silent_client_is_closed_at_one_and_a_half_times_its_keep_alive(dial, version, name, watcher):
    started = time.monotonic()
    peer = await dial(version, name, keep_alive=1, will=Will(name))
    assert await peer.refused() == (KEEP_ALIVE_TIMEOUT if version == 5 else 0)
    assert 1.4 < time.monotonic() - started < 3
    assert (await watcher.take()).payload == b"gone"


async def test_any_packet_shows_life_and_none_is_needed_without_keep_alive(dial, version, name):
    quiet, busy = await dial(version, name), await dial(version, name + "b", keep_alive=1)
    for step in range(5):
        await asyncio.sleep(0.5)  # the clock is what this is about: half a keep-alive
        if step % 2:
            await busy.publish(name, qos=1)
        else:
            await busy.silence()
    await quiet.silence()


async def test_messages_to_a_client_show_no_life_of_it(dial, version, name):
    peer, writer = await dial(version, name, keep_alive=1), await dial(version, name + "p")
    await peer.subscribe((name, 0))
    started = time.monotonic()
    while time.monotonic() - started < 1.2:
        await writer.publish(name)
        await asyncio.sleep(0.2)  # the clock is what this is about: well within a keep-alive
    packets = await peer.end()
    assert {each.kind for each in packets} <= {wire.PUBLISH, wire.DISCONNECT}
    assert time.monotonic() - started < 3


async def test_part_of_a_packet_shows_no_life(dial, version, name):
    peer = await dial(version, name, keep_alive=1)
    started = time.monotonic()
    for byte in wire.publish(name, b"x" * 20, version=version)[:12]:
        peer.send(bytes((byte,)))
        await asyncio.sleep(0.12)  # the clock is what this is about: over one and a half keep-alives in all
    assert await peer.refused() == (KEEP_ALIVE_TIMEOUT if version == 5 else 0)
    assert time.monotonic() - started < 3


# 5.0


async def test_a_will_carries_its_properties_in_order(dial, name):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 2))
    properties = {
        "payload_format": 1,
        "content_type": "text/plain",
        "response_topic": "answer",
        "correlation_data": b"\x00",
        "user": [("b", "2"), ("a", "1"), ("b", "1")],
    }
    peer = await dial(5, name, will=Will(name, properties={**properties, "message_expiry": 30, "will_delay": 0}))
    peer.vanish()
    message = await watcher.take()
    assert message.message_expiry == 30
    assert {each: message.properties[each] for each in properties} == properties


@pytest.mark.parametrize("reason", [0x04, 0x80])
async def test_a_disconnect_may_ask_for_the_will(dial, name, reason):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 0))
    peer = await dial(5, name, will=Will(name))
    await peer.leave(reason)
    assert (await watcher.take()).payload == b"gone"


async def test_a_will_is_delayed(dial, name):
    """By the delay, or until the session ends, whichever is first."""
    cases = {"delay": (1, 100), "session": (100, 1), "both": (1, 1), "no session": (100, 0)}
    watcher = await dial(5, name + "w")
    await watcher.subscribe((f"{name}/#", 0))
    peers = []
    for case, (delay_s, expiry_s) in cases.items():
        will = Will(f"{name}/{case}", properties={"will_delay": delay_s})
        peers.append(await dial(5, f"{name}{case}", session_expiry=expiry_s, will=will))
    started = time.monotonic()
    for peer in peers:
        peer.vanish()
    assert (await watcher.take()).topic == f"{name}/no session"  # it waits for nothing, so it is the first
    assert {(await watcher.take()).topic for _ in range(3)} == {f"{name}/{case}" for case in list(cases)[:3]}
    assert 1 <= time.monotonic() - started < 10  # of which one second is waited for, not a hundred


async def test_who_comes_back_in_time_has_no_will_published(dial, name):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 0))
    peer = await dial(5, name, keep=True, will=Will(name, properties={"will_delay": 1}))
    peer.vanish()
    again = await dial(5, name, keep=True)
    await asyncio.sleep(1.7)  # the clock is what this is about: past the delay
    await watcher.silence()
    await again.leave()


async def test_a_clean_start_ends_the_session_and_the_delay(dial, name):
    watcher = await dial(5, name + "w")
    await watcher.subscribe((name, 0))
    peer = await dial(5, name, keep=True, will=Will(name, properties={"will_delay": 100}))
    peer.vanish()
    await dial(5, name)
    assert (await watcher.take()).payload == b"gone"
