"""What the clients of one owner may have together: messages that wait in sessions, and subscriptions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from own_broker import RecordingHooks, Running

from raw_client import RawClient, until
from terrazzo_broker import Accept, Broker, BrokerSettings, ConnectRequest
from terrazzo_broker.persistence import DiskStorage

QUOTA_EXCEEDED = 0x97


async def owner_of(request: ConnectRequest) -> Accept:
    """The owner is what stands before the first dash of the client id."""
    return Accept("someone", owner=request.client_id.partition("-")[0])


@asynccontextmanager
async def on_disk(folder: Path, **settings: Any) -> AsyncIterator[Running]:
    """A broker with a data folder."""
    hooks = RecordingHooks(verdict=owner_of)
    broker = Broker(BrokerSettings(sweep_interval_s=0.05, sys_interval_s=0, **settings), hooks, DiskStorage(folder))
    try:
        yield Running(broker, hooks, await broker.listen_tcp("127.0.0.1", 0))
    finally:
        await broker.close(1.0)


async def leave_subscribed(running: Running, dial: Any, *names: str) -> None:
    """Sessions that wait for their clients."""
    for name in names:
        client = await dial(name, port=running.port, session_expiry_interval=60)
        await client.subscribe(("t/" + name, 1))
        client.writer.transport.abort()
        await until(lambda gone=name: running.broker.client(gone) is None)


async def publish(client: RawClient, topic: str, payload: bytes = b"x") -> int:
    """Publishes at QoS 1; the reason code of the PUBACK."""
    client.publish(topic, payload, qos=1, packet_id=3)
    return int((await client.receive()).reason_code)


@pytest.mark.parametrize("limit", [{"owner_queued_messages": 5}, {"owner_queued_bytes": 5_800}])
async def test_an_owners_queues_are_limited_together(start: Any, dial: Any, limit: dict[str, int]) -> None:
    running = await start(RecordingHooks(verdict=owner_of), **limit)
    await leave_subscribed(running, dial, "a-1", "a-2", "b-1")
    ours, theirs = await dial("a-9", port=running.port), await dial("b-9", port=running.port)
    codes = [await publish(ours, f"t/a-{1 + number % 2}", b"x" * 1_000) for number in range(7)]
    assert codes == [0] * 5 + [QUOTA_EXCEEDED] * 2
    assert running.broker.stats.limited_owner_queues == 2
    assert [await publish(theirs, "t/b-1", b"x" * 1_000) for _ in range(5)] == [0] * 5
    back = await dial("a-1", port=running.port, clean_start=False, session_expiry_interval=60)
    for _ in range(3):  # what its client has got makes room for the other sessions
        back.send(b"\x40\x02" + (await back.receive()).packet_id.to_bytes(2, "big"))
    await back.silence()
    assert [await publish(ours, "t/a-2", b"x" * 1_000) for _ in range(4)] == [0] * 3 + [QUOTA_EXCEEDED]
    await dial("a-2", port=running.port)  # its session ends
    share = running.broker.sessions["a-1"].share
    assert (share.messages, share.bytes) == (0, 0)


async def test_counts_are_right_over_a_restart_and_what_is_over_stays(
    dial: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_disk(tmp_path) as running:
        await leave_subscribed(running, dial, "a-1", "a-2")
        ours = await dial("a-9", port=running.port)
        for number in range(6):
            assert await publish(ours, f"t/a-{1 + number % 2}") == 0
        share = running.broker.sessions["a-1"].share
        counted = share.messages, share.bytes
    caplog.set_level(logging.WARNING)
    async with on_disk(tmp_path, owner_queued_messages=4, owner_subscriptions=1) as running:
        share = running.broker.sessions["a-1"].share
        assert (share.messages, share.bytes) == counted
        assert share is running.broker.sessions["a-2"].share
        assert "sessions of owner 'a': more messages wait than may; they stay" in caplog.text
        assert "clients of owner 'a': more subscriptions than there may be; they stay" in caplog.text
        ours = await dial("a-9", port=running.port)
        assert await publish(ours, "t/a-1") == QUOTA_EXCEEDED
        assert [int(code) for code in (await ours.subscribe(("x", 0))).reason_codes] == [QUOTA_EXCEEDED]
        back = await dial("a-1", port=running.port, clean_start=False)
        payloads = [(await back.receive()).payload for _ in range(3)]
        assert payloads == [b"x"] * 3
        assert [int(code) for code in (await back.subscribe(("t/a-1", 0))).reason_codes] == [0]  # it has it


async def test_an_owners_subscriptions_are_limited_together(start: Any, dial: Any) -> None:
    running = await start(RecordingHooks(verdict=owner_of), owner_subscriptions=3)
    first, second = await dial("a-1", port=running.port), await dial("a-2", port=running.port)
    other, old = await dial("b-1", port=running.port), await dial("a-3", port=running.port, version=4)
    codes = (await first.subscribe(("1", 0), ("2", 0))).reason_codes
    codes += (await second.subscribe(("1", 0), ("2", 0), ("1", 1))).reason_codes
    assert [int(code) for code in codes] == [0, 0, 0, QUOTA_EXCEEDED, 1]
    assert await old.subscribe(("1", 0)) == (0x90, b"\x00\x01\x80")
    assert running.broker.stats.limited_subscriptions == 2
    assert [int(code) for code in (await other.subscribe(("1", 0), ("2", 0), ("3", 0))).reason_codes] == [0, 0, 0]
    first.writer.transport.abort()
    await until(lambda: "a-1" not in running.broker.sessions)
    codes = (await second.subscribe(("2", 0), ("3", 0), ("4", 0))).reason_codes
    assert [int(code) for code in codes] == [0, 0, QUOTA_EXCEEDED]


async def test_what_is_on_the_way_counts_for_client_and_owner(dial: Any, tmp_path: Path) -> None:
    """A client that acknowledges nothing and goes away leaves what its limit allows; nothing that was taken is lost."""
    mib = 1 << 20
    settings = {"queued_bytes": 4 * mib, "owner_queued_bytes": 12 * mib, "packet_bytes": 2 * mib}
    for session_expiry_s in (0, 60):  # in memory, and on disk
        async with on_disk(tmp_path / str(session_expiry_s), **settings) as running:
            share = running.broker.core.storage.queues.of("a", running.broker.settings)
            sender = await dial("a-0", port=running.port)
            taken = 0
            for name in ("a-1", "a-2"):
                silent = await dial(name, port=running.port, session_expiry_interval=session_expiry_s)
                await silent.subscribe((f"t/{name}", 1))
                codes = [await publish(sender, f"t/{name}", bytes(mib - 500)) for _ in range(30)]
                taken += codes.count(0)
                session = running.broker.sessions[name]
                assert session.inflight_bytes <= 4 * mib
                assert session.queued_bytes <= 4 * mib
                assert set(codes) == {0, QUOTA_EXCEEDED}
                assert share.bytes == sum(
                    each.inflight_bytes + each.queued_bytes for each in running.broker.sessions.values()
                )
            assert 8 <= taken <= 12
            other = await dial("b-1", port=running.port)
            await other.subscribe(("o", 1))
            assert await publish(await dial("b-2", port=running.port), "o", bytes(mib)) == 0
            silent.send(*(b"\x40\x02" + number.to_bytes(2, "big") for number in range(1, 5)))
            await until(lambda: running.broker.sessions["a-2"].queued < 4)
            for name in ("a-1", "a-2"):
                running.broker.disconnect(name, 0x98, end_session=not session_expiry_s)
            if session_expiry_s:
                kept = share.bytes
        if session_expiry_s:
            async with on_disk(tmp_path / str(session_expiry_s), **settings) as running:
                share = running.broker.core.storage.queues.of("a", running.broker.settings)
                assert share.bytes == kept
                for name in ("a-1", "a-2"):
                    running.broker.disconnect(name, 0x98, end_session=True)
                await until(lambda: share.bytes == 0)  # noqa: B023 - awaited at once
        else:
            await until(lambda: share.bytes == 0)  # noqa: B023 - awaited at once


async def test_long_messages_go_on_as_they_are_acknowledged(start: Any, dial: Any) -> None:
    running = await start(queued_bytes=100_000)
    sender, receiver = await dial("s", port=running.port), await dial("r", port=running.port)
    for granted in (1, 2):
        await receiver.subscribe(("t", granted))
        for number in range(6):
            sender.publish("t", bytes([number]) * 30_000, qos=2, packet_id=number + 1)
            sender.send(b"\x62\x02\0" + bytes([number + 1]))
        numbers, done = [], 0
        while done < 6:
            packet = await receiver.receive()
            identifier = packet.packet_id.to_bytes(2, "big")
            if type(packet).__name__ == "PublishPacket":
                numbers.append(packet.payload[0])
                receiver.send((b"\x40\x02" if granted == 1 else b"\x50\x02") + identifier)
                done += granted == 1
            else:
                receiver.send(b"\x70\x02" + identifier)
                done += 1
        assert numbers == [0, 1, 2, 3, 4, 5]
        await until(lambda: running.broker.sessions["r"].inflight_bytes == 0)
    assert running.broker.stats.dropped == {}


async def test_who_has_enough_in_memory_gets_long_messages_one_by_one(dial: Any, tmp_path: Path) -> None:
    """What a client doesn't acknowledge stays in memory as much as what waits for it."""
    async with on_disk(tmp_path, packet_bytes=2 << 20) as running:
        senders = {owner: await dial(f"{owner}-0", port=running.port) for owner in "ab"}
        receivers = {owner: await dial(f"{owner}-1", port=running.port) for owner in "ab"}
        for owner, receiver in receivers.items():
            await receiver.subscribe(("t/" + owner, 1))
        running.broker.memory.refuse({"a"})
        codes = {
            owner: [await publish(sender, f"t/{owner}", bytes(9_000)) for _ in range(4)]
            for owner, sender in senders.items()
        }
        assert codes == {"a": [0, *[QUOTA_EXCEEDED] * 3], "b": [0] * 4}
        assert await publish(senders["a"], "t/a", b"short") == 0, "the number of these bounds them"
        receivers["a"].send(b"\x40\x02\0\x01")
        await until(lambda: not running.broker.sessions["a-1"].inflight_bytes)
        assert await publish(senders["a"], "t/a", bytes(9_000)) == 0
        running.broker.memory.refuse(set())
        assert await publish(senders["a"], "t/a", bytes(9_000)) == 0


async def test_an_owner_keeps_less_in_the_broker_from_now_on(start: Any, dial: Any) -> None:
    running = await start(RecordingHooks(verdict=owner_of))
    ours, theirs = await dial("a-1", port=running.port), await dial("b-1", port=running.port)
    await leave_subscribed(running, dial, "a-2", "b-2")
    for peer in (ours, theirs):
        await peer.subscribe(("1", 0), ("2", 0))
    few = running.broker.settings.owner_limits._replace(subscriptions=3, queued_messages=2, retained_messages=1)
    running.broker.limit_owner("a", few)
    assert await subscribed(ours, "2", "3") == [0, QUOTA_EXCEEDED], "what is there already stays"
    assert [await publish(ours, "t/a-2") for _ in range(3)] == [0, 0, QUOTA_EXCEEDED]
    for topic in ("r/1", "r/2"):
        await retain(ours, topic)
        await retain(theirs, topic + "/theirs")
    assert running.broker.retained.count == 3
    assert await subscribed(theirs, "3") == [0]
    assert [await publish(theirs, "t/b-2") for _ in range(3)] == [0, 0, 0]
    running.broker.limit_owner("a", None)
    assert await subscribed(ours, "3") == [0]
    assert await publish(ours, "t/a-2") == 0
    await retain(ours, "r/2")
    assert running.broker.retained.count == 4


async def subscribed(client: RawClient, *filters: str) -> list[int]:
    """The reason codes of a SUBACK."""
    return [int(code) for code in (await client.subscribe(*((each, 0) for each in filters))).reason_codes]


async def retain(client: RawClient, topic: str) -> None:
    """Publishes a retained message, and waits for the PUBACK."""
    client.publish(topic, b"x", qos=1, packet_id=4, retain=True)
    await client.receive()


async def test_held_owners_clients_are_not_read_and_lose_nothing(start: Any, dial: Any) -> None:
    running = await start(RecordingHooks(verdict=owner_of))
    ours, theirs = await dial("a-1", port=running.port), await dial("b-1", port=running.port)
    running.broker.hold_owners({"a"})
    ours.publish("t/x", b"1", qos=1, packet_id=3)
    late = await dial("a-2", port=running.port)
    late.publish("t/x", b"2", qos=1, packet_id=4)
    assert max([await publish(theirs, "t/x") for _ in range(20)]) < 0x80
    assert running.broker.client("a-1").messages_in == 0
    assert running.broker.client("a-2").messages_in == 0
    running.broker.pause_intake()
    running.broker.resume_intake()
    assert max([await publish(theirs, "t/x") for _ in range(20)]) < 0x80
    assert running.broker.client("a-1").messages_in == 0, "another reason is no matter"
    running.broker.hold_owners({"c"})
    assert (await ours.receive()).packet_id == 3
    assert (await late.receive()).packet_id == 4
