"""``terrazzo migrate`` from one process into a cluster and back, with a real log and a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from migration_stand import clean, environment, in_store, migrate, new_source

from mqtt_bytes import login, publish
from nats_servers import NatsServer, running_nats
from open_stores import open_rocks, supervisor
from running import Platform, answers, wait_for
from terrazzo.backup.migration.marker import MIGRATING
from terrazzo.ports.store import Record
from terrazzo.replication.in_frame import InBatch, InFrame, InTopic, Numbered, encode_in_frame
from terrazzo.replication.in_position import IN_NOTE
from terrazzo.replication.position import NOTE, Position
from terrazzo_adapters.jetstream import Connection, JetStreamLog, JetStreamSettings

pytestmark = pytest.mark.timeout(600)

TO, OF = "TERRAZZO_TO_", "TERRAZZO_"
OF_THE_LOG = {NOTE, IN_NOTE}


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with running_nats(tmp_path_factory.mktemp("nats")) as (server,):
        yield server


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_source(tmp_path_factory.mktemp("source") / "data")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of one process that has ended, with ten records of a terminal and an upload."""
    folder = tmp_path_factory.mktemp("lived") / "data"
    with Platform(folder, env={"TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32}) as one:
        one.login()
        one.add_terminal("t-1", one.add_config("moved"))
        say(one, "t-1", range(10))
    (folder / "files" / "1").mkdir(parents=True, exist_ok=True)
    (folder / "files" / "1" / "upload").write_bytes(os.urandom(10_000))
    return folder


def clustered(prefix: str, name: str, node: str, database: str, nats: NatsServer) -> dict[str, str]:
    """The variables of a node's configuration; the key is that of ``new_source``."""
    return {
        **environment(prefix, database=database),
        f"{prefix}DATABASE__SECRETS_KEY": "ab" * 32,
        f"{prefix}AUTH__TOKEN_KEY": "k" * 32,
        f"{prefix}STREAM__KIND": "jetstream",
        f"{prefix}STREAM__URL": nats.url,
        f"{prefix}STREAM__MONITOR_URL": nats.monitor_url,
        f"{prefix}STREAM__REPLICAS": "1",
        f"{prefix}STREAM__LOG_GIB": "0.05",
        f"{prefix}STREAM__IN_GIB": "0.05",
        f"{prefix}CLUSTER__NAME": name,
        f"{prefix}CLUSTER__NODE": node,
    }


class Node(Platform):
    """A node, which is there when it stands by."""

    def wait_ready(self, condition: Callable[[], bool], *, timeout_s: float = 60) -> None:
        super().wait_ready(lambda: answers(f"{self.url}/healthz"), timeout_s=timeout_s)

    def wait_leading(self) -> Node:
        super().wait_ready(lambda: answers(f"{self.url}/readyz"), timeout_s=90)
        return self

    def has(self, sequence: int) -> bool:
        """Whether its store has the log up to there."""
        return self.figure("terrazzo_cluster_sequence") >= sequence

    def figure(self, name: str) -> int:
        """A figure of its metrics."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith(f"{name} "))


def say(node: Platform, uid: str, numbers: range) -> None:
    """Publishes numbers as a terminal; each is acknowledged."""
    with socket.create_connection(("127.0.0.1", node.mqtt)) as peer, peer.makefile("rb") as answers_of:
        peer.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert answers_of.read(4)[3] == 0
        for number in numbers:
            peer.sendall(publish(f"g/{uid}/r", b'{"n":%d}' % number, packet_id=number + 1))
            assert answers_of.read(4)[:1] == b"\x40"


def said(node: Platform, uid: str) -> int:
    """How many records of a terminal are stored."""
    span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1}
    return int(node.call("get_grid_list", terminal_id=uid, topic=[], **span)["total_records"])


def without_places(found: tuple[dict[str, list[Record]], dict[str, bytes]]) -> object:
    """What a store has beside its places in a log."""
    series, notes = found
    return series, {name: value for name, value in notes.items() if name not in OF_THE_LOG}


def test_into_a_cluster_and_back(lived, tmp_path, postgresql, nats):
    source, database = lived, postgresql.database()

    def early() -> subprocess.CompletedProcess[str]:
        return migrate(tmp_path / "a", tmp_path / "early", **a_is, **to_one)

    own, to_one = ({f"{prefix}DATABASE__SECRETS_KEY": "ab" * 32} for prefix in (OF, TO))
    a_to, a_is = (clustered(prefix, "moved", "a", database, nats) for prefix in (TO, OF))
    b_is = clustered(OF, "moved", "b", database, nats)
    there = migrate(source, tmp_path / "a", "--replica", str(tmp_path / "b"), "--json", **own, **a_to)
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told["equal"]
    assert (told["series"], told["records"]) == (1, 10)
    assert told["tables"]["terminal"]["rows"] == 1
    assert told["replicas"] == [str(tmp_path / "b")]
    before = in_store(source, {})
    for folder, given in ((tmp_path / "a", a_is), (tmp_path / "b", b_is)):
        assert not (folder / MIGRATING).exists()
        assert without_places(in_store(folder, given)) == before
        assert (folder / "files/1/upload").read_bytes() == (source / "files/1/upload").read_bytes()
    again = migrate(source, tmp_path / "again", **own, **{**a_to, **environment(TO, database=postgresql.database())})
    assert again.returncode == 2
    assert "there is a cluster moved already; name another one" in again.stderr

    a = Node(tmp_path / "a", env=a_is).wait_leading()
    b = Node(tmp_path / "b", env=b_is)
    try:
        a.login()
        say(a, "t-1", range(10, 20))
        wait_for(lambda: b.has(a.figure("terrazzo_cluster_sequence")), "b has all", timeout_s=60)
        refused = early()
        assert refused.returncode == 2
        assert "a platform runs on" in refused.stderr
        a.kill()
        b.wait_leading().login()
        assert said(b, "t-1") == 20
        say(b, "t-1", range(20, 30))
        refused = early()
        assert refused.returncode == 2
        assert "b of the cluster moved are there: end fronts" in refused.stderr
    finally:
        assert b.stop(timeout_s=60) == 0
    wait_for(lambda: "are there" not in (refused := early()).stderr and refused, "a is away", timeout_s=60)
    refused = early()
    assert refused.returncode == 2
    assert "'b' was the last node that led, not 'a': move that one" in refused.stderr

    back = migrate(tmp_path / "b", tmp_path / "back", **b_is, **to_one)
    assert back.returncode == 0, back.stderr
    assert "all is equal" in back.stdout
    series, notes = in_store(tmp_path / "back", {})
    assert not OF_THE_LOG & set(notes)
    assert len(series["g/t-1/r"]) == 30
    assert series["g/t-1/r"][:10] == before[0]["g/t-1/r"]
    assert (tmp_path / "back" / "files/1/upload").read_bytes() == (source / "files/1/upload").read_bytes()
    with Platform(tmp_path / "back", env=own) as one:
        one.login()
        assert said(one, "t-1") == 30
        say(one, "t-1", range(30, 31))
        assert said(one, "t-1") == 31


@pytest.mark.parametrize("what", ["records of the source compared", "records of target compared", "folder"])
def test_killed_it_goes_on(source, tmp_path, postgresql, nats, what):
    given = clustered(TO, f"killed-{what[-14:-9].strip()}".replace(" ", ""), "a", postgresql.database(), nats)
    replica = tmp_path / "b"
    told = f"folder {replica}" if what == "folder" else what
    words = ["migrate", "--data", str(source), "--to-data", str(tmp_path / "a"), "--replica", str(replica)]
    program = [sys.executable, str(Path(__file__).parent / "killed_migration.py"), told, "1", *words]
    killed = subprocess.run(program, env={**clean(), **given}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "a" / MIGRATING).exists()
    again = migrate(source, tmp_path / "a", "--replica", str(replica), **given)
    assert again.returncode == 0, again.stderr
    assert without_places(in_store(replica, {})) == in_store(source, {})
    place = Position(*json_of(in_store(replica, {})[1][NOTE]))
    assert place.sequence == 0
    assert in_store(tmp_path / "a", {})[1][NOTE] == place.encode()


def json_of(note: bytes) -> list[object]:
    """The fields of a position."""
    return list(msgspec.msgpack.decode(note))


def test_a_replica_that_differs_is_found(source, tmp_path, postgresql, nats):
    given = clustered(TO, "differs", "a", postgresql.database(), nats)
    replicas = ("--replica", str(tmp_path / "b"))
    assert migrate(source, tmp_path / "a", *replicas, **given).returncode == 0
    equal = migrate(source, tmp_path / "a", *replicas, "--verify", **given)
    assert equal.returncode == 0, equal.stderr
    asyncio.run(_add(tmp_path / "b", Record("m/17", 9, b"{}")))
    found = migrate(source, tmp_path / "a", *replicas, "--verify", **given)
    assert found.returncode == 1
    assert f"{tmp_path / 'b'}: series m/17: 43 records, the source has 42" in found.stderr


async def _add(folder: Path, record: Record) -> None:
    tasks = supervisor()
    store = await open_rocks(folder / "series", tasks)
    await store.append([record])
    await store.close()
    await tasks.close()


def test_what_fronts_have_acknowledged_is_not_left_behind(lived, tmp_path, postgresql, nats):
    database = postgresql.database()
    given = clustered(TO, "left", "a", database, nats) | {"TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32}
    assert migrate(lived, tmp_path / "a", **given).returncode == 0
    node = Node(tmp_path / "a", env=(is_a := clustered(OF, "left", "a", database, nats))).wait_leading()
    assert node.stop(timeout_s=60) == 0
    topic = InTopic("g/t/r", "g/t/r", "t", "r", "x/t", answers=False)
    reports = InFrame("f1", [topic], [InBatch("t", "1", 1, 1, [0, 0], [b"{}", b"{}"])])
    only_events = InFrame("f1")
    asyncio.run(_log_in(nats, "left", [Numbered(7, 1, reports), Numbered(7, 1, reports), Numbered(7, 2, only_events)]))
    refused = migrate(tmp_path / "a", tmp_path / "back", **is_a, TERRAZZO_TO_DATABASE__SECRETS_KEY="ab" * 32)
    assert refused.returncode == 2
    assert "2 reports that fronts have acknowledged are not stored yet" in refused.stderr
    assert os.listdir(tmp_path / "back") == []

    asyncio.run(_log_in(nats, "others", [Numbered(7, 1, reports)]))
    others = clustered(TO, "others", "a", postgresql.database(), nats) | {"TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32}
    refused = migrate(lived, tmp_path / "b", **others)
    assert refused.returncode == 2
    assert "the log of the cluster others has frames already; name another one" in refused.stderr


async def _log_in(nats: NatsServer, name: str, frames: list[Numbered]) -> None:
    """Puts frames into the log of what fronts have taken."""
    settings = {"most_bytes": 50 << 20, "most_in_bytes": 50 << 20}
    connection = Connection(JetStreamSettings(url=nats.url, name=name, replicas=1, **settings))
    await connection.open()
    log = JetStreamLog(connection, kind="in")
    await log.open()
    for place, each in enumerate(frames):
        await log.publish(encode_in_frame(each), message_id=f"m{place}", last=None)
    await connection.close()


def test_what_makes_no_sense_is_refused(source, tmp_path, postgresql, nats):
    database = postgresql.database()
    given = clustered(TO, "refused", "a", database, nats)
    for more, words in (
        ({**given, **clustered(OF, "refused", "a", database, nats)}, "source and target are clusters"),
        ({**given, f"{TO}CLUSTER__ROLE": "front"}, "--to-config: is a front's"),
        ({**given, f"{TO}DATABASE__SECRETS_KEY": "cd" * 32}, "set it to what is in the source's file secrets-key"),
        ({**given, f"{TO}STREAM__URL": "nats://127.0.0.1:1"}, "nats://127.0.0.1:1"),
    ):
        refused = migrate(source, tmp_path / "a", **more)
        assert refused.returncode == 2, words
        assert words in refused.stderr
    refused = migrate(source, tmp_path / "a", "--replica", str(tmp_path / "a" / "b"), **given)
    assert refused.returncode == 2
    assert "one in the other" in refused.stderr
    refused = migrate(source, tmp_path / "a", "--replica", str(tmp_path / "b"), **environment(TO, database=database))
    assert refused.returncode == 2
    assert "the target is one process: there are no further nodes" in refused.stderr
