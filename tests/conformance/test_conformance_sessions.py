"""What outlives a connection, and what ends with it."""

from __future__ import annotations

import asyncio
import time

import conformance_wire as wire
import pytest
from conformance_wire import PUBLISH

TAKEN_OVER = 0x8E


async def test_session_present(dial, version, name):
    first = await dial(version, name, keep=True)
    assert not first.connack.session_present
    await first.leave()
    again = await dial(version, name, keep=True)
    assert again.connack.session_present
    await again.leave()
    clean = await dial(version, name)
    assert not clean.connack.session_present
    await clean.leave()
    assert not (await dial(version, name, keep=True)).connack.session_present


async def test_a_clean_start_forgets_everything(dial, version, name):
    peer, writer = await dial(version, name, keep=True), await dial(version, name + "p")
    await peer.subscribe((name, 1))
    await writer.publish(name, b"unacknowledged", qos=1)
    await peer.expect(PUBLISH)
    await peer.leave()
    await writer.publish(name, b"queued", qos=1)
    clean = await dial(version, name)
    await writer.publish(name, b"live", qos=1)
    await clean.silence()


async def test_a_session_keeps_subscriptions_and_messages(dial, version, name):
    peer, writer = await dial(version, name, keep=True), await dial(version, name + "p")
    await peer.subscribe((f"{name}/#", 2), (f"{name}/+", 1))
    await peer.leave()
    for qos in (0, 1, 2):
        await writer.publish(f"{name}/{qos}", qos=qos)
    again = await dial(version, name, keep=True)
    await writer.publish(f"{name}/live", qos=1)
    received = [(await again.expect(PUBLISH)).topic for _ in range(3)]
    if received[0].endswith("/0"):  # it may queue QoS 0 too
        received = [*received[1:], (await again.expect(PUBLISH)).topic]
    assert received == [f"{name}/1", f"{name}/2", f"{name}/live"]
    await again.silence()


async def test_a_clean_session_of_3_1_1_ends_with_its_connection(dial, name):
    first = await dial(4, name)
    await first.subscribe((name, 1))
    await first.leave()
    again = await dial(4, name, keep=True)
    assert not again.connack.session_present
    await (await dial(4, name + "p")).publish(name, qos=1)
    await again.silence()


@pytest.mark.parametrize("options", [{}, {"session_expiry": 0}])
async def test_a_session_without_expiry_ends_with_its_connection(dial, name, options):
    first = await dial(5, name, **options)
    await first.leave()
    assert not (await dial(5, name, clean=False)).connack.session_present


async def test_the_old_connection_is_closed(dial, version, name):
    first = await dial(version, name, keep=True)
    await first.subscribe((name, 1))
    second = await dial(version, name, keep=True)
    assert second.connack.session_present
    assert await first.refused() == (TAKEN_OVER if version == 5 else 0)
    second.send(wire.publish(name, version=version))
    await second.take()
    third = await dial(version, name)
    assert not third.connack.session_present
    await second.refused()


async def test_protocols_share_their_sessions(dial, name):
    old = await dial(4, name, keep=True)
    await old.subscribe((name, 1))
    await old.leave()
    await (await dial(5, "")).publish(name, b"x", qos=1, content_type="c")
    new = await dial(5, name, keep=True)
    assert new.connack.session_present
    assert (await new.take()).content_type == "c"


async def expiring(dial, name: str, expiry_s: int, disconnect_expiry_s: int | None, wait_s: float) -> bool:
    """Whether the session is still there after ``wait_s``."""
    first = await dial(5, name, session_expiry=expiry_s)
    await first.leave(0, **({} if disconnect_expiry_s is None else {"session_expiry": disconnect_expiry_s}))
    await asyncio.sleep(wait_s)  # the clock is what this is about
    again = await dial(5, name, clean=False, session_expiry=expiry_s)
    await again.leave()
    return bool(again.connack.session_present)


async def test_session_expiry(dial, name):
    cases = [(1, None, 2.2, False), (1, 100, 2.2, True), (100, 1, 2.2, False), (100, 0, 0, False), (3, None, 1.5, True)]
    cases.append((0xFFFFFFFF, None, 2.2, True))
    outcomes = await asyncio.gather(
        *(expiring(dial, f"{name}{number}", *case[:3]) for number, case in enumerate(cases))
    )
    assert outcomes == [case[3] for case in cases]


async def test_expiry_counts_from_the_last_connection(dial, name):
    peer = await dial(5, name, session_expiry=1)
    await asyncio.sleep(1.6)  # the clock is what this is about: connected for longer than the expiry
    await peer.leave()
    again = await dial(5, name, clean=False, session_expiry=1)
    assert again.connack.session_present


async def test_a_session_that_ends_with_its_connection_stays_so(dial, name):
    peer = await dial(5, name)
    peer.send(wire.disconnect(0, session_expiry=10))
    assert await peer.refused() == 0x82


async def test_messages_expire_in_the_queue(dial, name):
    peer, writer = await dial(5, name, keep=True), await dial(5, name + "p")
    await peer.subscribe((name, 2))
    await writer.publish(name, b"begun", qos=2, message_expiry=1)
    begun = await peer.expect(PUBLISH)
    assert begun.message_expiry == 1
    await peer.leave()
    started = time.monotonic()
    for payload, expiry in ((b"short", 1), (b"long", 60), (b"endless", None)):
        await writer.publish(name, payload, qos=1, **({} if expiry is None else {"message_expiry": expiry}))
    await asyncio.sleep(1.2)  # the clock is what this is about
    again = await dial(5, name, keep=True)
    resent = await again.expect(PUBLISH)  # begun before it expired: finished all the same
    assert (resent.packet_id, resent.payload, resent.dup) == (begun.packet_id, b"begun", True)
    long, endless = await again.expect(PUBLISH), await again.expect(PUBLISH)
    waited_s = time.monotonic() - started
    assert long.payload == b"long"
    assert 60 - waited_s - 1 <= long.message_expiry <= 59
    assert (endless.payload, endless.message_expiry) == (b"endless", None)


async def test_disconnect_ends_the_connection(dial, version, name):
    watcher, peer = await dial(version, name), await dial(version, name + "p")
    await watcher.subscribe((name, 0))
    peer.send(wire.disconnect(), wire.publish(name, b"after the end", version=version))
    assert await peer.end() == []
    await watcher.silence()


@pytest.mark.parametrize("reason", [0x00, 0x04, 0x80, 0x83, 0x93])
async def test_disconnect_reasons_of_a_client(dial, name, reason):
    peer = await dial(5, name)
    await peer.leave(reason, reason_string="why", user=[("a", "b")])


async def test_sessions_are_told_apart_by_the_whole_client_id(dial, version, name):
    peers = [
        await dial(version, client_id, keep=True) for client_id in (name, name.upper(), name + " ", name + "\ufeff")
    ]
    for peer in peers:
        assert not peer.connack.session_present
        await peer.silence()
