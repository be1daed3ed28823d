"""Two nodes as processes around a real log and a real PostgreSQL: killed, stopped and woken, ended in order."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from test_stream_replication import content, rocks

from durability.test_acknowledged_is_stored import Publisher, stored_numbers
from loaded_process import run_loaded_text
from nats_servers import NatsServer, NatsServers
from postgresql_server import PostgreSQL
from running import Platform, answers, wait_for
from terrazzo_adapters.jetstream import Connection, JetStreamSettings

UIDS = ("cl-1", "cl-2")


class NodeProcess(Platform):
    """A node, which is there when it stands by."""

    def wait_ready(self, condition: Callable[[], bool], *, timeout_s: float = 60) -> None:
        super().wait_ready(lambda: answers(f"{self.url}/healthz"), timeout_s=timeout_s)

    def wait_leading(self) -> NodeProcess:
        super().wait_ready(lambda: answers(f"{self.url}/readyz"), timeout_s=60)
        return self

    def readiness(self) -> str:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.read().decode()


def environment(name: str, database: str, nats: NatsServer | NatsServers) -> dict[str, str]:
    return {
        "TERRAZZO_DATABASE__URL": database,
        "TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32,
        "TERRAZZO_AUTH__TOKEN_KEY": "k" * 32,
        "TERRAZZO_STREAM__KIND": "jetstream",
        "TERRAZZO_STREAM__URL": nats.url,
        "TERRAZZO_STREAM__MONITOR_URL": nats.monitor_url,
        "TERRAZZO_STREAM__REPLICAS": "1",
        "TERRAZZO_STREAM__LOG_GIB": "0.1",
        "TERRAZZO_STREAM__IN_GIB": "0.1",
        "TERRAZZO_CLUSTER__NAME": "takeover",
        "TERRAZZO_CLUSTER__NODE": name,
    }


def ask_cluster(node: NodeProcess, *arguments: str) -> str:
    command = ["-m", "terrazzo", "cluster", *arguments, "--data", str(node.data)]
    ended = run_loaded_text(command, env={**os.environ, **node.environment})
    return ended.stdout + ended.stderr


async def _begin_anew(node: NodeProcess, nats: NatsServer) -> NodeProcess:
    """Deletes the log under a node that is ended; it leads again after the way out that the documents name."""
    connection = Connection(JetStreamSettings(url=nats.url, name="takeover", replicas=1))
    await connection.open()
    await connection.ask("STREAM.DELETE.TAKEOVER_OUT")
    await connection.close()
    refused = run_loaded_text(
        ["-m", "terrazzo", "serve", "--data", str(node.data)], env={**os.environ, **node.environment}
    )
    assert refused.returncode == 2
    assert "it was deleted or is another one; docs/scaling.md says what to do" in refused.stdout + refused.stderr
    assert "Now set cluster.name to a new name" in ask_cluster(node, "begin-anew")
    renamed = {**node.environment, "TERRAZZO_CLUSTER__NAME": "takeover-2"}
    return NodeProcess(node.data, env=renamed, ports=node.ports).wait_leading()


@pytest.mark.timeout(300)
async def test_acknowledged_is_stored_once_whichever_node_dies(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    database = postgresql.migrated_database()
    promised: dict[str, set[int]] = {uid: set() for uid in UIDS}
    following = dict.fromkeys(UIDS, 0)

    def start(name: str, *, ports: tuple[int, ...] = ()) -> NodeProcess:
        return NodeProcess(tmp_path / name, env=environment(name, database, nats_server), ports=ports)

    def load(node: NodeProcess) -> list[Publisher]:
        publishers = [Publisher(node.mqtt, uid, following[uid]) for uid in UIDS]
        wait_for(lambda: all(len(each.acknowledged) >= 300 for each in publishers), "a load under way", timeout_s=60)
        return publishers

    def end(publishers: list[Publisher]) -> None:
        for each in publishers:
            each.thread.join(60)
            assert not each.thread.is_alive()
            promised[each.uid] |= each.acknowledged
            following[each.uid] = each.next

    def check(node: NodeProcess) -> None:
        node.login()
        for uid in UIDS:
            numbers = stored_numbers(node, uid)
            assert promised[uid] <= set(numbers)
            assert len(numbers) == len(set(numbers)), "stored twice"

    a = start("a").wait_leading()
    try:
        a.login()
        config = a.add_config()
        for uid in UIDS:
            a.add_terminal(uid, config)
        b = start("b")
        wait_for(lambda: "the node 'a' leads" in b.readiness(), "b stands by")
        with pytest.raises(ConnectionError):
            Publisher(b.mqtt, UIDS[0], 0)

        publishers = load(a)
        a.kill()
        killed_s = time.monotonic()
        b.wait_leading()
        assert time.monotonic() - killed_s < 40  # 8 on a machine that has nothing else to do
        end(publishers)
        check(b)

        a = start("a", ports=a.ports)
        wait_for(lambda: "the node 'b' leads" in a.readiness(), "a stands by")
        publishers = load(b)
        b.process.send_signal(signal.SIGSTOP)
        a.wait_leading()
        b.process.send_signal(signal.SIGCONT)
        assert b.process.wait(30) == 1
        assert "leads" in b.log.read_text()
        end(publishers)
        check(a)

        b.kill()
        b = start("b", ports=b.ports)
        wait_for(lambda: "the node 'a' leads" in b.readiness(), "b stands by again")
        status = json.loads(ask_cluster(a, "status", "--json"))
        assert {each["node"]: each["state"] for each in status["nodes"]} == {"a": "leads", "b": "follows"}
        assert (status["leader"], status["epoch"], status["sync"][:8]) == ("a", 3, "verified")
        assert "'b' is there and follows: end it first" in ask_cluster(a, "forget", "b")
        publishers = load(a)
        assert a.stop(timeout_s=60) == 0
        end(publishers)
        b.wait_leading()
        status = json.loads(ask_cluster(b, "status", "--json"))
        assert {each["node"]: each["state"] for each in status["nodes"]} == {"a": "ended", "b": "leads"}
        check(b)
        assert b.stop(timeout_s=60) == 0

        b = await _begin_anew(b, nats_server)
        check(b)
        assert b.stop(timeout_s=60) == 0
    finally:
        a.kill()
        b.kill()
    async with rocks(tmp_path / "a" / "series") as first, rocks(tmp_path / "b" / "series") as second:
        numbers = await content(second)
        has_all = {name: value for name, value in (await content(first)).items() if name.startswith("g/")}
        assert len(has_all) == len(UIDS)
        assert all(value == numbers[name] for name, value in has_all.items())
