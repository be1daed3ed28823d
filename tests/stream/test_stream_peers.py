"""Clients of several brokers that hear each other, by real sockets and real requests of the log's servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from raw_client import RawClient, until
from terrazzo.embedded.peer_link import PeerLimits, PeerStats
from terrazzo.embedded.peers import Peers
from terrazzo.ports.stream import Calls
from terrazzo.replication.front_lease import FrontLease
from terrazzo.replication.members import NodeTaken
from terrazzo.replication.peer_frame import (
    VERSION,
    PeerFrame,
    PeerMessage,
    PeerState,
    decode_peer_answer,
    encode_peer_frame,
    peer_calls,
)
from terrazzo_adapters.jetstream import Connection, JetStreamCalls, JetStreamRecords
from terrazzo_broker import Accept, Batch, Broker, BrokerSettings, Client, ConnectRequest, PublishGrant

RETAIN_AS_PUBLISHED = 8


class PeerHooks:
    """The owner is what stands before the first dash of the client id; what is published below ``d`` is durable."""

    peers: Peers

    async def authenticate(self, request: ConnectRequest) -> Accept:
        return Accept("someone", owner=request.client_id.partition("-")[0])

    def authorize_publish(self, client: Client, topic: str) -> PublishGrant:
        return PublishGrant(topic, durable=topic.startswith("d/"))

    def authorize_subscribe(self, client: Client, topic_filter: str) -> bool:
        return True

    def take(self, batch: Batch) -> None:
        self.peers.hold(batch).settle()

    def on_connected(self, client: Client) -> None:
        """Nothing is noted."""

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Nothing is noted."""

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """Nothing is noted."""


class GatedCalls:
    """Requests that are made while the gate is open."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, node: str, body: bytes, *, timeout_s: float) -> bytes:
        await self.gate.wait()
        return await self._calls.ask(node, body, timeout_s=timeout_s)

    async def serve(self, node: str, answer: Callable[[bytes], bytes]) -> None:
        await self._calls.serve(node, answer)


class Node:
    """A broker among several."""

    def __init__(self, connection: Connection, name: str, *, limits: PeerLimits, lease_s: float) -> None:
        self.name = name
        self.records = JetStreamRecords(connection)
        clock = asyncio.get_running_loop().time
        self.lease = FrontLease(self.records, node=name, run=name, lease_s=lease_s, clock=clock)
        self.calls = GatedCalls(JetStreamCalls(connection))
        self._limits, self._lease_s, self._clock = limits, lease_s, clock
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, now_us: int) -> Node:
        await self.records.open()
        await self.lease.claim(now_us)
        self.peers = Peers(
            self.calls,
            self.records,
            name=self.name,
            epoch=self.lease.epoch,
            lease_s=self._lease_s,
            clock=self._clock,
            stats=PeerStats(),
            limits=self._limits,
        )
        hooks = PeerHooks()
        hooks.peers = self.peers
        self.broker = Broker(BrokerSettings(sweep_interval_s=0.05, sys_interval_s=0), hooks)
        self.peers.attach(self.broker)
        self._tasks = [
            asyncio.create_task(self.calls.serve(peer_calls(self.name), self.peers.answer)),
            asyncio.create_task(self.peers.work()),
        ]
        self.port = await self.broker.listen_tcp("127.0.0.1", 0)
        await self.peers.look()
        return self

    @property
    def stats(self) -> PeerStats:
        return self.peers.stats

    async def knows(self, filters: int) -> None:
        """Waits until it knows of so many filters of clients at other nodes."""
        await until(lambda: self.stats.filters == filters, f"{self.name} knows {filters} filters: {self.stats}")

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await self.broker.close(1.0)


@pytest.fixture
async def node(connection: Connection) -> AsyncIterator[Callable[..., Any]]:
    """Starts nodes: ``await node("a")``."""
    started: list[Node] = []

    async def start(name: str, *, now_us: int = 1, limits: PeerLimits | None = None, lease_s: float = 60.0) -> Node:
        made = Node(connection, name, limits=limits or PeerLimits(8 << 20), lease_s=lease_s)
        started.append(made)
        return await made.start(now_us)

    yield start
    for each in started:
        await each.stop()


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., Any]]:
    """Connects clients: ``await dial(node, "owner-name")``."""
    clients: list[RawClient] = []

    async def connect(at: Node, client_id: str, *, version: int = 5, **options: Any) -> RawClient:
        client = await RawClient.open(at.port, version)
        clients.append(client)
        await client.connect(client_id, **options)
        return client

    yield connect
    for client in clients:
        await client.finish()


async def publish(client: RawClient, topic: str, payload: bytes, **options: Any) -> int:
    """Publishes at QoS 1; the reason code of the PUBACK."""
    client.publish(topic, payload, qos=1, packet_id=7, **options)
    return int((await client.receive()).reason_code)


async def test_a_message_goes_to_nodes_where_somebody_listens(node: Any, dial: Any) -> None:
    a, b, c = await node("a"), await node("b"), await node("c")
    hearing = await dial(b, "x-1")
    await hearing.subscribe(("t/+", 2 | RETAIN_AS_PUBLISHED))
    await a.knows(1)
    telling = await dial(a, "x-2")
    telling.publish("t/0", b"zero")
    telling.publish("t/0", b"more")
    assert await publish(telling, "t/1", b"one", user_properties=[("k", "v")], message_expiry_interval=60) == 0
    telling.publish("t/2", b"two", qos=2, packet_id=9)
    assert (await telling.receive()).packet_id == 9
    telling.send(b"\x62\x02\0\x09")
    await telling.receive()
    found = [await hearing.receive() for _ in range(4)]
    assert [(each.topic, bytes(each.payload), int(each.qos)) for each in found] == [
        ("t/0", b"zero", 0),
        ("t/0", b"more", 0),
        ("t/1", b"one", 1),
        ("t/2", b"two", 2),
    ]
    assert (found[2].user_properties, found[2].message_expiry_interval) == ([("k", "v")], 60)
    assert await publish(telling, "u/1", b"nobody") == 0x10, "no matching subscribers"
    await until(lambda: (a.stats.sent, b.stats.received, b.stats.unheard) == (4, 4, 0))
    assert (c.stats.received, c.stats.sent) == (0, 0)
    old = await dial(c, "x-3", version=4)
    await old.subscribe(("#", 1))
    await a.knows(2)
    telling.publish("t/3", b"three", qos=2, packet_id=10)
    await telling.receive()
    assert (await old.receive())[0] == 0x32, "at the QoS that was granted"
    assert int((await hearing.receive()).qos) == 2
    hearing.send(b"\xa2\x08\0\x05\0\0\x03t/+")
    await hearing.receive()
    await a.knows(1)
    assert await publish(telling, "t/4", b"four") == 0
    assert b.stats.received == 5
    await old.finish()
    await a.knows(0)
    assert await publish(telling, "t/4", b"five") == 0x10


async def test_messages_stay_with_their_owner(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    ours, theirs = await dial(b, "x-1"), await dial(b, "y-1")
    await ours.subscribe(("#", 1))
    await theirs.subscribe(("#", 1), ("t/1", 1), packet_id=2)
    await a.knows(3)
    telling, other = await dial(a, "x-2"), await dial(a, "y-2")
    assert await publish(telling, "t/1", b"ours") == 0
    assert await publish(other, "t/1", b"theirs") == 0
    assert bytes((await ours.receive()).payload) == b"ours"
    assert bytes((await theirs.receive()).payload) == b"theirs"
    await ours.silence()
    await theirs.silence()
    await until(lambda: (a.stats.sent, b.stats.received) == (2, 2))
    stranger = await dial(a, "z-1")
    assert await publish(stranger, "t/1", b"nobody's") == 0x10
    assert a.stats.sent == 2


async def test_a_publish_is_acknowledged_when_the_other_node_has_it_or_is_gone(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    hearing = await dial(b, "x-1")
    await hearing.subscribe(("d/t", 1))
    await a.knows(1)
    telling, apart = await dial(a, "x-2"), await dial(a, "y-2")
    a.calls.gate.clear()
    telling.publish("d/t", b"one", qos=1, packet_id=3)
    await telling.silence()
    assert await publish(apart, "d/t", b"of another owner, who waits for nobody") == 0
    a.calls.gate.set()
    assert (await telling.receive()).packet_id == 3
    assert bytes((await hearing.receive()).payload) == b"one"
    a.calls.gate.clear()
    telling.publish("d/t", b"two", qos=1, packet_id=4)
    telling.publish("d/t", b"three", qos=1, packet_id=5)
    await telling.silence()
    await b.lease.give_back()
    await a.peers.look()
    assert [(await telling.receive()).packet_id for _ in range(2)] == [4, 5]
    assert (a.stats.nodes, a.stats.filters, a.stats.lost, a.stats.waiting_bytes) == (0, 0, 2, 0)
    assert await publish(telling, "d/t", b"four") == 0
    a.calls.gate.set()


async def test_what_waits_for_a_node_is_bounded_for_each_owner(node: Any, dial: Any) -> None:
    a, b = await node("a", limits=PeerLimits(10_000, 25_000)), await node("b")
    for owner in "xyz":
        await (await dial(b, f"{owner}-1")).subscribe(("d/t", 1))
    await a.knows(3)
    x, y, z = await dial(a, "x-2"), await dial(a, "y-2"), await dial(a, "z-2")
    a.calls.gate.clear()

    async def fill(client: RawClient, count: int, qos: int) -> None:
        for number in range(1, count + 1):
            client.publish("d/t", b"x" * 1_000, qos=qos, **({"packet_id": number} if qos else {}))
        await client.silence()

    await fill(x, 20, 0)
    assert a.stats.dropped_qos0 == 20 - 4, "the half, of messages of 1,201 bytes"
    await fill(x, 20, 1)
    assert (a.stats.dropped_qos0, a.stats.dropped) == (16, 16)
    await fill(y, 20, 1)
    assert a.stats.dropped == 16 + 12
    await fill(z, 20, 0)
    assert a.stats.dropped_qos0 == 16 + 20, "the half of all is taken"
    await fill(z, 20, 1)
    assert a.stats.waiting_bytes == 20 * 1_203, "what is on its way counts as well"
    a.calls.gate.set()
    assert len({(await y.receive()).packet_id for _ in range(20)}) == 20, "reports are stored all the same"
    await until(lambda: a.stats.waiting_bytes == 0)
    assert b.stats.received == 20


async def test_a_node_that_starts_again_is_told_everything_anew(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    at_b, at_a = await dial(b, "x-1"), await dial(a, "x-2")
    await at_b.subscribe(("t", 1))
    await at_a.subscribe(("u", 1), ("v", 1))
    await a.knows(1)
    await b.knows(2)
    await b.stop()  # without a word
    b = await node("b", now_us=b.lease.epoch + 1, lease_s=0.1)
    await b.knows(2)
    await a.knows(0)
    at_b = await dial(b, "x-1")
    await at_b.subscribe(("w", 1))
    await a.knows(1)
    assert await publish(at_a, "w", b"one") == 0
    assert bytes((await at_b.receive()).payload) == b"one"
    at_b.publish("u", b"two", qos=1, packet_id=4)
    assert bytes((await at_a.receive()).payload) == b"two"


async def test_a_front_that_does_not_show_that_it_lives_is_declared_dead(node: Any, dial: Any) -> None:
    a, b = await node("a", lease_s=0.3), await node("b")
    await (await dial(b, "x-1")).subscribe(("d/t", 1))
    await a.knows(1)
    telling = await dial(a, "x-2")
    a.calls.gate.clear()
    telling.publish("d/t", b"one", qos=1, packet_id=3)
    await telling.silence()
    while a.stats.nodes:
        await a.peers.look()
        await asyncio.sleep(0.05)
    assert (await telling.receive()).packet_id == 3
    with pytest.raises(NodeTaken, match="declared dead"):
        await b.lease.renew(version="", seen_us=0, clients=0, frames=0)
    a.calls.gate.set()


async def test_many_filters_are_named_in_several_frames(node: Any, dial: Any) -> None:
    a = await node("a")
    for number in range(5):
        client = await dial(a, f"x-{number}")
        await client.subscribe(*((f"{number}/{n}", 1) for n in range(900)))
    own = await dial(a, "x-9")
    await own.subscribe(("p2p/x-9", 1), ("$SYS/#", 1), ("$share/g/p2p/x-9", 1), ("$share/g/t", 1), packet_id=2)
    b = await node("b")
    await b.knows(4_501)
    telling = await dial(b, "x-a")
    assert await publish(telling, "3/877", b"one") == 0
    assert await publish(telling, "p2p/x-9", b"two") == 0x10


async def test_a_frame_is_taken_once_and_in_its_order(node: Any, dial: Any) -> None:
    a = await node("a")
    hearing = await dial(a, "x-1")
    await hearing.subscribe(("t", 1))
    epoch = a.lease.epoch

    def tell(number: int, *, of: int = 5, to: int = epoch, begins: bool = False, ends: bool = False) -> PeerState:
        message = PeerMessage("x", b"t", str(number).encode(), 1)
        heard = [("x", "u")] if begins else []
        frame = PeerFrame(VERSION, "f", of, to, number, begins, ends, heard, [], [message])
        return PeerState(decode_peer_answer(a.peers.answer(encode_peer_frame(frame))).state)

    assert tell(7) is PeerState.ANEW
    assert tell(7, to=epoch + 1, begins=True) is PeerState.ANEW
    assert tell(8, begins=True, ends=True) is PeerState.TAKEN
    assert a.stats.filters == 1
    assert tell(8, begins=True) is PeerState.TAKEN, "its answer was lost"
    assert tell(10) is PeerState.ANEW, "one is missing"
    assert tell(9) is PeerState.TAKEN
    assert tell(3, of=4, begins=True) is PeerState.REFUSED, "of an earlier start"
    assert tell(2, of=6) is PeerState.ANEW
    assert tell(2, of=6, begins=True, ends=True) is PeerState.TAKEN
    assert decode_peer_answer(a.peers.answer(b"\xff")).state == PeerState.REFUSED
    assert [bytes((await hearing.receive()).payload) for _ in range(3)] == [b"8", b"9", b"2"]
    await hearing.silence()


async def test_a_message_goes_to_one_member_of_a_shared_subscription(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    members = [await dial(a, "x-1"), await dial(b, "x-2"), await dial(b, "x-3")]
    for each in members:
        await each.subscribe(("$share/g/t/#", 1))
    apart = await dial(b, "x-4")
    await apart.subscribe(("t/#", 1))
    await (await dial(b, "y-1")).subscribe(("$share/g/t/#", 1))
    await a.knows(3)
    telling = await dial(a, "x-5")
    for number in range(40):
        assert await publish(telling, f"t/{number % 4}", str(number).encode()) == 0
    assert [int((await apart.receive()).payload) for _ in range(40)] == list(range(40)), "who isn't a member hears all"
    counts = {0: 20, 1: 10, 2: 10}
    heard = [[int((await each.receive()).payload) for _ in range(counts[n])] for n, each in enumerate(members)]
    assert sorted(number for each in heard for number in each) == list(range(40)), "nodes in turn, and members there"
    for each in members:
        await each.silence()

    a.calls.gate.clear()
    for number in range(40, 44):
        telling.publish("t/1", str(number).encode(), qos=1, packet_id=number)
    assert len([await telling.receive() for _ in range(4)]) == 4
    await b.lease.give_back()
    await a.peers.look()
    assert sorted([int((await members[0].receive()).payload) for _ in range(4)]) == [40, 41, 42, 43]
    assert a.stats.lost == 4, "what those at the node that is gone were to hear, beside the shared ones"
    a.calls.gate.set()
