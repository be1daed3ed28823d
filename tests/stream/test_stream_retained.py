"""What is retained at one broker all have, in one order: real sockets, a real stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_stream_peers import PeerHooks, publish

from raw_client import RawClient, until
from terrazzo.embedded.retained_log import RetainedLog, RetainedStats
from terrazzo.ports.stream import LogReader, LogState, LogUnusable
from terrazzo.times import now_us
from terrazzo_adapters.jetstream import Connection, JetStreamKeyed
from terrazzo_broker import Batch, Broker, BrokerSettings
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.persistence import DiskStorage
from turns_of_loop import longest_turn


class RetainingHooks(PeerHooks):
    """A batch is settled when what it wants retained is in the log."""

    retained: RetainedLog

    def take(self, batch: Batch) -> None:
        self.retained.hold(batch).settle()


class GatedLog:
    """A log that takes something while the gate is open."""

    def __init__(self, log: JetStreamKeyed) -> None:
        self._log = log
        self.gate = asyncio.Event()
        self.gate.set()
        self.has_room = True

    async def open(self) -> None:
        if not self.has_room:
            raise LogUnusable("stream.in_gib: the servers have less room")
        await self._log.open()

    async def state(self) -> LogState:
        return await self._log.state()

    async def put(self, key: Sequence[str], body: bytes, *, message_id: str, lasts_s: float = 0.0) -> int:
        await self.gate.wait()
        return await self._log.put(key, body, message_id=message_id, lasts_s=lasts_s)

    def read(self, after: int, created: str) -> LogReader:
        return self._log.read(after, created)


class Node:
    """A broker that retains what others do."""

    def __init__(self, connection: Connection, name: str, folder: Path | None, *, most_bytes: int) -> None:
        self.log = GatedLog(JetStreamKeyed(connection, "retained", most_bytes=most_bytes, room="stream.in_gib"))
        self.retained = RetainedLog(self.log, name=name, owner_bytes=100_000, now_us=now_us, stats=RetainedStats())
        hooks = RetainingHooks()
        hooks.retained = self.retained
        storage = None if folder is None else DiskStorage(folder)
        self.broker = Broker(BrokerSettings(sweep_interval_s=0.05, sys_interval_s=0), hooks, storage)
        self.may_do_without = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> Node:
        self.port = await self.broker.listen_tcp("127.0.0.1", 0)
        return self

    async def join(self) -> None:
        self.retained.attach(self.broker, may_do_without=self.may_do_without)
        self._tasks = [asyncio.create_task(self.retained.follow()), asyncio.create_task(self.retained.work())]
        await asyncio.wait_for(self.retained.loaded.wait(), 30)

    def topics(self, owner: str) -> dict[str, bytes]:
        """What it has retained of an owner."""
        found = {}
        for message in self.broker.retained.walk("#", owner):
            whole = None if message is None else self.broker.retained.whole(message, now_us())
            if whole is not None:
                found[whole.topic.decode()] = bytes(whole.payload)
        return found

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

    async def start(name: str, folder: Path | None = None, *, most_bytes: int = 1 << 20, joins: bool = True) -> Node:
        made = await Node(connection, name, folder, most_bytes=most_bytes).start()
        started.append(made)
        if joins:
            await made.join()
        return made

    yield start
    for each in started:
        await each.stop()


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., Any]]:
    """Connects clients: ``await dial(node, "owner-name")``."""
    clients: list[RawClient] = []

    async def connect(at: Node, client_id: str) -> RawClient:
        client = await RawClient.open(at.port, 5)
        clients.append(client)
        await client.connect(client_id)
        return client

    yield connect
    for client in clients:
        await client.finish()


async def retain(client: RawClient, topic: str, payload: bytes, **options: Any) -> int:
    return await publish(client, f"d/{topic}", payload, retain=True, **options)


async def test_what_is_retained_at_one_node_all_have(node: Any, dial: Any) -> None:
    a, b = await node("a"), await node("b")
    telling, other = await dial(a, "x-1"), await dial(a, "y-1")
    assert await retain(telling, "1", b"one", user_properties=[("k", "v")]) == 0
    assert a.topics("x") == {"d/1": b"one"}, "found at once where it was acknowledged"
    assert await retain(other, "1", b"of y") == 0
    assert await retain(telling, "2", b"two", message_expiry_interval=600) == 0
    assert await retain(telling, "3", b"three") == 0
    assert await retain(telling, "3", b"") == 0
    assert a.topics("x") == {"d/1": b"one", "d/2": b"two"}
    await until(lambda: b.topics("x") == a.topics("x") and b.topics("y") == {"d/1": b"of y"})
    c = await node("c")
    assert (c.topics("x"), c.topics("y")) == (a.topics("x"), {"d/1": b"of y"})
    hearing = await dial(c, "x-2")
    await hearing.subscribe(("d/#", 1))
    found = sorted([await hearing.receive() for _ in range(2)], key=lambda each: each.topic)
    assert [(each.topic, bytes(each.payload), each.retain, int(each.qos)) for each in found] == [
        ("d/1", b"one", True, 1),
        ("d/2", b"two", True, 1),
    ]
    assert found[0].user_properties == [("k", "v")]
    assert 590 < found[1].message_expiry_interval <= 600
    await hearing.silence()
    hearing.publish("d/1", b"by c", retain=True)  # at QoS 0
    await until(lambda: a.topics("x")["d/1"] == b"by c")
    a.retained.end_below("x", "d")
    await until(lambda: (a.topics("x"), b.topics("x"), c.topics("x")) == ({}, {}, {}))
    assert b.topics("y") == {"d/1": b"of y"}


async def test_the_last_one_wins_in_one_order_for_all(node: Any, dial: Any) -> None:
    nodes = [await node(name) for name in "abc"]
    clients = [await dial(each, "x-1") for each in nodes]

    async def tell(client: RawClient, name: int) -> None:
        for number in range(60):
            assert await retain(client, str(number % 3), f"{name}.{number}".encode()) == 0

    await asyncio.gather(*(tell(client, number) for number, client in enumerate(clients)))
    last = max([each.retained.stats.sequence for each in nodes])
    assert last <= 180
    await until(lambda: all(each.retained.stats.sequence == 180 for each in nodes))
    assert nodes[0].topics("x") == nodes[1].topics("x") == nodes[2].topics("x") == (await node("d")).topics("x")
    assert len(nodes[0].topics("x")) == 3


async def test_it_is_acknowledged_when_the_log_has_it(node: Any, dial: Any) -> None:
    a = await node("a")
    telling, other = await dial(a, "x-1"), await dial(a, "y-1")
    a.log.gate.clear()
    telling.publish("d/1", b"one", qos=1, packet_id=3, retain=True)
    telling.publish("d/1", b"two", qos=1, packet_id=4, retain=True)
    await telling.silence()
    assert a.topics("x") == {}
    assert await publish(other, "d/1", b"of another owner, who waits for nothing") == 0
    a.log.gate.set()
    assert [(await telling.receive()).packet_id for _ in range(2)] == [3, 4]
    assert a.topics("x") == {"d/1": b"two"}
    assert a.retained.stats.waiting_bytes == 0


async def test_what_waits_for_the_log_is_bounded(node: Any, dial: Any) -> None:
    a = await node("a")
    telling, other = await dial(a, "x-1"), await dial(a, "y-1")
    a.log.gate.clear()
    for number in range(1, 121):
        telling.publish(f"d/{number}", b"x" * 1_000, qos=1, packet_id=number, retain=True)
    await telling.silence()
    refused = a.retained.stats.refused
    assert 30 < refused < 60
    other.publish("d/1", b"x", qos=1, packet_id=1, retain=True)
    await other.silence()
    assert a.retained.stats.refused == refused, "another owner has a share of its own"
    a.log.gate.set()
    for _ in range(120):
        assert (await telling.receive()).reason_code == 0, "a report is acknowledged all the same"
    assert len(a.topics("x")) == 120 - refused


async def test_a_full_log_retains_no_more_and_says_so(node: Any, dial: Any) -> None:
    a = await node("a", most_bytes=20_000)
    telling = await dial(a, "x-1")
    for number in range(30):
        assert await retain(telling, str(number), b"x" * 1_000) == 0
    assert a.retained.stats.full > 5
    assert len(a.topics("x")) == 30 - a.retained.stats.full
    assert await retain(telling, "0", b"") == 0


async def test_what_a_node_had_before_goes_into_a_new_log_and_out_where_there_is_one(
    node: Any, dial: Any, tmp_path: Path
) -> None:
    a = await node("a", tmp_path / "a", joins=False)
    await retain_alone(a, await dial(a, "x-1"), b"of a")
    await a.join()
    b = await node("b", tmp_path / "b", joins=False)
    await retain_alone(b, await dial(b, "x-1"), b"of b")
    assert await retain(await dial(a, "x-2"), "2", b"new") == 0
    await b.join()
    await until(lambda: a.topics("x") == {"d/1": b"of a", "d/2": b"new"})
    assert b.topics("x") == a.topics("x")
    await b.stop()
    again = await node("b", tmp_path / "b", joins=False)
    assert again.topics("x") == a.topics("x"), "it is on its disk as well"


async def retain_alone(at: Node, client: RawClient, payload: bytes) -> None:
    """Retains a message at a broker that isn't one of several yet."""
    client.publish("d/1", payload, retain=True)
    await until(lambda: at.topics("x") == {"d/1": payload})


async def test_a_log_that_was_deleted_is_made_again_of_what_nodes_have(
    node: Any, dial: Any, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await node("a")
    telling = await dial(a, "x-1")
    assert await retain(telling, "1", b"one") == 0
    opening = a.log.open

    async def open_after_an_attempt() -> None:
        await until(lambda: a.retained.stats.again > 0, timeout_s=30)
        await opening()

    monkeypatch.setattr(a.log, "open", open_after_an_attempt)
    name = f"{connection.settings.name.upper()}_RETAINED"
    await connection.ask(f"STREAM.DELETE.{name}")
    assert await retain(telling, "2", b"two") == 0
    assert a.retained.stats.again > 0
    await until(lambda: a.topics("x") == {"d/1": b"one", "d/2": b"two"}, timeout_s=30)
    b = await node("b")
    assert b.topics("x").get("d/2") == b"two"


async def test_that_nothing_is_retained_any_more_is_forgotten_after_a_while(
    node: Any, dial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo.embedded.retained_log._REMOVED_S", 1.0)
    a = await node("a")
    telling = await dial(a, "x-1")
    assert await retain(telling, "1", b"one") == 0
    assert await retain(telling, "1", b"") == 0
    async with asyncio.timeout(30):
        while (state := await a.log.state()).last != state.first - 1:  # noqa: ASYNC110 - the servers tell nobody
            await asyncio.sleep(0.05)
    b = await node("b")
    assert b.topics("x") == {}
    assert await retain(telling, "2", b"two") == 0
    await until(lambda: b.topics("x") == {"d/2": b"two"})


async def test_a_leader_does_without_where_the_servers_have_no_room_and_joins_when_they_have(
    node: Any, dial: Any
) -> None:
    leader = await node("leader", joins=False)
    leader.log.has_room, leader.may_do_without = False, True
    await leader.join()
    telling = await dial(leader, "x-1")
    assert await retain(telling, "1", b"mine") == 0
    assert leader.topics("x") == {"d/1": b"mine"}
    leader.retained.end_below("x", "d")
    assert leader.topics("x") == {}
    assert await retain(telling, "2", b"later") == 0
    assert leader.retained.stats.kept == 0
    leader.log.has_room = True
    await until(lambda: leader.retained.stats.kept == 1)
    other = await node("other")
    assert other.topics("x") == {"d/2": b"later"}


async def test_servers_with_less_room_give_what_they_have(connection: Connection) -> None:
    log = JetStreamKeyed(connection, "retained", most_bytes=64 << 30, room="stream.in_gib")
    await log.open()
    assert (await log.state()).last == 0


async def test_a_node_with_many_retained_messages_joins_in_pieces(node: Any, dial: Any) -> None:
    a = await node("a")
    assert await retain(await dial(a, "x-1"), "1", b"one") == 0
    b = await node("b", joins=False)
    for number in range(40_000):
        b.broker.retained.put(f"d/own/{number}", ApplicationMessage(b"d/own/%d" % number, b"x", retain=True, owner="x"))
    async with longest_turn() as longest:
        await b.join()
    assert b.topics("x") == a.topics("x")
    assert longest.cpu_s < 0.05, "in one go it is ten times as long"


async def test_what_is_set_while_a_node_joins_stays(node: Any, dial: Any) -> None:
    a = await node("a")
    assert await retain(await dial(a, "x-1"), "1", b"one") == 0
    b = await node("b", joins=False)
    for number in range(20_000):
        b.broker.retained.put(f"d/{number}", ApplicationMessage(b"d/%d" % number, b"x", retain=True, owner="x"))
    joining = asyncio.create_task(b.join())
    await until(lambda: b.broker.core.retainer is not None)
    telling = await dial(b, "x-2")
    assert await retain(telling, "7", b"newer than what is gone") == 0
    await joining
    await until(lambda: b.topics("x") == {"d/1": b"one", "d/7": b"newer than what is gone"})
