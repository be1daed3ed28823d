"""No task of the broker dies unseen: long-lived ones start again, one of a peer ends that peer's connection alone."""

from __future__ import annotations

import asyncio

import pytest
from mqtt5 import DisconnectPacket, PingReqPacket, PingRespPacket

from terrazzo_broker import Broker, BrokerSettings, Stats, expiry, tasks
from terrazzo_broker.connection import Connection
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.tasks import OnFailure, PeerTasks, RestartingTasks
from waiting import until


async def test_a_failed_task_starts_again(monkeypatch):
    monkeypatch.setattr(tasks, "FIRST_PAUSE_S", 0.01)
    runs, stats = [], Stats()

    async def work():
        runs.append(None)
        if len(runs) < 3:
            raise RuntimeError("planted")
        await asyncio.Event().wait()

    task = RestartingTasks(stats).spawn("a task", work, OnFailure.REPORT)
    await until(lambda: len(runs) == 3)
    assert task.is_running
    assert stats.task_failures == 2
    await task.stop()
    await task.stop()
    assert not task.is_running


async def test_what_fails_as_it_is_cancelled_ends_and_does_not_begin_anew(monkeypatch):
    monkeypatch.setattr(tasks, "FIRST_PAUSE_S", 0.01)
    runs, waits = [], asyncio.Event()

    async def work():
        runs.append(None)
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            raise OSError("planted")

    task = RestartingTasks(Stats()).spawn("a task", work, OnFailure.RESTART)
    await waits.wait()
    async with asyncio.timeout(20):
        await task.stop()
    assert len(runs) == 1
    assert not task.is_running


async def test_a_task_that_returns_is_done():
    async def work():
        return None

    task = RestartingTasks(Stats()).spawn("a task", work, OnFailure.RESTART)
    await until(lambda: not task.is_running)
    await task.stop()


async def test_a_peers_task_that_fails_ends_its_peer():
    stats, ended = Stats(), []
    peers = PeerTasks(stats)

    async def work():
        raise RuntimeError("planted")

    await peers.start("a peer", work, lambda: ended.append("a peer"))
    assert (ended, stats.internal_errors) == (["a peer"], 1)
    await peers.finish()


async def test_the_sweep_goes_on_after_a_fault(start, monkeypatch):
    monkeypatch.setattr(tasks, "FIRST_PAUSE_S", 0.01)
    running = await start()
    storage = running.broker.core.storage
    swept: list[int] = []

    def faulty(now_us):
        swept.append(now_us)
        if len(swept) == 1:
            raise RuntimeError("planted")

    monkeypatch.setattr(storage, "on_sweep", faulty)
    await until(lambda: len(swept) > 2)
    assert running.broker.stats.task_failures == 1


async def test_a_connection_that_cannot_be_swept_keeps_no_other_from_it(running, dial, monkeypatch):
    await dial("good")
    await dial("bad")
    look_at, looked = expiry._look_at, []

    def faulty(core, connection, now_s):
        if connection.client is not None and connection.client.client_id == "bad":
            raise RuntimeError("planted")
        looked.append(connection)
        return look_at(core, connection, now_s)

    def look_at_all() -> None:
        for connection in running.broker.core.connections:
            running.broker.core.connections.look_at(connection, 0.0)

    monkeypatch.setattr(expiry, "_look_at", faulty)
    look_at_all()
    await until(lambda: running.broker.client("bad") is None)
    looked.clear()
    look_at_all()
    await until(lambda: looked)
    assert running.broker.client("good") is not None
    assert running.broker.stats.internal_errors >= 1


async def test_a_connection_that_cannot_be_flushed_keeps_no_other_from_it(running, dial, monkeypatch):
    bad, good = await dial("bad"), await dial("good")
    flush = Connection.flush

    def faulty(self):
        if self.client is not None and self.client.client_id == "bad" and self.transport.is_closing() is False:
            raise RuntimeError("planted")
        flush(self)

    monkeypatch.setattr(Connection, "flush", faulty)
    bad.send(PingReqPacket())
    good.send(PingReqPacket())
    assert isinstance(await good.receive(), PingRespPacket)
    await until(lambda: running.broker.client("bad") is None)
    assert running.broker.stats.internal_errors == 1


@pytest.mark.parametrize("hook", ["authorize_publish", "authorize_subscribe", "on_connected", "on_disconnected"])
async def test_a_hook_that_raises_is_counted(running, dial, hook, monkeypatch):
    def faulty(*arguments):
        raise RuntimeError("planted")

    monkeypatch.setattr(running.hooks, hook, faulty)
    client = await dial("raw")
    if hook == "authorize_subscribe":
        await client.subscribe(("a/b", 0))
    elif hook == "authorize_publish":
        client.publish("a/b")
    client.send(DisconnectPacket())
    await until(lambda: running.broker.stats.hook_failures == 1)


async def test_a_task_of_the_embedding_program_may_run_the_sweep():
    spawned = []

    class Tasks:
        def spawn(self, name, work, on_failure):
            spawned.append((name, on_failure.value))
            return RestartingTasks(Stats()).spawn(name, work, on_failure)

    broker = Broker(BrokerSettings(), OpenHooks(anonymous=True), tasks=Tasks())
    await broker.listen_tcp("127.0.0.1", 0)
    await broker.listen_tcp("127.0.0.1", 0, proxy_protocol=True)
    assert [name.rsplit(":", 1)[0] for name, _ in spawned] == ["broker sweep", "broker accept tcp 127.0.0.1"]
    assert broker.is_listening
    await broker.close(1.0)
    assert not broker.is_listening
