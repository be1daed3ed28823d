"""Persistent sessions and wills of several brokers: a client finds them wherever it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from test_stream_peers import PeerHooks, publish

from raw_client import RawClient, until
from terrazzo.embedded.sessions.former import FormerSessions
from terrazzo.embedded.sessions.leader_storage import LeaderStorage
from terrazzo.embedded.sessions.log import SessionLog
from terrazzo.ports.stream import LogUnavailable
from terrazzo.replication.front_lease import FrontLease
from terrazzo.runtime.fronts.sessions import FrontSessions
from terrazzo.times import now_us
from terrazzo_adapters.jetstream import Connection, JetStreamKeyed, JetStreamQueues, JetStreamRecords
from terrazzo_broker import Accept, Batch, Broker, BrokerSettings, ConnectRequest
from terrazzo_broker.persistence import DiskStorage

LASTS = {"clean_start": False, "session_expiry_interval": 600}


class SessionHooks(PeerHooks):
    """A client is let in when its session is here; its former connection is ended elsewhere, as fronts do."""

    node: Node

    async def authenticate(self, request: ConnectRequest) -> Accept:
        accepted = await super().authenticate(request)
        for other in self.node.others:
            if other is not self.node and not other.is_dead:
                other.broker.disconnect(request.client_id, 0x8E)
        await self.node.sessions.takeover.take(request.client_id, clean=request.clean_start, owner=accepted.owner)
        return accepted

    def take(self, batch: Batch) -> None:
        if self.node.holds is None:
            self.node.log.sender.hold(batch).settle()
        else:
            self.node.holds.append(batch)


class GatedStates(JetStreamKeyed):
    """Records that change while the gate is open."""

    gate: asyncio.Event

    async def replace(self, *key: Any, **options: Any) -> int:
        await self.gate.wait()
        return await super().replace(*key, **options)


class Node:
    """A broker among several, as a front has it."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        others: list[Node],
        *,
        most_bytes: int = 1 << 20,
        folder: Path | None = None,
        gone: frozenset[str] = frozenset(),
        **settings: Any,
    ) -> None:
        self.folder = folder  # of one that was alone before
        self.gone = gone  # clients that were deleted since then
        self.name, self.others = name, others
        self.is_dead = False
        self.is_held = True  # by its lease, as far as it knows
        self.holds: list[Batch] | None = None
        self.states = GatedStates(connection, "sessions", most_bytes=most_bytes, room="stream.in_gib")
        self.states.gate = asyncio.Event()
        self.states.gate.set()
        self.queues = JetStreamQueues(connection, "queues", most_bytes=most_bytes, room="stream.in_gib")
        self.records = JetStreamRecords(connection)
        clock = asyncio.get_running_loop().time
        self.lease = FrontLease(self.records, node=name, run=name, lease_s=60, clock=clock)
        self._most_bytes = most_bytes
        self._settings = BrokerSettings(sweep_interval_s=0.05, sys_interval_s=0, **settings)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> Node:
        await self.records.open()
        await self.lease.claim(1)
        self.log = SessionLog(
            self.states,
            self.queues,
            self.records,
            own=(self.name, self.lease.epoch),
            owner_bytes=self._most_bytes,
            now_us=now_us,
        )
        self.sessions = FrontSessions(self.log, now_us, lambda: self.is_held)
        hooks = SessionHooks()
        hooks.node = self
        storage = self.sessions.storage
        former = None if self.folder is None else DiskStorage(self.folder)
        self.broker = Broker(self._settings, hooks, storage if former is None else LeaderStorage(storage, former))
        self.log.attach(self.broker)
        storage.feeder.attach(self.broker.core)
        self.sessions.takeover.attach(self.broker.core)
        works = (self.log.writers.work, self.log.sender.work, self.log.follow, self.log.follow_queues, self.log.work)
        self._tasks = [asyncio.create_task(work()) for work in (*works, storage.feeder.work, storage.work)]
        await asyncio.wait_for(self.log.loaded(), 30)
        if former is not None:
            self.moved = await self.move(former)
        self.port = await self.broker.listen_tcp("127.0.0.1", 0)
        return self

    async def move(self, former: DiskStorage) -> int:
        """Has the log have what the folder has."""
        name = f"{self.name}-{self.lease.epoch}"
        owner_of = self.owner_of
        moving = FormerSessions(former, self.states, self.queues, name=name, owner_of=owner_of, now_us=now_us)
        return await moving.move(self.broker.core)

    def owner_of(self, client_id: str) -> str:
        """As the hooks say."""
        return "" if client_id in self.gone else client_id.partition("-")[0]

    async def kill(self) -> None:
        """As if its process were killed: nothing more leaves it; the others find it dead."""
        self.is_dead = True
        await self._cancel()
        await self.lease.give_back()

    async def knows(self, client_id: str, *filters: str) -> None:
        """Waits until it queues for a session with these filters."""

        def does() -> bool:
            known = self.log.view.find(client_id)
            return known is not None and set(known.filters) == set(filters)

        await until(does, f"{self.name} knows {client_id}")

    async def _cancel(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        if not self.is_dead:
            await self.broker.close(1.0)
            await self._cancel()
        else:
            await self.broker.stop_listening()
            for each in self.broker.core.connections:
                each.transport.abort()


@pytest.fixture
async def node(connection: Connection) -> AsyncIterator[Callable[..., Any]]:
    """Starts nodes: ``await node("a")``; ``prepare`` is given one before it is started."""
    started: list[Node] = []

    async def start(name: str, *, prepare: Callable[[Node], None] | None = None, **settings: Any) -> Node:
        made = Node(connection, name, started, **settings)
        started.append(made)
        if prepare is not None:
            prepare(made)
        return await made.start()

    yield start
    for each in started:
        await each.stop()


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., Any]]:
    """Connects clients: ``await dial(node, "owner-name")``; the client has its CONNACK in ``connack``."""
    clients: list[RawClient] = []

    async def connect(at: Node, client_id: str, version: int = 5, **options: Any) -> RawClient:
        client = await RawClient.open(at.port, version)
        clients.append(client)
        client.connack = await client.connect(client_id, **options)  # type: ignore[attr-defined]
        return client

    yield connect
    for client in clients:
        await client.finish()


async def heard(client: RawClient, count: int) -> list[bytes]:
    """So many payloads, acknowledged at QoS 1."""
    found = []
    for _ in range(count):
        packet = await client.receive()
        found.append(bytes(packet.payload))
        if packet.qos == 1:
            client.send(mqtt5.PubAckPacket(packet.packet_id))
    return found


async def test_a_client_finds_its_session_at_another_node(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", **LASTS)
    assert not hearing.connack.session_present
    await hearing.subscribe(("d/#", 1))
    await b.knows("x-1", "d/#")
    telling, other = await dial(b, "x-2"), await dial(b, "y-1")
    assert await publish(telling, "d/1", b"while it is there") == 0
    assert await heard(hearing, 1) == [b"while it is there"]
    await hearing.finish()
    await until(lambda: "x-1" not in a.broker.sessions)
    near = await dial(a, "x-3")
    for number in range(5):
        assert await publish(telling if number % 2 else near, "d/1", b"%d" % number) == 0
    assert await publish(other, "d/1", b"of another owner") == 0
    telling.publish("d/1", b"at QoS 0")
    await telling.silence()
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    assert await heard(again, 5) == [b"0", b"1", b"2", b"3", b"4"]
    await again.silence()
    assert await publish(near, "d/1", b"after that") == 0
    assert await heard(again, 1) == [b"after that"]
    near.publish("d/1", b"at QoS 0, as it is there")
    assert await heard(again, 1) == [b"at QoS 0, as it is there"]
    await until(lambda: b.log.view.stats.messages == 0)


async def test_one_of_3_1_1_does_too(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", 4, clean=False)
    assert hearing.connack == (0x20, b"\0\0")
    await hearing.subscribe(("d/#", 1))
    await b.knows("x-1", "d/#")
    await hearing.finish()
    assert await publish(await dial(b, "x-2"), "d/1", b"one") == 0
    again = await dial(b, "x-1", 4, clean=False)
    assert again.connack == (0x20, b"\1\0")
    assert (await again.receive())[1][-3:] == b"one"
    clean = await dial(a, "x-1", 4)
    assert clean.connack == (0x20, b"\0\0")
    assert (await dial(b, "x-1", 4, clean=False)).connack == (0x20, b"\0\0")


async def test_a_connection_that_lives_is_taken_over_with_its_session(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    telling = await dial(b, "x-2")
    for number in range(6):
        at = (a, b)[number % 2]
        hearing = await dial(at, "x-1", **LASTS)
        assert bool(hearing.connack.session_present) is (number > 0)
        if not number:
            await hearing.subscribe(("d/#", 1))
            await b.knows("x-1", "d/#")
        assert await publish(telling, "d/1", b"%d" % number) == 0
        assert await heard(hearing, 1) == [b"%d" % number]
    here = await dial(b, "x-1", **LASTS)
    assert here.connack.session_present, "at the same node"


async def test_what_a_killed_node_had_is_there_at_another(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 2))
    await b.knows("x-1", "d/#")
    telling = await dial(b, "x-2")
    assert await publish(telling, "d/1", b"one") == 0
    assert bytes((await hearing.receive()).payload) == b"one"  # not acknowledged
    await a.kill()
    assert await publish(telling, "d/1", b"two") == 0
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    assert await heard(again, 2) == [b"one", b"two"]
    await again.silence()


async def test_a_message_at_qos_2_is_there_once_across_nodes(node: Any, dial: Any) -> None:
    a, b, c = [await node(name) for name in "abc"]
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 2))
    await b.knows("x-1", "d/#")
    telling = await dial(b, "x-2")
    telling.publish("d/1", b"one", qos=2, packet_id=9)
    assert isinstance(await telling.receive(), mqtt5.PubRecPacket)
    telling.send(mqtt5.PubRelPacket(9))
    assert isinstance(await telling.receive(), mqtt5.PubCompPacket)
    first = await hearing.receive()
    assert (bytes(first.payload), int(first.qos), first.duplicate) == (b"one", 2, False)
    again = await dial(b, "x-1", **LASTS)
    second = await again.receive()
    assert (bytes(second.payload), second.packet_id, second.duplicate) == (b"one", first.packet_id, True)
    again.send(mqtt5.PubRecPacket(second.packet_id))
    assert isinstance(await again.receive(), mqtt5.PubRelPacket)
    third = await dial(c, "x-1", **LASTS)
    released = await third.receive()
    assert isinstance(released, mqtt5.PubRelPacket)
    assert released.packet_id == first.packet_id
    third.send(mqtt5.PubCompPacket(first.packet_id))
    await third.silence()
    last = await dial(a, "x-1", **LASTS)
    await last.silence()


async def test_a_publish_at_qos_2_is_taken_once_across_nodes(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    telling = await dial(a, "x-1", **LASTS)
    telling.publish("d/1", b"one", qos=2, packet_id=5)
    assert isinstance(await telling.receive(), mqtt5.PubRecPacket)
    b.holds = []
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    again.publish("d/1", b"one", qos=2, packet_id=5, duplicate=True)
    assert isinstance(await again.receive(), mqtt5.PubRecPacket)
    assert b.holds == [], "it was taken at the other node"
    again.send(mqtt5.PubRelPacket(5))
    assert isinstance(await again.receive(), mqtt5.PubCompPacket)
    a.holds = []
    telling = await dial(a, "x-1", **LASTS)
    telling.publish("d/1", b"two", qos=2, packet_id=6)
    await until(lambda: len(a.holds) == 1)
    joining = asyncio.create_task(dial(b, "x-1", **LASTS))
    await until(lambda: a.broker.client("x-1") is None)
    a.holds[0].settle()  # stored after its connection has ended
    again = await joining
    again.publish("d/1", b"two", qos=2, packet_id=6, duplicate=True)
    assert isinstance(await again.receive(), mqtt5.PubRecPacket)
    assert b.holds == []


async def test_nothing_is_answered_that_the_log_does_not_have(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", **LASTS)
    a.states.gate.clear()
    suback = asyncio.create_task(hearing.subscribe(("d/#", 1)))
    await asyncio.sleep(0.1)
    assert not suback.done()
    assert not b.log.view.find("x-1").filters
    a.states.gate.set()
    assert (await suback).reason_codes
    await b.knows("x-1", "d/#")

    async def away(*_args: object, **_options: object) -> int:
        raise LogUnavailable("away")

    telling = await dial(b, "x-2")
    append, b.queues.append = b.queues.append, away
    telling.publish("d/1", b"one", qos=1, packet_id=3)
    await telling.silence()
    await until(lambda: b.log.queue_stats.again > 1)
    b.queues.append = append
    assert (await telling.receive(30)).packet_id == 3
    assert await heard(hearing, 1) == [b"one"]


async def test_what_is_retained_comes_with_a_subscription(node: Any, dial: Any) -> None:
    a = await node("a")
    telling = await dial(a, "x-2")
    assert await publish(telling, "d/1", b"kept", retain=True) == 0
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 1))
    packet = await hearing.receive()
    assert (bytes(packet.payload), packet.retain, int(packet.qos)) == (b"kept", True, 1)


async def test_a_session_ends_with_its_time_or_its_client(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(a, "x-1", clean_start=False, session_expiry_interval=1)
    await hearing.subscribe(("d/#", 1))
    await b.knows("x-1", "d/#")
    await hearing.finish()
    assert await publish(await dial(b, "x-2"), "d/1", b"one") == 0
    await until(lambda: b.log.view.stats.sessions == 0 and a.log.view.stats.sessions == 0, timeout_s=20)
    assert a.log.stats.expired + b.log.stats.expired == 1
    await until(lambda: b.log.view.stats.messages == 0)
    again = await dial(b, "x-1", **LASTS)
    assert not again.connack.session_present
    await again.subscribe(("d/#", 1))
    await a.knows("x-1", "d/#")
    await again.finish()
    await until(lambda: "x-1" not in b.broker.sessions)
    a.log.end("x-1")
    b.log.end("x-1")
    await until(lambda: a.log.view.stats.sessions == 0 and b.log.view.stats.sessions == 0)


async def test_what_waits_is_bounded(node: Any, dial: Any) -> None:
    a = await node("a", queued_messages=5)
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 1))
    await hearing.finish()
    await until(lambda: "x-1" not in a.broker.sessions)
    telling = await dial(a, "x-2")
    for number in range(5):
        await publish(telling, "d/1", b"%d" % number)
    await until(lambda: a.log.view.stats.messages == 5)
    for number in range(5, 9):
        await publish(telling, "d/1", b"%d" % number)
    assert a.log.view.stats.refused == 4
    again = await dial(a, "x-1", **LASTS)
    assert await heard(again, 5) == [b"0", b"1", b"2", b"3", b"4"]
    await again.silence()


async def test_a_shared_subscription_has_a_session_while_its_client_is_there(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    first, second = await dial(a, "x-1", **LASTS), await dial(b, "x-2", **LASTS)
    for each in (first, second):
        await each.subscribe(("$share/g/d/#", 1))
    for at in (a, b):
        for client_id in ("x-1", "x-2"):
            await at.knows(client_id, "$share/g/d/#")
    telling = await dial(a, "x-3")
    for number in range(4):
        assert await publish(telling, "d/1", b"%d" % number) == 0
    assert sorted(await heard(first, 2) + await heard(second, 2)) == [b"0", b"1", b"2", b"3"]
    await second.finish()
    await a.knows("x-2")
    for number in range(2):
        assert await publish(telling, "d/1", b"%d" % number) == 0
    assert await heard(first, 2) == [b"0", b"1"]


def will(payload: bytes, delay_s: int = 0) -> mqtt5.Will:
    return mqtt5.Will("d/will", payload=payload, qos=mqtt5.QoS(1), will_delay_interval=delay_s)


async def test_a_will_is_published_once(node: Any, dial: Any) -> None:
    a, b, c = [await node(name) for name in "abc"]
    hearing = await dial(c, "x-9", **LASTS)
    await hearing.subscribe(("d/will", 1))
    for at in (a, b):
        await at.knows("x-9", "d/will")
    dying = await dial(a, "x-1", will=will(b"cut"))
    await dying.finish()
    assert await heard(hearing, 1) == [b"cut"]
    leaving = await dial(a, "x-2", will=will(b"not this one"))
    leaving.send(mqtt5.DisconnectPacket())
    await dial(a, "x-3", will=will(b"of a killed node"))
    await dial(a, "x-4", will=will(b"a moment later", 1), **LASTS)
    await until(lambda: set(b.log.wills) == {"x-3", "x-4"})
    await a.kill()
    await asyncio.gather(b.log.look(), c.log.look())
    assert sorted(await heard(hearing, 2)) == [b"a moment later", b"of a killed node"]
    await hearing.silence()
    assert b.log.stats.wills + c.log.stats.wills == 2
    await until(lambda: not b.log.wills and not c.log.wills)


async def test_a_delayed_will_is_not_published_if_its_client_comes_back_elsewhere(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(b, "x-9", **LASTS)
    await hearing.subscribe(("d/will", 1))
    await a.knows("x-9", "d/will")
    dying = await dial(a, "x-1", will=will(b"one", 2), **LASTS)
    await dying.finish()
    await until(lambda: "x-1" in b.log.wills and b.log.wills["x-1"][1].due_us > 0)
    again = await dial(b, "x-1", **LASTS)
    assert again.connack.session_present
    await until(lambda: not a.log.wills and not b.log.wills)
    slow = await dial(a, "x-2", will=will(b"two", 1), **LASTS)
    await slow.finish()
    assert await heard(hearing, 1) == [b"two"]
    await hearing.silence()
    await until(lambda: not a.log.wills and not b.log.wills)


async def test_what_is_in_the_log_twice_counts_once(node: Any, dial: Any) -> None:
    a = await node("a")
    hearing = await dial(a, "x-1", **LASTS)
    await hearing.subscribe(("d/#", 1))
    assert await publish(await dial(a, "x-2"), "d/1", b"one") == 0
    assert await heard(hearing, 1) == [b"one"]
    (first,) = await a.queues.read(0, (await a.queues.state()).created).next(5)
    await a.queues.append(("x-1",), first.body, message_id="of-another-start-q1")
    assert await heard(hearing, 1) == [b"one"], "another message with the same words"
    await a.queues.append(("x-1",), first.body, message_id="of-another-start-q01")  # the log has forgotten the id
    await a.queues.append(("x-1",), first.body, message_id="of-another-start-q2")
    assert await heard(hearing, 1) == [b"one"]
    await hearing.silence()
