"""The broker's process and its folder: in order at SIGTERM, alone on it, on a full disk, with a lot in it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import mqtt5
from broker_process import BrokerProcess, wait_until
from persistence_client import Client
from stateful_peer import Peer

HOUR_S = 3600


async def dial(broker: BrokerProcess, client_id: str, *, expiry_s: int = HOUR_S) -> Client:
    client = await Client.open(broker.port)
    await client.connect(client_id, clean_start=False, session_expiry_interval=expiry_s)
    return client


def refusal(folder: Path) -> str:
    """How a broker that may not start says why."""
    command = [sys.executable, "-m", "terrazzo_broker", "--port", "0", "--allow-anonymous", "--data", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


async def test_sigterm_commits_everything(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    subscriber, publisher = await dial(broker, "s"), await dial(broker, "p")
    await subscriber.subscribe(("t", 1))
    await subscriber.disconnect()
    for number in range(1, 201):
        publisher.publish("t", b"%d" % number, qos=1, packet_id=number)
    for _ in range(200):
        await publisher.receive()
    publisher.publish("kept", b"QoS 0", retain=True)
    await publisher.ping()
    assert broker.terminate() == ""
    broker = broker.again()
    subscriber = await dial(broker, "s")
    for number in range(1, 101):
        assert (await subscriber.receive()).payload == b"%d" % number
    await subscriber.subscribe(("kept", 0))
    assert (await subscriber.receive()).payload == b"QoS 0"
    for client in (subscriber, publisher):
        await client.finish()
    assert broker.terminate() == ""


async def test_no_local_holds_for_what_was_kept_before_a_kill(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    own, other = await dial(broker, "own"), await dial(broker, "other", expiry_s=0)
    for client, payload in ((own, b"own"), (other, b"other")):
        client.publish(f"kept/{payload.decode()}", payload, qos=1, packet_id=1, retain=True)
        assert isinstance(await client.receive(), mqtt5.PubAckPacket)
        await client.finish()
    broker.kill()
    broker = broker.again()
    own = await dial(broker, "own")
    own.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("kept/+", max_qos=mqtt5.QoS.AT_LEAST_ONCE, no_local=True)]))
    assert isinstance(await own.receive(), mqtt5.SubAckPacket)
    assert (await own.receive()).payload == b"other"
    await own.ping()
    await own.finish()
    broker.terminate()


async def test_one_process_a_folder(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    assert "in use by another process" in refusal(tmp_path / "data")
    broker.terminate()


def test_unusable_folders_are_named(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    assert str(taken) in refusal(taken)
    from rocksdict import Options, Rdict

    database = Rdict(str(tmp_path / "other"), Options(raw_mode=True))
    database[b"somebody"] = b"else's"
    database.close()
    assert "something else than a broker's state" in refusal(tmp_path / "other")


async def test_a_full_disk(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    subscriber, bystander = await dial(broker, "s"), await dial(broker, "b", expiry_s=0)
    await subscriber.subscribe(("t", 1))
    await bystander.subscribe(("u", 1))
    await subscriber.disconnect()
    publisher = await dial(broker, "p", expiry_s=0)
    publisher.publish("t", b"fits", qos=1, packet_id=1)
    assert await publisher.receive() == mqtt5.PubAckPacket(1)

    broker.limit_files(200_000)
    publisher.publish("t", b"x" * 300_000, qos=1, packet_id=2)
    assert (await publisher.receive()).reason_code == mqtt5.DisconnectReasonCode.QUOTA_EXCEEDED
    await publisher.finish()
    publisher = await dial(broker, "p", expiry_s=0)
    publisher.publish("t", b"refused", qos=1, packet_id=1)
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
    publisher.publish("u", b"memory", qos=1, packet_id=2)
    assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.SUCCESS
    assert (await bystander.receive()).payload == b"memory"

    broker.limit_files()
    deadline_s = time.monotonic() + 10
    reason = mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
    while reason != mqtt5.PubAckReasonCode.SUCCESS:
        assert time.monotonic() < deadline_s
        publisher.publish("t", b"again", qos=1, packet_id=3)
        reason = (await publisher.receive()).reason_code
    broker.kill()
    broker = broker.again()
    restored = await dial(broker, "s")
    assert [len((await restored.receive()).payload) for _ in range(3)] == [4, 300_000, 5]
    for client in (restored, publisher, bystander):
        await client.finish()
    broker.terminate()


def test_an_older_client_is_cut_off_when_the_disk_is_full(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    subscriber = Peer("s").connect(broker.port)
    subscriber.subscribe("t", 1)
    subscriber.ping()
    broker.limit_files(200_000)
    publisher = Peer("p").connect(broker.port, clean=True)
    publisher.publish("t", b"x" * 300_000, 1)
    wait_until(lambda: publisher.is_cut_off, "end of the connection")
    publisher.leave(goodbye=False)
    assert publisher.unfinished == 1
    assert not publisher.acknowledged
    subscriber.leave(goodbye=False)
    broker.limit_files()
    broker.terminate()


async def test_a_hundred_thousand_queued_messages_load_in_seconds(tmp_path: Path) -> None:
    sessions = 100
    broker = BrokerProcess(tmp_path / "data")
    for number in range(sessions):
        client = await dial(broker, f"s{number}")
        await client.subscribe(("t", 1))
        await client.disconnect()
    publisher = await dial(broker, "p")
    for start in range(0, 1000, 100):
        for number in range(start, start + 100):
            publisher.publish("t", b"%0110d" % number, qos=1, packet_id=number + 1)
        for _ in range(100):
            assert (await publisher.receive()).reason_code == mqtt5.PubAckReasonCode.SUCCESS
    await publisher.finish()
    broker.kill()
    started_s = time.monotonic()
    broker = broker.again()
    took_s = time.monotonic() - started_s
    assert took_s < 10
    client = await dial(broker, f"s{sessions - 1}")
    for number in range(100):
        assert (await client.receive()).payload == b"%0110d" % number
    await client.finish()
    broker.terminate()
