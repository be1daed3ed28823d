"""Retained messages have bounds: numbers and bytes of all, of an owner, of a client; long payloads are on disk alone; a
subscription to everything is served a piece at a time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from own_broker import RecordingHooks

from raw_client import RawClient, publish_4, until
from terrazzo_broker import Accept, Broker, BrokerSettings, ConnectRequest, PublishGrant
from terrazzo_broker.delivery.retained_delivery import PIECE_BYTES
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.persistence import DiskStorage, keys
from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.persistence.records import encode_entry

MIB = 1 << 20
QUOTA_EXCEEDED = 0x97


async def owner_of(request: ConnectRequest) -> Accept:
    """The owner is what stands before the first dash of the client id."""
    return Accept("someone", owner=request.client_id.partition("-")[0])


@asynccontextmanager
async def on_disk(folder: Path, **settings: Any) -> AsyncIterator[tuple[Broker, int]]:
    """A broker with a data folder, and its port."""
    given = {"sweep_interval_s": 0.05, "sys_interval_s": 0} | settings
    broker = Broker(BrokerSettings(**given), RecordingHooks(verdict=owner_of), DiskStorage(folder))
    try:
        yield broker, await broker.listen_tcp("127.0.0.1", 0)
    finally:
        await broker.close(1.0)


async def retain(client: RawClient, topic: str, payload: bytes) -> int:
    """Publishes at QoS 1; the reason code of the PUBACK."""
    client.publish(topic, payload, qos=1, retain=True, packet_id=7)
    return int((await client.receive()).reason_code)


async def retained(client: RawClient, pattern: str, count: int) -> dict[str, bytes]:
    """What a new subscription gets."""
    await client.subscribe((pattern, 0))
    found = {}
    for _ in range(count):
        packet = await client.receive()
        assert packet.retain
        found[packet.topic] = packet.payload
    await client.silence()
    return found


def in_memory(broker: Broker) -> int:
    """Bytes of payloads that the broker holds."""
    messages = [each for each in broker.retained.walk("#", "a") if each is not None]
    return sum(len(each.payload) for each in messages)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"client_retained_messages": 3}, "too many retained messages of one client"),
        ({"client_retained_bytes": 35_000}, "too many retained bytes of one client"),
        ({"owner_retained_messages": 3}, "too many retained messages of one owner"),
        ({"owner_retained_bytes": 35_000}, "too many retained bytes of one owner"),
        ({"owner_retained_memory_bytes": 35_000}, "too many retained bytes in memory of one owner"),
        ({"retained_messages": 3}, "too many retained messages"),
        ({"retained_bytes": 35_000}, "too many retained bytes"),
        ({"retained_memory_bytes": 35_000}, "too many retained bytes in memory"),
    ],
)
async def test_what_is_over_a_limit_is_refused(start: Any, dial: Any, settings: dict[str, int], reason: str) -> None:
    running = await start(RecordingHooks(verdict=owner_of), **settings)
    client = await dial("a-1", port=running.port)
    listener = await dial("a-2", port=running.port)
    await listener.subscribe(("#", 0))
    for number in range(3):
        assert await retain(client, f"t/{number}", b"x" * 10_000) in (0, 0x10)
        assert (await listener.receive()).topic == f"t/{number}"
    assert await retain(client, "t/3", b"x" * 10_000) == QUOTA_EXCEEDED
    await listener.silence()  # refused is not delivered either
    assert running.broker.stats.dropped == {reason: 1}
    assert running.broker.retained.count == 3
    assert await retain(client, "t/0", b"y" * 10_000) == 0  # in the place of another one
    client.publish("t/1", b"", retain=True)
    assert await retain(client, "t/3", b"z" * 10_000) == 0
    assert running.broker.retained.ledger.total.messages == 3


async def test_a_client_of_mqtt_3_1_1_is_heard_and_what_it_says_not_retained(start: Any, dial: Any) -> None:
    running = await start(client_retained_messages=1)
    client, listener = await dial("a", port=running.port, version=4), await dial("b", port=running.port)
    await listener.subscribe(("#", 0))
    for number in range(2):
        client.publish(f"t/{number}", b"x", retain=True)
        assert (await listener.receive()).topic == f"t/{number}"
    assert running.broker.retained.count == 1
    assert running.broker.stats.dropped == {"too many retained messages of one client": 1}


async def test_neither_clients_nor_owners_take_from_each_other(start: Any, dial: Any) -> None:
    running = await start(
        RecordingHooks(verdict=owner_of), client_retained_messages=2, owner_retained_messages=3, retained_messages=100
    )
    first, second = await dial("a-1", port=running.port), await dial("a-2", port=running.port)
    other = await dial("b-1", port=running.port)
    codes = [await retain(first, f"one/{number}", b"x") for number in range(3)]
    assert codes == [0x10, 0x10, QUOTA_EXCEEDED]
    codes = [await retain(second, f"two/{number}", b"x") for number in range(3)]
    assert codes == [0x10, QUOTA_EXCEEDED, QUOTA_EXCEEDED]
    assert [await retain(other, f"two/{number}", b"x") for number in range(2)] == [0x10, 0x10]
    assert await retain(second, "one/0", b"taken over") == 0x10  # from then on it counts as the second's
    assert await retain(first, "one/9", b"x") == QUOTA_EXCEEDED  # the owner has three still


async def test_levels_of_topics_count(start: Any, dial: Any) -> None:
    running = await start(client_retained_bytes=MIB)
    client = await dial("a", port=running.port)
    codes = [await retain(client, f"{number}/" + "/" * 150, b"x") for number in range(20)]
    assert codes == [0x10] * 17 + [QUOTA_EXCEEDED] * 3  # each level is some hundred bytes of the broker's memory


async def test_a_durable_message_is_stored_and_delivered_though_it_is_not_retained(start: Any, dial: Any) -> None:
    hooks = RecordingHooks(grant=lambda client, topic: PublishGrant(topic, durable=True))
    running = await start(hooks, client_retained_messages=1)
    client, listener = await dial("a", port=running.port), await dial("b", port=running.port)
    await listener.subscribe(("#", 0))
    for number in range(2):
        client.publish(f"g/{number}", b"x", qos=1, retain=True, packet_id=5)
        assert (await listener.receive()).topic == f"g/{number}"
        await until(lambda wanted=number: len(hooks.batches) == wanted + 1)
        hooks.batches[-1].settle()
        assert int((await client.receive()).reason_code) == 0
    assert running.broker.retained.count == 1
    assert running.broker.stats.dropped == {"too many retained messages of one client": 1}


async def test_bridges_have_the_share_of_their_owner(start: Any) -> None:
    running = await start(client_retained_messages=1, owner_retained_messages=3)
    for number in range(5):
        running.broker.publish(f"t/{number}", b"x", retain=True, publisher="bridge north", owner="a")
    assert running.broker.retained.count == 3
    assert running.broker.stats.dropped == {"too many retained messages of one owner": 2}


async def test_payloads_are_on_disk_and_come_back(dial: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = {f"t/{number}": b"%06d" % number * 17_000 for number in range(200)}  # 20 MB
    small = {f"s/{number}": b"small %d" % number for number in range(50)}
    async with on_disk(tmp_path) as (broker, port):
        client = await dial("a-1", port=port)
        for topic, payload in {**large, **small}.items():
            assert await retain(client, topic, payload) == 0x10
        client.publish("t/0", b"new " * 1_000, retain=True)  # QoS 0: found though it isn't committed yet
        large["t/0"] = b"new " * 1_000
        assert await retained(client, "t/0", 1) == {"t/0": large["t/0"]}
        assert in_memory(broker) == sum(map(len, small.values()))
        assert broker.retained.ledger.total.bytes > sum(map(len, large.values()))
        assert broker.retained.ledger.total.memory_bytes < 400_000
        client.publish("t/1", b"", retain=True)
        del large["t/1"]
        await client.silence()
    async with on_disk(tmp_path) as (broker, port):
        assert in_memory(broker) == sum(map(len, small.values()))
        reader = await dial("a-2", port=port)
        assert await retained(reader, "#", len(large) + len(small)) == {**large, **small}
        monkeypatch.setattr(StateDatabase, "get", lambda self, key: None)  # gone from the disk
        reader = await dial("a-3", port=port)
        assert await retained(reader, "#", len(small)) == small


async def test_a_folder_of_before_is_read_without_its_payloads(dial: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    payload = b"kept " * 10_000
    records = {
        keys.RETAINED + b"t/%d" % number: encode_entry(ApplicationMessage(b"t/%d" % number, payload, 1, retain=True))
        for number in range(20)
    }
    database = StateDatabase(folder)
    database.commit({keys.VERSION: b"2", **records})
    database.close()
    for _ in range(2):
        async with on_disk(folder) as (broker, port):
            assert sum(len(each.payload) for each in broker.retained.walk("#") if each is not None) == 0
            reader = await dial("-anybody", port=port)
            assert set((await retained(reader, "t/#", 20)).values()) == {payload}


async def test_what_was_there_before_a_limit_stays_and_is_named(
    dial: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path) as (_, port):
        client = await dial("a-1", port=port)
        for number in range(5):
            assert await retain(client, f"t/{number}", b"x" * 5_000) == 0x10
    caplog.set_level(logging.WARNING)
    async with on_disk(tmp_path, owner_retained_messages=3, client_retained_bytes=10_000) as (_, port):
        assert "retained messages of {'owner': 'a'}: more messages than there may be; they stay" in caplog.text
        assert "retained messages of {'owner': 'a', 'client': 'a-1'}: more bytes" in caplog.text
        client = await dial("a-1", port=port)
        assert await retain(client, "t/9", b"x") == QUOTA_EXCEEDED
        assert await retain(client, "t/1", b"y" * 5_000) == 0x10
        assert len(await retained(client, "#", 5)) == 5


async def test_a_subscriber_that_does_not_read_costs_little_and_holds_nobody_up(dial: Any, tmp_path: Path) -> None:
    async with on_disk(tmp_path) as (broker, port):
        writer, stuck, other = [await dial(f"a-{number}", port=port) for number in (1, 2, 3)]
        payload = b"0123456789" * 10_240
        for number in range(300):  # 30 MB
            assert await retain(writer, f"t/{number}", payload) == 0x10
        stuck.writer.transport.pause_reading()
        stuck.send(b"\x82\x07\x00\x01\x00\x00\x01#\x00")
        await until(lambda: "a-2" in broker.sessions and broker.sessions["a-2"].subscriptions)
        connection: Any = broker.sessions["a-2"].connection
        waited = []
        for _ in range(50):
            await other.silence()
            waited.append(connection.out_bytes + connection.transport.get_write_buffer_size())
        assert max(waited) < PIECE_BYTES + 3 * len(payload)
        assert broker.stats.dropped == {}
        stuck.writer.transport.resume_reading()
        await stuck.receive()  # SUBACK
        topics = {(await stuck.receive()).topic for _ in range(300)}
        assert topics == {f"t/{number}" for number in range(300)}


async def test_at_qos_1_no_more_wait_than_the_client_acknowledges(dial: Any, tmp_path: Path) -> None:
    async with on_disk(tmp_path) as (broker, port):
        writer, slow = await dial("a-1", port=port), await dial("a-2", port=port, receive_max=2)
        for number in range(100):
            assert await retain(writer, f"t/{number}", b"x" * 50_000) == 0x10
        await slow.subscribe(("#", 1))
        topics = set()
        for _ in range(100):
            packet = await slow.receive()
            topics.add(packet.topic)
            assert broker.sessions["a-2"].queued_bytes <= MIB + 60_000
            slow.send(b"\x40\x02" + packet.packet_id.to_bytes(2, "big"))
        assert len(topics) == 100
        assert broker.stats.dropped == {}


async def test_an_unsubscribed_filter_is_left_and_subscribing_again_begins_anew(start: Any, dial: Any) -> None:
    running = await start(retained_messages=5_000)
    for number in range(3_000):
        running.broker.publish(f"t/{number}", b"x" * 100, retain=True, owner="")
    client = await dial("a", port=running.port)
    client.send(b"\x82\x07\x00\x01\x00\x00\x01#\x00", b"\xa2\x06\x00\x02\x00\x00\x01#")
    kinds = []
    while "UnsubAckPacket" not in kinds:
        kinds.append(type(await client.receive()).__name__)
    assert kinds[0] == "SubAckPacket"
    assert len(kinds) < 1_010
    await client.silence()
    client.send(b"\x82\x07\x00\x03\x00\x00\x01#\x00")
    topics: set[str] = set()
    while len(topics) < 3_000:
        packet = await client.receive()
        if type(packet).__name__ == "SubAckPacket":
            topics.clear()
        elif type(packet).__name__ == "PublishPacket":
            topics.add(packet.topic)
    await client.silence()


async def test_what_ends_or_expires_while_it_is_delivered_is_left(start: Any, dial: Any) -> None:
    running = await start()
    for number in range(3):
        running.broker.publish(f"t/{number}", b"x", retain=True, owner="a")
    found = running.broker.core.retained.walk("t/#", "a")
    seen = [each for each in found if each is not None]
    running.broker.end_retained("a", "t/1")
    whole = [running.broker.retained.whole(each, 0) for each in seen]
    assert sorted(each.topic for each in whole if each is not None) == [b"t/0", b"t/2"]
    assert running.broker.retained.count == 3  # until the sweep
    running.broker.retained.remove_ended(10)
    assert running.broker.retained.ledger.total.messages == 2


async def test_nothing_is_left_of_a_delivery_that_is_over(start: Any, dial: Any) -> None:
    running = await start()
    publisher, subscriber = await dial("a", port=running.port), await dial("b", port=running.port)
    for number in range(3):
        await retain(publisher, f"t/{number}", b"x")
    for topic_filter, found in (("t/#", 3), ("nothing", 0)):
        await subscriber.subscribe((topic_filter, 0))
        for _ in range(found):
            await subscriber.receive()
        await subscriber.silence()
        assert running.broker.sessions["b"].connection.retained is None, "each acknowledgement would look for more"


async def test_what_retains_nothing_says_so() -> None:
    """[MQTT-3.2.2-13] [MQTT-3.2.2-14]; a client of 3.1.1 can't be told, and its message goes on without being kept."""
    broker = Broker(BrokerSettings(retain_available=False, sys_interval_s=0), RecordingHooks())
    port = await broker.listen_tcp("127.0.0.1", 0)
    try:
        client = await RawClient.open(port)
        assert (await client.connect("a-1")).retain_available is False
        client.publish("a/b", b"1", qos=1, retain=True, packet_id=7)
        assert (await client.receive()).reason_code == 0x9A
        await client.closed()
        will = mqtt5.Will(topic="a/b", payload=b"gone", retain=True)
        refused = await RawClient.open(port)
        assert (await refused.connect("a-2", will=will)).reason_code == 0x9A
        older = await RawClient.open(port, version=4)
        await older.connect("a-3")
        older.send(publish_4("a/b", b"1", qos=1, packet_id=3, retain=True))
        assert await older.receive() == (0x40, b"\0\x03")
        assert not list(broker.retained.walk("#", ""))
        assert broker.stats.dropped == {"nothing is retained here": 1}
        for each in (client, refused, older):
            each.writer.close()
            await each.writer.wait_closed()
    finally:
        await broker.close(1.0)
