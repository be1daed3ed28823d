"""What a broker that was alone had of sessions, wills and retained messages is that of all nodes afterwards, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mqtt5
from test_stream_peers import PeerHooks, publish
from test_stream_sessions import LASTS, Node, dial, heard, node, will

from raw_client import RawClient, until
from terrazzo.ports.stream import LogFull, LogUnavailable
from terrazzo.times import now_us
from terrazzo_broker import Batch, Broker, BrokerSettings
from terrazzo_broker.persistence import DiskStorage

__all__ = ["dial", "node"]

Dial = Callable[..., Any]


class AloneHooks(PeerHooks):
    """Of a broker that no other hears."""

    def take(self, batch: Batch) -> None:
        batch.settle()


class Alone:
    """A broker in a folder."""

    broker: Broker
    port: int


@asynccontextmanager
async def alone(folder: Path) -> AsyncIterator[Alone]:
    """One whose clock stands still, so that nothing is due before it ends."""
    made, at_us = Alone(), now_us()
    made.broker = Broker(BrokerSettings(sys_interval_s=0), AloneHooks(), DiskStorage(folder, now_us=lambda: at_us))
    made.broker.core.now_us = lambda: at_us  # type: ignore[method-assign]
    made.port = await made.broker.listen_tcp("127.0.0.1", 0)
    try:
        yield made
    finally:
        await made.broker.close(1.0)


async def leave_behind(at: Alone, dial: Dial) -> mqtt5.PublishPacket:
    """A session with all that one can have, and a will that waits; the message at QoS 1 that was not acknowledged."""
    hearing: RawClient = await dial(at, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 2))
    telling = await dial(at, "x-2")
    assert await publish(telling, "d/1", b"sent") == 0
    sent = await hearing.receive()
    telling.publish("d/1", b"confirmed", qos=2, packet_id=9)
    assert isinstance(await telling.receive(), mqtt5.PubRecPacket)
    telling.send(mqtt5.PubRelPacket(9))
    assert isinstance(await telling.receive(), mqtt5.PubCompPacket)
    hearing.send(mqtt5.PubRecPacket((await hearing.receive()).packet_id))
    assert isinstance(await hearing.receive(), mqtt5.PubRelPacket)
    hearing.publish("other", b"taken", qos=2, packet_id=7)
    assert (await hearing.receive()).packet_id == 7
    await hearing.finish()
    await until(lambda: at.broker.client("x-1") is None)
    for payload in (b"one", b"x" * 2_000, b"two"):
        assert await publish(telling, "d/1", payload) == 0
    await publish(telling, "e/1", b"kept", retain=True)
    dying = await dial(at, "x-3", will=will(b"cut", 1), **LASTS)
    await dying.finish()
    await until(lambda: at.broker.client("x-3") is None)
    return sent


async def test_a_client_of_a_broker_that_was_alone_finds_its_session_at_any_node(
    tmp_path: Path, node: Any, dial: Dial
) -> None:
    b = await node("b")
    watching = await dial(b, "x-9", **LASTS)
    await watching.subscribe(("d/will", 1))
    async with alone(tmp_path) as before:
        sent = await leave_behind(before, dial)
    a = await node("a", folder=tmp_path)
    assert a.moved == 2
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    resent, release = await again.receive(), await again.receive()
    assert (bytes(resent.payload), resent.packet_id, resent.duplicate) == (b"sent", sent.packet_id, True)
    assert isinstance(release, mqtt5.PubRelPacket)
    again.send(mqtt5.PubAckPacket(resent.packet_id), mqtt5.PubCompPacket(release.packet_id))
    assert await heard(again, 4) == [b"one", b"x" * 2_000, b"two", b"cut"]
    b.holds = []
    again.publish("other", b"taken", qos=2, packet_id=7, duplicate=True)
    assert (await again.receive()).packet_id == 7
    assert b.holds == [], "it was taken before"
    assert await heard(watching, 1) == [b"cut"]
    await watching.silence()
    retained = await dial(a, "x-8")
    await retained.subscribe(("e/#", 1))
    assert bytes((await retained.receive()).payload) == b"kept"


async def test_what_was_moved_is_not_moved_again_and_what_others_know_better_stays(
    tmp_path: Path, node: Any, dial: Dial
) -> None:
    async with alone(tmp_path) as before:
        for name in ("x-1", "x-2", "x-3"):
            hearing = await dial(before, name, **LASTS)
            await hearing.subscribe(("old/#", 1))
            await hearing.finish()
    b = await node("b")
    known = await dial(b, "x-2", **LASTS)
    await known.subscribe(("new/#", 1))
    await b.knows("x-2", "new/#")
    a: Node = await node("a", folder=tmp_path, gone=frozenset({"x-3"}))
    for at in (a, b):
        await at.knows("x-1", "old/#")
        await at.knows("x-2", "new/#")
        assert at.log.view.stats.sessions == 2, "none of a client that was deleted meanwhile"
    assert not a.broker.sessions
    assert a.broker.core.tree.count == 2, "filters of the log's sessions, and none of the folder's"
    await a.stop()
    async with alone(tmp_path) as after:
        assert not after.broker.sessions


async def leave_waiting(folder: Path, dial: Dial, payloads: list[bytes]) -> None:
    """A session for which these wait."""
    async with alone(folder) as before:
        hearing = await dial(before, "x-1", **LASTS)
        await hearing.subscribe(("d/#", 1))
        await hearing.finish()
        await until(lambda: before.broker.client("x-1") is None)
        telling = await dial(before, "x-2")
        for payload in payloads:
            assert await publish(telling, "d/1", payload) == 0


async def test_a_node_that_dies_while_it_moves_what_it_had_begins_anew(tmp_path: Path, node: Any, dial: Dial) -> None:
    payloads = [b"%d" % number for number in range(5)]
    await leave_waiting(tmp_path, dial, payloads)
    b, made = await node("b"), []

    def prepare(a: Node) -> None:
        a.states.gate.clear()
        made.append(a)

    starting = asyncio.create_task(node("a", folder=tmp_path, prepare=prepare))
    await until(lambda: b.log.view.stats.messages == 5, "what waits is in the log, and the session isn't")
    starting.cancel()
    await asyncio.wait({starting})
    await made[0].kill()
    await made[0].broker.core.storage.close()

    a = await node("a", folder=tmp_path)
    assert (a.moved, a.lease.epoch) == (1, 2)
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    assert await heard(again, 5) == payloads
    await again.silence()


async def test_what_is_moved_waits_for_room_and_is_there_once_whatever_the_log_answers(
    tmp_path: Path, node: Any, dial: Dial
) -> None:
    payloads = [b"%d" % number + b"x" * (100 << 10) for number in range(8)]  # two or three together
    await leave_waiting(tmp_path, dial, payloads)
    b, failures = await node("b"), []

    def prepare(a: Node) -> None:
        append, replace = a.queues.append, a.states.replace

        async def append_at_last(*given: Any, **options: Any) -> int:
            if not failures:
                failures.append(LogFull("the stream is full"))
                raise failures[-1]
            sequence = await append(*given, **options)
            if len(failures) == 1:
                failures.append(LogUnavailable("no answer"))
                raise failures[-1]
            return sequence

        async def replace_unheard(*given: Any, **options: Any) -> int:
            sequence = await replace(*given, **options)
            if len(failures) == 2:
                failures.append(LogUnavailable("no answer"))
                raise failures[-1]
            return sequence

        a.queues.append, a.states.replace = append_at_last, replace_unheard  # type: ignore[method-assign]

    await node("a", folder=tmp_path, prepare=prepare)
    assert len(failures) == 3
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    assert await heard(again, 8) == payloads
    await again.silence()
