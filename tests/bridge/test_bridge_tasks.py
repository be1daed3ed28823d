"""A bridge's tasks and callbacks, ended by a fault in the middle: that is shown, and no message is lost or stuck."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from bridge_rig import Peer
from local_broker import LocalBroker

from open_stores import supervisor
from running import Mosquitto
from terrazzo.ports.bridge import BridgeMessage, BridgeStatus
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.bridge import BridgeSettings, MqttBridge, TopicRule
from terrazzo_adapters.bridge.queue import MessageQueue
from terrazzo_adapters.bridge.queue_index import Capacity, QueueIndex
from terrazzo_adapters.bridge.sender import Sender
from terrazzo_adapters.bridge.spool import MessageSpool
from waiting import until


def message(number: int) -> BridgeMessage:
    return BridgeMessage("g/t1/r", b"%d" % number, qos=1)


class Rig:
    """A queue on a disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.tasks = supervisor()
        self.broker = LocalBroker()
        self.queue = MessageQueue(
            "hq",
            spool=MessageSpool(folder, name="hq"),
            index=QueueIndex(Capacity(100_000, 1 << 30, "drop_oldest")),
            status=BridgeStatus(),
            broker=self.broker,
            tasks=self.tasks,
        )
        self.durable: list[int] = []

    def offer(self, *numbers: int) -> None:
        for number in numbers:
            assert self.queue.offer(message(number))
            self.queue.when_durable(lambda number=number: self.durable.append(number))

    def take_all(self) -> list[int]:
        taken: list[int] = []
        while (entry := self.queue.next()) is not None:
            taken.append(int(entry[1].payload))
        return taken


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "queue")
    await made.queue.open()
    yield made
    await made.queue.close()


def plant_once(monkeypatch: pytest.MonkeyPatch, place: type, name: str, *, after: bool = False) -> None:
    """Has one call raise, before it did anything or after it did all."""
    work = getattr(place, name)

    def failing(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(place, name, work)
        if after:
            work(*arguments, **options)
        raise RuntimeError("planted")

    monkeypatch.setattr(place, name, failing)


@pytest.mark.parametrize("after", [False, True], ids=["not written", "written"])
async def test_the_writer_loses_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    plant_once(monkeypatch, MessageSpool, "commit", after=after)
    rig.offer(0, 1, 2)
    await until(lambda: rig.tasks.not_ready() == {"bridge hq writer": "RuntimeError"}, "publishers are not answered")
    assert rig.durable == []
    rig.offer(3)
    await until(lambda: rig.durable == [0, 1, 2, 3], "all are on disk")
    assert rig.take_all() == [0, 1, 2, 3]
    found = await rig.queue._in_thread(lambda: [int(each.payload) for _, each in rig.queue._spool.all()])
    assert found == [0, 1, 2, 3]
    assert rig.tasks.not_ready() == {}


async def test_the_writer_answers_whatever_one_that_waits_does(rig: Rig) -> None:
    def fail() -> None:
        raise RuntimeError("planted")

    rig.queue.ready.listen(fail)
    assert rig.queue.offer(message(0))
    rig.queue.when_durable(fail)
    rig.offer(1)
    await until(lambda: rig.durable == [1], "the next one is answered")
    assert rig.queue.ready.failures >= 1
    assert rig.tasks.degraded() == {}


async def test_a_broker_that_was_paused_reads_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo_adapters.bridge.queue._PENDING_BYTES", 200)
    plant_once(monkeypatch, LocalBroker, "resume")
    rig.offer(*range(5))
    assert rig.broker.paused == 1
    await until(lambda: "bridge hq writer" in rig.tasks.not_ready(), "the fault is shown")
    await until(lambda: rig.broker.paused == 0, "read from again, though nothing more came")
    assert rig.durable == [0, 1, 2, 3, 4]


async def test_the_reader_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.offer(*range(1_200))
    await until(lambda: len(rig.durable) == 1_200, "on disk")
    rig.queue.rewind()
    plant_once(monkeypatch, MessageSpool, "read")
    taken: list[int] = []
    rig.queue.ready.listen(lambda: taken.extend(rig.take_all()))
    assert rig.take_all() == []
    await until(lambda: rig.tasks.degraded() == {"bridge hq reader": "RuntimeError"}, "the fault is shown")
    assert rig.tasks.not_ready() == {}, "messages wait on disk"
    await until(lambda: len(taken) == 1_200, "all come")
    assert taken == list(range(1_200))


class Bridged:
    """A bridge between a broker that is played here and a real one."""

    def __init__(self, folder: Path, port: int) -> None:
        self.tasks: Supervisor = supervisor()
        self.broker = LocalBroker()
        settings = BridgeSettings(
            name="hq",
            host="127.0.0.1",
            port=port,
            client_id="bridge-hq",
            retry_s=1.0,
            outgoing=(TopicRule(filter="g/#"),),
            incoming=(TopicRule(filter="p2p/#"),),
        )
        self.bridge = MqttBridge(settings, self.broker, tasks=self.tasks, folder=folder)

    async def __aenter__(self) -> Bridged:
        await self.bridge.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.bridge.hang_up()
        await self.bridge.close()

    async def connected(self) -> None:
        await until(lambda: self.bridge.status().connected_since_us, "connected")

    async def failed(self, error: str) -> None:
        await until(lambda: self.tasks.degraded() == {"bridge hq": error}, "the fault is shown")
        assert "planted" in self.bridge.status().last_error
        assert self.tasks.not_ready() == {}


async def test_a_fault_in_the_connecting_thread_is_shown_at_once(
    tmp_path: Path, remote: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_once(monkeypatch, paho.Client, "reconnect")
    async with Bridged(tmp_path / "bridge", remote.port) as bridged:
        async with asyncio.timeout(2):  # the attempt itself has ten seconds
            await bridged.failed("RuntimeError")
        await bridged.connected()


async def test_a_message_that_the_local_broker_fails_on_comes_again(tmp_path: Path, remote: Mosquitto) -> None:
    async with Bridged(tmp_path / "bridge", remote.port) as bridged:
        await bridged.connected()
        bridged.broker.faults = 1
        with await asyncio.to_thread(Peer, remote.port) as peer:
            await asyncio.to_thread(peer.publish, "p2p/t1", b"1")
            await bridged.failed("ValueError")
            await asyncio.to_thread(peer.publish, "p2p/t1", b"2")
            await until(lambda: bridged.broker.taken == [b"1", b"2"], "both are taken")


async def test_a_remote_broker_without_room_gets_the_message_later(
    tmp_path: Path, remote: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut inside of a callback of paho's, which holds a lock meanwhile."""
    on_puback = Sender._on_puback

    def quota_exceeded(sender: Sender, identifier: int, reason: int) -> None:
        monkeypatch.setattr(Sender, "_on_puback", on_puback)
        on_puback(sender, identifier, 0x97)

    monkeypatch.setattr(Sender, "_on_puback", quota_exceeded)
    async with Bridged(tmp_path / "bridge", remote.port) as bridged:
        await bridged.connected()
        bridged.broker.queue.offer(message(0))
        await until(lambda: "0x97" in bridged.bridge.status().last_error, "the connection is cut")
        await until(lambda: bridged.bridge.status().sent == 1, "sent over the next connection")
        assert bridged.tasks.degraded() == {}, "no fault of this side"


async def test_a_fault_while_sending_leaves_no_message_behind(
    tmp_path: Path, remote: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Bridged(tmp_path / "bridge", remote.port) as bridged:
        await bridged.connected()
        with (await asyncio.to_thread(Peer, remote.port)).subscribe("g/#") as peer:
            plant_once(monkeypatch, Sender, "_remote_name")
            for number in range(20):
                bridged.broker.queue.offer(message(number))
            await bridged.failed("RuntimeError")
            await until(lambda: bridged.bridge.status().sent == 20, "all are acknowledged")
            numbers = [str(number) for number in range(20)]
            await until(lambda: peer.payloads() == numbers, "all have come, once and in order")
