"""What leaves before a commit and what after it, and what a disk that fails does: in one process, on real RocksDB."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from commit_rig import Clock, Rig, crash
from persistence_client import Client, until

from terrazzo_broker import Batch, PublishGrant
from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.standalone import OpenHooks


async def test_puback_follows_the_commit(start: Callable[..., Awaitable[Rig]]) -> None:
    rig = await start()
    subscriber, publisher = await rig.dial("s"), await rig.dial("p", expiry_s=0)
    await subscriber.subscribe(("t", 1))
    rig.gate.clear()
    publisher.publish("t", b"x", qos=1, packet_id=1)
    assert (await subscriber.receive()).payload == b"x"  # QoS 1 needn't wait
    publisher.send(mqtt5.PingReqPacket())
    with pytest.raises(TimeoutError):
        await publisher.receive(0.2)
    rig.gate.set()
    assert await publisher.receive() == mqtt5.PubAckPacket(1)
    assert isinstance(await publisher.receive(), mqtt5.PingRespPacket)


async def test_qos_2_leaves_after_the_commit(start: Callable[..., Awaitable[Rig]]) -> None:
    rig = await start()
    subscriber, publisher = await rig.dial("s"), await rig.dial("p")
    await subscriber.subscribe(("t", 2))
    for step in range(2):
        rig.gate.clear()
        publisher.publish("t", b"x", qos=2, packet_id=1 + step)
        with pytest.raises(TimeoutError):
            await subscriber.receive(0.2)
        rig.gate.set()
        publish = await subscriber.receive()
        assert await publisher.receive() == mqtt5.PubRecPacket(1 + step)
        rig.gate.clear()
        subscriber.send(mqtt5.PubRecPacket(publish.packet_id))
        publisher.send(mqtt5.PubRelPacket(1 + step))
        with pytest.raises(TimeoutError):
            await subscriber.receive(0.1)
        with pytest.raises(TimeoutError):
            await publisher.receive(0.1)
        rig.gate.set()
        assert await subscriber.receive() == mqtt5.PubRelPacket(publish.packet_id)
        assert await publisher.receive() == mqtt5.PubCompPacket(1 + step)
        subscriber.send(mqtt5.PubCompPacket(publish.packet_id))


async def test_connack_and_suback_follow_the_commit(start: Callable[..., Awaitable[Rig]]) -> None:
    rig = await start()
    rig.gate.clear()
    client = await rig.open()
    client.send(mqtt5.ConnectPacket("c", session_expiry_interval=60))
    with pytest.raises(TimeoutError):
        await client.receive(0.2)
    rig.gate.set()
    assert not (await client.receive()).session_present
    rig.gate.clear()
    client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a")]))
    with pytest.raises(TimeoutError):
        await client.receive(0.2)
    rig.gate.set()
    assert (await client.receive()).packet_id == 1


async def test_answers_keep_their_order_over_several_commits(start: Callable[..., Awaitable[Rig]]) -> None:
    rig = await start()
    subscriber, publisher = await rig.dial("s"), await rig.dial("p")
    await subscriber.subscribe(("t", 1))
    rig.gate.clear()
    for number in range(1, 101):
        publisher.publish("t" if number % 3 else "nobody", b"%d" % number, qos=1, packet_id=number)
        await asyncio.sleep(0)  # the broker is in this loop: several reads, several batches
    await subscriber.receive()
    rig.gate.set()
    assert [(await publisher.receive()).packet_id for _ in range(100)] == list(range(1, 101))


async def test_memory_only_sessions_write_nothing(start: Callable[..., Awaitable[Rig]]) -> None:
    rig = await start()
    subscriber, publisher = await rig.dial("s", expiry_s=0), await rig.dial("p", expiry_s=0)
    await subscriber.subscribe(("t", 2))
    for qos in (1, 2):
        publisher.publish("t", b"x", qos=qos, packet_id=qos)
        await publisher.receive()
        await subscriber.receive()
    persistent = await rig.dial("q")
    await persistent.subscribe(("zero", 0))
    await persistent.ping()
    commits = rig.commits
    publisher.publish("zero", b"x")
    publisher.publish("zero", b"x", qos=1, packet_id=9)
    assert [(await persistent.receive()).qos for _ in range(2)] == [0, 0]
    await asyncio.sleep(0.1)  # longer than a change that nobody waits for takes
    assert rig.commits == commits


async def test_session_expiry_counts_while_the_broker_is_down(
    start: Callable[..., Awaitable[Rig]], clock: Clock
) -> None:
    rig = await start()
    for client_id, expiry_s in (("short", 60), ("long", 200), ("ever", 0xFFFFFFFF), ("connected", 60)):
        client = await rig.dial(client_id, expiry_s=expiry_s)
        await client.subscribe(("t", 1))
        if client_id != "connected":
            await client.disconnect()
    await crash(rig)
    clock.advance(100)
    rig = await start()
    present = {}
    for client_id in ("short", "long", "ever", "connected"):
        client = await rig.dial(client_id, expiry_s=60)
        present[client_id] = client.connack.session_present
    assert present == {"short": False, "long": True, "ever": True, "connected": False}


async def test_message_expiry_counts_while_the_broker_is_down(
    start: Callable[..., Awaitable[Rig]], clock: Clock
) -> None:
    rig = await start()
    subscriber = await rig.dial("s")
    await subscriber.subscribe(("t", 1))
    await subscriber.disconnect()
    publisher = await rig.dial("p")
    for number, expiry_s in enumerate((50, 150, None), 1):
        publisher.publish("t", b"%d" % number, qos=1, packet_id=number, message_expiry_interval=expiry_s)
        publisher.publish(
            f"kept/{number}",
            b"%d" % number,
            qos=1,
            packet_id=10 + number,
            retain=True,
            message_expiry_interval=expiry_s,
        )
        await publisher.receive()
        await publisher.receive()
    await crash(rig)
    clock.advance(100)
    rig = await start()
    subscriber = await rig.dial("s")
    got = [await subscriber.receive() for _ in range(2)]
    assert [(each.payload, each.message_expiry_interval) for each in got] == [(b"2", 50), (b"3", None)]
    await subscriber.subscribe(("kept/#", 0))
    retained = {each.payload: each.message_expiry_interval for each in [await subscriber.receive() for _ in range(2)]}
    assert retained == {b"2": 50, b"3": None}


async def test_wills_are_published_when_due(start: Callable[..., Awaitable[Rig]], clock: Clock) -> None:
    rig = await start()
    witness = await rig.dial("witness")
    await witness.subscribe(("will/#", 1))

    def will(name: str, delay_s: int) -> mqtt5.Will:
        return mqtt5.Will(f"will/{name}", payload=b"gone", qos=mqtt5.QoS(1), will_delay_interval=delay_s)

    await rig.dial("now", expiry_s=0, will=will("now", 50))  # its session ends with the broker
    await rig.dial("soon", expiry_s=100, will=will("soon", 50))
    late = await rig.dial("late", expiry_s=1000, will=will("late", 300))
    ending = await rig.dial("ending", expiry_s=90, will=will("ending", 300))
    polite = await rig.dial("polite", expiry_s=1000, will=will("polite", 0))
    await polite.disconnect()
    back = await rig.dial("back", expiry_s=1000, will=will("back", 20))
    for client in (late, ending, back):  # no DISCONNECT: the wills wait already
        await client.finish()
    await until(lambda: rig.broker.client("back") is None, "end of the connection")
    await rig.dial("back", expiry_s=1000)
    await witness.ping()
    await crash(rig)

    clock.advance(10)
    rig = await start()
    witness = await rig.dial("witness")
    assert (await witness.receive()).topic == "will/now"
    await witness.ping()
    clock.advance(50)
    assert (await witness.receive()).topic == "will/soon"
    clock.advance(100)
    assert (await witness.receive()).topic == "will/ending"
    await witness.ping()
    await crash(rig)

    clock.advance(500)
    rig = await start()
    witness = await rig.dial("witness")
    topics = {(await witness.receive()).topic for _ in range(4)}
    assert topics == {"will/now", "will/soon", "will/ending", "will/late"}  # the first three again: no PUBACK was sent
    await witness.ping()


async def test_what_ends_is_gone_from_the_disk(start: Callable[..., Awaitable[Rig]], tmp_path: Path) -> None:
    rig = await start()
    payload = b"x" * 5000
    subscribers = [await rig.dial(f"s{number}") for number in range(3)]
    for each in subscribers:
        await each.subscribe(("t", 2), ("u", 1))
    await subscribers[2].disconnect()
    publisher = await rig.dial("p")
    publisher.publish("t", payload, qos=2, packet_id=1, retain=True)
    await publisher.receive()
    publisher.send(mqtt5.PubRelPacket(1))
    await publisher.receive()
    publisher.publish("t", b"", qos=1, packet_id=2, retain=True)
    await publisher.receive()
    for each in subscribers[:2]:
        large = await each.receive()
        await each.receive()
        each.send(mqtt5.PubRecPacket(large.packet_id))
        await each.receive()
        each.send(mqtt5.PubCompPacket(large.packet_id), mqtt5.PubAckPacket(large.packet_id + 1))
        await each.unsubscribe("t", "u")
        await each.disconnect(expiry_s=0)
    assert (await rig.dial("s2", clean=True)).connack.session_present is False
    await (await rig.dial("s2")).disconnect(expiry_s=0)
    await publisher.disconnect(expiry_s=0)
    await rig.broker.close(1.0)
    database = StateDatabase(tmp_path / "data")
    database.open()
    assert {key for key, _ in database.items()} == {b"A", b"V"}
    database.close()


async def test_a_disk_that_fails_refuses_and_recovers(
    start: Callable[..., Awaitable[Rig]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo_broker.persistence.group_commit.RETRY_S", 0.1)
    rig = await start()
    subscriber, publisher = await rig.dial("s"), await rig.dial("p", expiry_s=0)
    bystander = await rig.dial("b", expiry_s=0)
    await subscriber.subscribe(("t", 1))
    await bystander.subscribe(("u", 1))
    rig.fails = True
    publisher.publish("t", b"first", qos=1, packet_id=1)
    assert (await publisher.receive()).reason_code == mqtt5.DisconnectReasonCode.QUOTA_EXCEEDED
    publisher = await rig.dial("p", expiry_s=0)
    publisher.publish("t", b"second", qos=1, packet_id=1)
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
    publisher.publish("t", b"third", qos=2, packet_id=2)
    assert (await publisher.receive()).reason_code == mqtt5.PubRecReasonCode.QUOTA_EXCEEDED
    publisher.publish("r", b"kept", qos=1, packet_id=3, retain=True)
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
    publisher.publish("u", b"memory", qos=1, packet_id=4)  # a session in memory is as good as ever
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.SUCCESS
    assert (await bystander.receive()).payload == b"memory"
    refused = await rig.open()
    refused.send(mqtt5.ConnectPacket("new", session_expiry_interval=60))
    assert (await refused.receive()).reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE
    stats = rig.broker.stats
    assert stats.storage_failures >= 1
    assert stats.storage_refusals == 3

    rig.fails = False
    await until(lambda: not rig.storage.is_failing, "recovery")
    publisher.publish("t", b"fourth", qos=1, packet_id=5)
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.SUCCESS
    await crash(rig)
    rig = await start()
    subscriber = await rig.dial("s")
    assert [(await subscriber.receive()).payload for _ in range(2)] == [b"first", b"fourth"]


async def test_writers_are_not_read_while_the_disk_is_behind(
    start: Callable[..., Awaitable[Rig]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo_broker.persistence.group_commit.GROUP_BYTES", 100_000)
    rig = await start()
    subscriber, publisher = await rig.dial("s"), await rig.dial("p")
    await subscriber.subscribe(("t", 1))
    rig.gate.clear()
    for number in range(1, 301):
        publisher.publish("t", b"x" * 10_000, qos=1, packet_id=number)
    connection = rig.broker.sessions["p"].connection
    assert connection is not None
    await until(lambda: connection.holds, "hold")
    assert rig.storage._commits.changes.size < 1_500_000  # one read may come on top
    rig.gate.set()
    assert [(await publisher.receive()).packet_id for _ in range(300)] == list(range(1, 301))
    assert not connection.holds


class DurableHooks(OpenHooks):
    """Keeps batches until the test settles them."""

    def __init__(self) -> None:
        super().__init__(anonymous=True)
        self.batches: list[Batch] = []

    def authorize_publish(self, client: Any, topic: str) -> PublishGrant:
        return PublishGrant(topic, durable=True)

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)


async def test_a_batch_settled_after_its_session_leaves_nothing(
    start: Callable[..., Awaitable[Rig]], tmp_path: Path
) -> None:
    hooks = DurableHooks()
    rig = await start(hooks)
    publisher = await rig.dial("p")
    publisher.publish("t", b"x", qos=2, packet_id=1)
    await until(lambda: hooks.batches, "batch")
    assert (await rig.dial("p", clean=True)).connack.session_present is False
    hooks.batches[0].settle()
    rig.broker.disconnect("p", 0x98, end_session=True)
    await rig.close()
    database = StateDatabase(tmp_path / "data")
    database.open()
    assert {key for key, _ in database.items()} == {b"A", b"V"}
    database.close()


async def test_a_durable_qos_2_publish_is_known_after_a_crash(start: Callable[..., Awaitable[Rig]]) -> None:
    hooks = DurableHooks()
    rig = await start(hooks)
    publisher = await rig.dial("p")
    publisher.publish("t", b"x", qos=2, packet_id=1)
    await until(lambda: hooks.batches, "batch")
    rig.gate.clear()
    hooks.batches[0].settle()
    with pytest.raises(TimeoutError):
        await publisher.receive(0.2)
    rig.gate.set()
    assert await publisher.receive() == mqtt5.PubRecPacket(1)
    await crash(rig)
    rig = await start(hooks)
    publisher = await rig.dial("p")
    publisher.publish("t", b"x", qos=2, packet_id=1, duplicate=True)
    assert await publisher.receive() == mqtt5.PubRecPacket(1)
    assert len(hooks.batches) == 1


async def test_a_will_is_kept_until_what_it_says_is_stored(
    start: Callable[..., Awaitable[Rig]], tmp_path: Path
) -> None:
    hooks = DurableHooks()
    rig = await start(hooks)

    async def dial(says: bytes, qos: int = 1) -> Client:
        return await rig.dial("w", expiry_s=0, will=mqtt5.Will("will/w", payload=says, qos=mqtt5.QoS(qos)))

    await (await dial(b"at most once", qos=0)).finish()
    await until(lambda: len(hooks.batches) == 1, "batch")
    await (await dial(b"gone")).finish()
    await until(lambda: len(hooks.batches) == 2, "batch")
    await dial(b"back, and gone")  # another will of the client takes nothing from the one before
    before = rig.commits
    await until(lambda: rig.commits > before or not rig.storage._commits.changes, "commit")
    await crash(rig)

    hooks.batches.clear()
    rig = await start(hooks)
    await until(lambda: len(hooks.batches) == 2, "batches")
    assert {batch.messages[0].payload for batch in hooks.batches} == {b"gone", b"back, and gone"}
    await rig.close()
    hooks.batches.clear()
    rig = await start(hooks)  # a stop in good order stores nothing either
    await until(lambda: len(hooks.batches) == 2, "batches")
    for batch in hooks.batches:
        batch.settle()
    await rig.close()
    database = StateDatabase(tmp_path / "data")
    database.open()
    assert {key for key, _ in database.items()} == {b"A", b"V"}
    database.close()
