"""Clients that are away: long payloads of what waits for them are on disk alone, and come back exactly."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from broker_process import BrokerProcess
from commit_rig import HOUR_S, Clock, Rig, crash
from persistence_client import Client, until

from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.persistence import keys
from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.persistence.payloads import MEMORY_BYTES
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.storage import MemoryStorage

Start = Callable[..., Awaitable[Rig]]

LARGE = {"queued_bytes": 64 << 20, "packet_bytes": 8 << 20}


def payload(number: int, size: int) -> bytes:
    """One of its own."""
    return random.Random(number).randbytes(size)


async def go_away(rig: Rig, client: Client, client_id: str) -> None:
    """Ends a connection without a word."""
    await client.finish()
    await until(lambda: rig.broker.client(client_id) is None, "end of the connection")


async def subscribe_and_leave(rig: Rig, *names: str, qos: int = 1) -> None:
    """Sessions whose clients are away, subscribed to ``t``."""
    for name in names:
        client = await rig.dial(name)
        await client.subscribe(("t", qos))
        await go_away(rig, client, name)


def in_memory(rig: Rig, name: str) -> list[int]:
    """The lengths of the payloads that a session has in memory."""
    session = rig.broker.sessions[name]
    kept = [*session.inflight.values(), *(session.queue or ())]
    return [len(message.payload) for message in kept if message is not None]


async def until_let_go(rig: Rig, *names: str) -> None:
    """Waits until sessions have no long payload in memory."""
    await until(lambda: all(max(in_memory(rig, name), default=0) <= MEMORY_BYTES for name in names), "room in memory")


async def publish(rig: Rig, publisher: Client, *payloads: bytes, qos: int = 1) -> None:
    """Publishes on ``t``; each is acknowledged."""
    for number, each in enumerate(payloads, 1):
        publisher.publish("t", each, qos=qos, packet_id=number)
    for _ in payloads:
        assert int((await publisher.receive()).reason_code) == 0


async def test_what_waits_for_absent_clients_is_not_in_memory(start: Start) -> None:
    rig = await start(**LARGE)
    await subscribe_and_leave(rig, "s")
    share = rig.broker.sessions["s"].share
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(200):
            rig.broker.publish("t", payload(number, 100_000), qos=1)
            if number % 20 == 19:
                await until(lambda: not rig.storage._commits.changes, "commit")
        await until_let_go(rig, "s")
        await until(lambda: rig.storage._commits._group is None, "end of the last commit")
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()
    assert rig.broker.sessions["s"].queued_bytes == share.bytes > 20_000_000, "the limits count them as ever"
    assert share.memory_bytes == rig.broker.memory.queued()[""].bytes < 100_000
    back = await rig.dial("s", receive_max=5)
    for number in range(200):
        packet = await back.receive()
        assert packet.payload == payload(number, 100_000)
        back.send(mqtt5.PubAckPacket(packet.packet_id))
    await back.ping()
    await until(lambda: not rig.broker.sessions["s"].inflight, "last acknowledgement")
    assert (share.messages, share.bytes, share.disk_bytes) == (0, 0, 0)


async def test_of_what_was_not_acknowledged_heads_are_in_memory(start: Start) -> None:
    rig = await start()
    client = await rig.dial("s")
    await client.subscribe(("t", 1))
    for number in range(10):
        rig.broker.publish("t", payload(number, 5_000), qos=1)
        await client.receive()
    memory = rig.broker.memory
    await until(lambda: memory.inflight()[""].bytes > 50_000, "payloads in the account")
    await go_away(rig, client, "s")
    await until_let_go(rig, "s")
    await until(lambda: 1_000 < memory.inflight()[""].bytes < 3_000, "heads in the account")
    assert memory.inflight()[""].items == 10
    assert memory.queued()[""].bytes == 0


@pytest.mark.parametrize("ends", ["", "restart", "crash"])
async def test_payloads_are_the_same_after_an_absence(start: Start, ends: str) -> None:
    """What was inflight, what waited already and what came while they were away; a payload that both have is one."""
    rig = await start()
    sizes = [0, 1, 1_024, 1_025, 8_192, 8_193, 100_000]
    payloads = [payload(number, size) for number, size in enumerate(sizes * 3)]
    clients = [await rig.dial(name, receive_max=5) for name in ("s-1", "s-2")]
    publisher = await rig.dial("p", expiry_s=0)
    for client in clients:
        await client.subscribe(("t", 1))
    await publish(rig, publisher, *payloads[:14])
    for client, name in zip(clients, ("s-1", "s-2"), strict=True):
        await go_away(rig, client, name)
    await publish(rig, publisher, *payloads[14:])
    await until_let_go(rig, "s-1", "s-2")
    if ends:
        await (crash(rig) if ends == "crash" else rig.close())
        rig = await start()
        await until_let_go(rig, "s-1", "s-2")
        assert rig.broker.memory.queued()[""].bytes < 2 * len(payloads) * (MEMORY_BYTES + 200)
    for name in ("s-1", "s-2"):
        back = await rig.dial(name, receive_max=3)
        for number, expected in enumerate(payloads):
            packet = await back.receive()
            assert packet.payload == expected
            assert packet.duplicate == (number < 5)
            back.send(mqtt5.PubAckPacket(packet.packet_id))
        await back.ping()
        await back.disconnect()
    share = rig.broker.sessions["s-1"].share
    assert (share.messages, share.bytes, share.disk_bytes) == (0, 0, 0)
    await rig.close()
    assert {key[:1] for key in stored_keys(rig)} <= {keys.ALIVE, keys.VERSION, keys.SESSION}
    assert not [key for key in stored_keys(rig) if key[keys.PREFIX_BYTES : keys.PLACE_AT] == keys.QUEUED]


def stored_keys(rig: Rig) -> list[bytes]:
    """All keys in the folder of a broker that has ended."""
    database = StateDatabase(rig.storage._database.folder)
    database.open()
    try:
        return [key for key, _ in database.items()]
    finally:
        database.close()


async def test_payloads_stay_until_a_commit_has_them(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo_broker.persistence.group_commit.RETRY_S", 0.1)
    rig = await start()
    await subscribe_and_leave(rig, "s")
    rig.gate.clear()
    rig.broker.publish("t", payload(1, 5_000), qos=1)
    await until(lambda: rig.storage._commits._group is not None, "commit")
    rig.broker.publish("t", payload(2, 6_000), qos=1)
    rig.fails = True
    assert in_memory(rig, "s") == [5_000, 6_000]
    rig.gate.set()
    await until(lambda: rig.storage.is_failing, "failure")
    await until(lambda: rig.broker.stats.storage_failures > 1, "another failure")
    assert in_memory(rig, "s") == [0, 6_000], "what no commit has taken yet"
    rig.fails = False
    await until_let_go(rig, "s")
    assert not rig.storage.is_failing
    back = await rig.dial("s")
    assert [(await back.receive()).payload for _ in range(2)] == [payload(1, 5_000), payload(2, 6_000)]


async def test_who_is_back_before_the_commit_has_it_at_once(start: Start) -> None:
    rig = await start()
    client, publisher = await rig.dial("s"), await rig.dial("p", expiry_s=0)
    await client.subscribe(("t", 1))
    rig.gate.clear()
    publisher.publish("t", payload(1, 5_000), qos=1, packet_id=1)
    assert (await client.receive()).payload == payload(1, 5_000)
    await go_away(rig, client, "s")
    rig.broker.publish("t", payload(2, 5_000), qos=1)
    connecting = await rig.open()
    connecting.send(mqtt5.ConnectPacket("s", clean_start=False, session_expiry_interval=HOUR_S))
    await until(lambda: rig.broker.client("s") is not None, "connection")
    assert in_memory(rig, "s") == [5_000, 5_000]
    rig.gate.set()
    assert isinstance(await connecting.receive(), mqtt5.ConnAckPacket)
    assert [(await connecting.receive()).payload for _ in range(2)] == [payload(1, 5_000), payload(2, 5_000)]
    await connecting.ping()
    assert in_memory(rig, "s") == [5_000, 5_000], "of who is there nothing is let go"
    assert rig.broker.sessions["s"].share.disk_bytes == 0


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_payload_that_cannot_be_read_ends_the_connection_and_stays(start: Start, is_sent: bool) -> None:
    rig = await start()
    client = await rig.dial("s")
    await client.subscribe(("t", 1))
    if is_sent:
        rig.broker.publish("t", payload(1, 9_000), qos=1)
        await client.receive()
    await go_away(rig, client, "s")
    if not is_sent:
        rig.broker.publish("t", payload(1, 9_000), qos=1)
    rig.broker.publish("t", b"short", qos=1)
    await until_let_go(rig, "s")
    counted = rig.broker.sessions["s"].share.bytes
    rig.is_unreadable = True
    for _ in range(2):
        back = await rig.dial("s")
        ended = await back.receive()
        assert ended.reason_code == mqtt5.DisconnectReasonCode.QUOTA_EXCEEDED
        assert ended.reason_str == "messages can't be read"
        await until(lambda: rig.broker.client("s") is None, "end of the connection")
    assert rig.broker.stats.storage_failures == 2
    assert rig.broker.sessions["s"].share.bytes == counted
    rig.is_unreadable = False
    back = await rig.dial("s")
    assert [(await back.receive()).payload for _ in range(2)] == [payload(1, 9_000), b"short"]


async def test_payloads_come_back_as_the_client_takes_them(start: Start) -> None:
    """Redelivered and queued ones alike; nothing new overtakes them, whatever the client's window."""
    rig = await start(**LARGE)
    client = await rig.dial("s")
    await client.subscribe(("t", 1))
    size, most = 200_000, 100
    for number in range(most):
        rig.broker.publish("t", payload(number, size), qos=1)
    for number in range(40):
        assert (await client.receive()).payload == payload(number, size)
    await go_away(rig, client, "s")
    await until_let_go(rig, "s")
    rig.reads = 0
    back = await rig.dial("s")
    back._reader._transport.pause_reading()  # type: ignore[attr-defined]
    session = rig.broker.sessions["s"]
    await until(lambda: session.connection is not None and session.connection.write_paused, "full socket")  # type: ignore[attr-defined]
    rig.broker.publish("t", b"new", qos=1)
    connection = session.connection
    assert connection is not None
    assert rig.reads < 60
    assert connection.out_bytes < 1_000_000  # type: ignore[attr-defined]
    back._reader._transport.resume_reading()  # type: ignore[attr-defined]
    for number in range(most):
        packet = await back.receive()
        assert packet.payload == payload(number, size)
        back.send(mqtt5.PubAckPacket(packet.packet_id))
    assert (await back.receive()).payload == b"new"


async def test_nothing_is_read_of_what_has_expired_or_ended(start: Start, clock: Clock) -> None:
    rig = await start()
    await subscribe_and_leave(rig, "s", "gone")
    publisher = await rig.dial("p", expiry_s=0)
    publisher.publish("t", payload(1, 5_000), qos=1, packet_id=1, message_expiry_interval=10)
    assert int((await publisher.receive()).reason_code) == 0
    rig.broker.publish("t", payload(2, 5_000), qos=1)
    await until_let_go(rig, "s", "gone")
    share = rig.broker.sessions["s"].share
    assert share.disk_bytes == 20_000
    clock.advance(60)
    await rig.dial("gone", clean=True)
    await until(lambda: share.disk_bytes == 10_000, "end of the session")
    rig.reads = 0
    back = await rig.dial("s")
    packet = await back.receive()
    assert packet.payload == payload(2, 5_000)
    assert rig.reads <= 2
    back.send(mqtt5.PubAckPacket(packet.packet_id))
    await back.ping()
    assert (share.messages, share.bytes, share.disk_bytes) == (0, 0, 0)


async def test_what_a_client_was_promised_is_there_after_a_kill(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")

    async def dial(client_id: str, **options: Any) -> Client:
        client = await Client.open(broker.port)
        await client.connect(client_id, clean_start=False, session_expiry_interval=HOUR_S, **options)
        return client

    first, second = await dial("s-1"), await dial("s-2", receive_max=2)
    for client in (first, second):
        await client.subscribe(("t", 2))
    await first.finish()
    publisher = await dial("p")
    payloads = [payload(number, 3_000 * number) for number in range(1, 30)]
    for number, each in enumerate(payloads, 1):
        publisher.publish("t", each, qos=1, packet_id=number)
    for _ in payloads:
        assert int((await publisher.receive()).reason_code) == 0
    for client in (second, publisher):
        await client.finish()
    broker.kill()
    broker = broker.again()
    for name in ("s-1", "s-2"):
        back = await dial(name)
        assert [(await back.receive()).payload for _ in payloads] == payloads
        await back.finish()
    broker.terminate()


class Course:
    """What happens to one client, at random by ``seed``; ``seen`` are the publishes that it was sent, in order."""

    def __init__(self, seed: int, start: Callable[[], Awaitable[tuple[Broker, int]]], *, stays: bool) -> None:
        self.chance = random.Random(seed)
        self.numbers = count()
        self.seen: list[object] = []
        self.releases = 0  # how often PUBREL came
        self._start = start
        self._stays = stays
        self._broker: Broker
        self._port = 0
        self._client: Client | None = None
        self._received: list[Any] = []  # on this connection, and not acknowledged
        self._released: list[Any] = []

    async def run(self, steps: int) -> None:
        self._broker, self._port = await self._start()
        try:
            for _ in range(steps):
                happenings = [self._publish, self._come, self._leave, self._take, self._restart]
                await self.chance.choices(happenings, [8, 3, 2, 4, 1])[0]()
                await self._look()
        finally:
            await self._leave()
            await self._broker.close(1.0)

    async def _publish(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            size, qos = self.chance.choice([1, 1_024, 1_025, 5_000, 9_000, 200_000]), self.chance.randint(1, 2)
            self._broker.publish("t", payload(next(self.numbers), size), qos=qos)

    async def _come(self) -> None:
        window = self.chance.randint(1, 6)
        if self._client is None:
            self._client = await Client.open(self._port)
            await self._client.connect("s", clean_start=False, session_expiry_interval=HOUR_S, receive_max=window)
            if not self._client.connack.session_present:
                await self._client.subscribe(("t", 2))

    async def _leave(self) -> None:
        if self._client is not None:
            await self._client.finish()
            self._client = None
            self._received.clear()
            self._released.clear()
        await until(lambda: self._broker.client("s") is None, "end of the connection")

    async def _restart(self) -> None:
        await self._leave()
        if not self._stays:
            await self._broker.close(1.0)
            self._broker, self._port = await self._start()

    async def _take(self) -> None:
        """Acknowledges one after the other, as the window depends on which of them comes first."""
        for _ in range(self.chance.randint(1, 5)):
            if self._client is None or not (self._released or self._received):
                return
            if self._released:
                self._client.send(mqtt5.PubCompPacket(self._released.pop(0).packet_id))
            else:
                packet = self._received.pop(0)
                is_first = packet.qos == mqtt5.QoS.EXACTLY_ONCE
                self._client.send((mqtt5.PubRecPacket if is_first else mqtt5.PubAckPacket)(packet.packet_id))
            await self._look()

    async def _look(self) -> None:
        """Notes all that the client is sent until nothing is left to do."""
        while self._client is not None:
            await until(lambda: is_idle(self._broker, self._broker.sessions["s"].connection), "rest")
            self._client.send(mqtt5.PingReqPacket())
            before = len(self.seen) + self.releases
            while not isinstance(packet := await self._client.receive(), mqtt5.PingRespPacket):
                is_message = isinstance(packet, mqtt5.PublishPacket)
                (self._received if is_message else self._released).append(packet)
                self.releases += not is_message
                if is_message:
                    self.seen.append((packet.qos, packet.duplicate, len(packet.payload), packet.payload[:8]))
            is_rest = is_idle(self._broker, self._broker.sessions["s"].connection)  # what was acknowledged makes room
            if is_rest and len(self.seen) + self.releases == before:
                return


def is_idle(broker: Broker, connection: Any) -> bool:
    """Whether nothing is under way that could send the client something more."""
    storage: Any = broker.core.storage
    commits = getattr(storage, "_commits", None)
    is_due = connection.read_pace is not None and connection.read_pace._is_due
    return not (connection.withheld or is_due) and (commits is None or not (commits.changes or commits._group))


@pytest.mark.parametrize("seed", range(8))
async def test_a_client_sees_what_it_would_see_from_memory(seed: int, start: Start) -> None:
    async def on_disk() -> tuple[Broker, int]:
        rig = await start()
        return rig.broker, rig.port

    async def in_one_life() -> tuple[Broker, int]:
        broker = Broker(BrokerSettings(sys_interval_s=0), OpenHooks(anonymous=True), MemoryStorage())
        return broker, await broker.listen_tcp("127.0.0.1", 0)

    courses = [Course(seed, on_disk, stays=False), Course(seed, in_one_life, stays=True)]
    for course in courses:
        await course.run(50)
    assert len(courses[0].seen) > 20
    assert courses[0].seen == courses[1].seen
    assert courses[0].releases == courses[1].releases
