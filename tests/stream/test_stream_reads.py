"""A node that stands by and answers reads, as a process beside its leader, around a real log and a real PostgreSQL."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from test_stream_takeover import NodeProcess, ask_cluster, environment

from migrated import PASSWORD
from mqtt_bytes import login, publish
from nats_servers import NatsServer
from postgresql_server import PostgreSQL
from running import ServerProcess, answers, wait_for
from support import free_port
from terrazzo.api.kernel.replica.seams import LeaderAnswer, LeaderQuestion
from terrazzo_adapters.jetstream import Connection, JetStreamCalls, JetStreamSettings

UIDS = ("rd-1", "rd-2", "rd-3", "rd-4")
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.T", ""],
    ["RUN", "", "", "STA", "$AdapterID-1.RUN", ""],
    ["HOT", "", "", "EVNT", "$AdapterID-1.T", "", "x > 80"],
]
SPAN = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
_numbers = itertools.count()
POSITION, FRESHNESS = "Terrazzo-Position", "Terrazzo-Replica"


class Answered(NamedTuple):
    """An answer over HTTP."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def envelope(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def age_s(self) -> float:
        found = re.search(r"age=([0-9.]+)", self.headers[FRESHNESS])
        assert found, self.headers[FRESHNESS]
        return float(found[1])


def ask(node: NodeProcess, path: str, body: Any = None, *, token: str | None, position: str = "") -> Answered:
    """One request; ``path`` may be the name of an action, with ``body`` as its fields."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {POSITION: position} if position else {}
    connection = http.client.HTTPConnection("127.0.0.1", node.http, timeout=30)
    try:
        if path.startswith("/"):
            connection.request("GET" if body is None else "POST", path, json.dumps(body) if body else None, headers)
        else:
            given = json.dumps({"action": path, "actionid": 7, **(body or {})})
            connection.request("POST", "/apiproxy/api", given, {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return Answered(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


class Terminal:
    """A connection that waits for each PUBACK."""

    def __init__(self, port: int, uid: str) -> None:
        self._uid = uid
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert self._socket.recv(4) == b"\x20\x02\x00\x00"

    def report(self, **points: Any) -> None:
        self._socket.sendall(publish(f"g/{self._uid}/r", json.dumps(points).encode()))
        assert self._socket.recv(4)[:2] == b"\x40\x02"

    def close(self) -> None:
        self._socket.close()


class World:
    """Two nodes and what is in them."""

    def __init__(self, folder: Path, database: str, nats: NatsServer) -> None:
        self._folder, self._database, self.nats = folder, database, nats
        self.name = f"reads-{next(_numbers)}"
        self.tcp = free_port()
        self.a = self.start("a").wait_leading()
        self.a.login()
        self.token = self.a.token
        self.objects: list[str] = []

    def start(self, name: str) -> NodeProcess:
        own = {
            "TERRAZZO_CLUSTER__NAME": self.name,
            "TERRAZZO_CLUSTER__READS": "true",
            **({"TERRAZZO_TCP__ENABLED": "true", "TERRAZZO_TCP__PORT": str(self.tcp)} if name == "b" else {}),
        }
        return NodeProcess(self._folder / name, env={**environment(name, self._database, self.nats), **own})

    def fill(self) -> None:
        """Terminals, objects, reports, events and labels."""
        a = self.a
        config = a.add_config()
        mapping = a.call("create_mapping", name="m", script=ROWS, **BY)["uid"]
        for uid in UIDS:
            a.add_terminal(uid, config)
            made = a.call("create_object", name=f"o-{uid}", mapping_id=mapping, terminal_list=[uid])
            self.objects.append(str(made["id"]))
        retainer = a.call("create_retainer", name="r", object_list=self.objects, script=[["RUN", "on", "on", "1", ""]])
        a.call("start_retainer", uid=retainer["uid"])
        for number, uid in enumerate(UIDS):
            terminal = Terminal(a.mqtt, uid)
            for turn in range(30):
                terminal.report(T=60 + number + turn, RUN=turn % 2)
            terminal.close()

    def start_replica(self) -> NodeProcess:
        b = self.start("b")
        ServerProcess.wait_ready(b, lambda: answers(f"{b.url}/readyz/reads"), timeout_s=60)
        return b

    def end(self, *nodes: NodeProcess) -> None:
        for node in (self.a, *nodes):
            node.kill()


@pytest.fixture
def world(tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer) -> Iterator[World]:
    made = World(tmp_path, postgresql.migrated_database(), nats_server)
    try:
        yield made
    finally:
        made.a.kill()


@contextmanager
def replica_of(world: World) -> Iterator[NodeProcess]:
    b = world.start_replica()
    try:
        yield b
    finally:
        b.kill()


def timeless(body: bytes) -> bytes:
    """An answer without how old a value is at the moment."""
    return re.sub(rb'"age_s":[0-9.]+', b'"age_s":0', body)


def questions(world: World) -> list[tuple[str, Any]]:
    """More than 200: actions with their fields, and paths."""
    asked: list[tuple[str, Any]] = []
    for uid in UIDS:
        asked += [("get_last_grid", {"terminal_id": uid}), ("get_last_grid", {"terminal_id": uid, "topic": ["r"]})]
        for size in (1, 7, 100):
            for index in (1, 2, 3):
                page = {"page_size": size, "page_index": index}
                asked.append(("get_grid_list", {"terminal_id": uid, **SPAN, **page}))
        asked += [
            ("get_last_grid_list", {"terminal_id": uid, "items": 5}),
            ("get_grid_item", {"terminal_id": uid, "time": "2020-01-01 00:00:00"}),
            ("get_grid_chart", {"terminal_id": uid, "keys": ["T"], "points": 10, **SPAN}),
            ("get_mapped_messages", {"terminal_id": uid}),
            ("get_reject_list", {"terminal_id": uid, **SPAN}),
            ("get_presence_list", {"terminal_id": uid, "start_time": SPAN["start_time"], "end_time": "2020-01-01"}),
            ("get_terminal_item", {"uid": uid}),
            ("get_command_list", {"terminal_id": uid}),
            (f"/grid/api/v1/grid/getLastItem?terminalId={uid}", None),
            (f"/object/api/v1/terminal/getItem?uid={uid}", None),
            (f"/export/grid/{uid}?start_time=2000-01-01&end_time=2100-01-01", None),
        ]
    for item in world.objects:
        asked += [
            ("get_last_mosaic", {"object_id": item, "keys": ["T", "RUN"]}),
            ("get_last_mosaic", {"object_id": item, "keys": []}),
            ("get_mosaic_item", {"object_id": item, "keys": ["T"], "time": "2020-01-01 00:00:00"}),
            ("get_last_mosaic_list", {"object_id": item, "keys": ["T"], "items": 5}),
            ("get_mosaic_list", {"object_id": item, "keys": ["T"], **SPAN, "page_size": 11}),
            ("get_mosaic_list_by_key", {"object_id": item, "keys": ["T", "RUN"], **SPAN}),
            ("get_mosaic_chart", {"object_id": item, "keys": ["T", "RUN"], "points": 10, **SPAN}),
            ("get_object_variable_list", {"object_id": item}),
            ("get_object_log", {"object_id": item}),
            ("get_event_list", {"object_id": item, **SPAN}),
            ("get_retainer_label_list", {"object_id": item, **SPAN}),
            ("get_open_retainer_list", {"object_id": item}),
            ("get_object_item", {"uid": item}),
            (f"/mosaic/api/v1/mosaic/getLastItem?objectId={item}&keys=T", None),
            (f"/service/api/v1/event/getList?objectId={item}", None),
            (f"/object/api/v1/object/getItem?id={item}", None),
            (f"/export/mosaic/{item}?start_time=2000-01-01&end_time=2100-01-01", None),
        ]
    of_records = ("user", "company", "terminal", "terminal_config", "mapping", "control", "customer", "object")
    of_records += ("project", "retainer", "balance", "dashboard", "rule", "campaign")
    for name in of_records:
        asked += [(f"get_{name}_list", {"page_size": size}) for size in (1, 3, 100)]
        asked.append((f"get_{name}_item", {"uid": "nobody"}))
    asked += [
        *((f"get_{kind}_script_list", {}) for kind in ("statistics", "calculate")),
        ("search", {"text": "rd"}),
        ("get_event_quantity", {}),
        ("get_retainer_quantity", {}),
        ("get_event_quantity_by_day", SPAN),
        ("get_former_terminal_list", {}),
        ("get_handover_list", {}),
        ("get_audit_list", {"page_size": 50}),
        ("get_message_list", {}),
        ("get_rule_command_list", {}),
        ("get_claim_key_list", {}),
        ("get_last_statistics", {"object_id": world.objects[0]}),
        ("get_balance_result_list", {**SPAN}),
        *((f"/bulk/{kind}", None) for kind in ("terminals", "objects", "mappings")),
        ("no_such_action", {}),
        ("get_grid_list", {"terminal_id": "nobody", **SPAN}),
        ("get_grid_list", {"terminal_id": UIDS[0], "page_size": "x"}),
        ("/influx/query?db=terrazzo&q=SHOW%20MEASUREMENTS", None),
    ]
    return asked


@pytest.mark.timeout(300)
def test_a_replica_answers_as_its_leader(world: World) -> None:
    world.fill()
    with replica_of(world) as b:
        asked = questions(world)
        assert len(asked) >= 200
        position = ask(world.a, "update_customer", {"uid": "nobody"}, token=world.token).headers[POSITION]
        succeeded = 0

        def both(path: str, body: Any, position: str) -> tuple[Answered, Answered] | None:
            """The leader's answer and the replica's, once they are alike: events and labels follow their reports."""
            first = ask(world.a, path, body, token=world.token)
            second = ask(b, path, body, token=world.token, position=position)
            is_alike = (first.status, timeless(first.body)) == (second.status, timeless(second.body))
            return (first, second) if is_alike else None

        for path, body in asked:
            expected, found = wait_for(partial(both, path, body, position), f"alike: {path} {body}")
            assert found.headers[FRESHNESS].startswith('node="b"'), (path, body)
            assert FRESHNESS not in expected.headers
            if path == "get_event_list" or (path == "get_last_mosaic" and body["keys"]):
                assert b'"T"' in found.body or b"HOT" in found.body, found.body  # there is something to compare
            succeeded += found.status == 200 and b'"code":10' not in found.body and b'"code":500' not in found.body
        assert succeeded >= 180, succeeded
        status = json.loads(ask_cluster(b, "status", "--json"))
        shown = {each["node"]: each for each in status["nodes"]}
        assert (shown["b"]["state"], shown["b"]["reads"], shown["a"]["reads"]) == ("follows", True, False)
        assert shown["b"]["age_s"] < 60
        assert shown["a"]["url"].endswith(f":{world.a.http}")
        assert ask(b, "/readyz", token=None).status == 503
        assert ask(b, "/readyz/reads", token=None).status == ask(world.a, "/readyz/reads", token=None).status == 200
        metrics = ask(b, "/metrics", token=None).body.decode()
        assert "terrazzo_replica_serves 1.0" in metrics
        assert re.search(r"^terrazzo_replica_age_seconds [0-9.]+$", metrics, re.M)


@pytest.mark.timeout(300)
def test_a_read_has_what_was_written_before_and_a_change_is_refused(world: World) -> None:
    world.fill()
    with replica_of(world) as b:
        own = ask(b, "login", {"username": "admin", "password": PASSWORD}, token=None).envelope["result"]["token"]
        terminal = Terminal(world.a.mqtt, UIDS[0])
        for turn in range(30):
            terminal.report(T=turn, turn=turn)
            made = ask(world.a, "create_customer", {"name": f"c{turn}", **BY}, token=own)
            assert made.envelope["code"] == 200
            position, uid = made.headers[POSITION], made.envelope["result"]["uid"]
            found = ask(b, "get_customer_item", {"uid": uid}, token=own, position=position)
            assert found.envelope["result"]["name"] == f"c{turn}"
            newest = ask(b, "get_last_grid", {"terminal_id": UIDS[0]}, token=own, position=position)
            assert newest.envelope["result"]["data"][0]["payload"]["turn"] == turn
        terminal.close()

        frames, _, change = position.partition(".")
        for later in (f"{int(frames) + 1_000}.{change}", f"{frames}.{int(change) + 1_000}"):
            began_s = time.monotonic()
            refused = ask(b, "get_customer_list", {}, token=own, position=later)
            assert (refused.status, refused.envelope["reason"]["code"]) == (503, "replica_behind")
            assert 1.9 < time.monotonic() - began_s < 20
        bad = ask(b, "get_customer_list", {}, token=own, position="soon")
        assert (bad.status, bad.envelope["code"]) == (200, 10401)

        for path, body in (
            ("create_customer", {"name": "x", **BY}),
            ("delete_customer", {"uid": uid}),
            ("publish_terminal_command", {"terminal_id": UIDS[0], "command": "AXRead", "value": ""}),
            ("/object/api/v1/terminal/add", {"uid": "y"}),
        ):
            refused = ask(b, path, body, token=own)
            assert (refused.status, refused.envelope["reason"]["code"]) == (503, "replica_names_leader")
            assert f"a (http://127.0.0.1:{world.a.http}) answers this" in refused.envelope["info"]
        stranger = ask(b, "create_customer", {"name": "x", **BY}, token=None)
        assert (stranger.envelope["code"], str(world.a.http) in str(stranger.body)) == (10402, False)
        stranger = ask(b, "request_password_reset", {"username": "admin"}, token=None)
        assert (stranger.status, str(world.a.http) in str(stranger.body)) == (503, False)
        listed = ask(world.a, "get_customer_list", {"page_size": 100}, token=own).envelope["result"]["data"]
        names = [each["name"] for each in listed]
        assert sorted(names) == sorted(f"c{turn}" for turn in range(30))

        assert ask(b, "logout", {}, token=own).envelope["code"] == 200
        wait_for(lambda: ask(world.a, "ping", {}, token=own).envelope["code"] == 10402, "the leader hears of it")


@pytest.mark.timeout(300)
def test_the_leader_answers_reads_of_whoever_shows_a_token_and_nothing_else(world: World) -> None:
    """Whoever reaches the log's servers may ask; they can do no more than at the leader's port, and change nothing."""
    config = world.a.add_config()
    world.a.add_terminal(UIDS[0], config)
    token = str(world.token)

    async def ask_all(*asked: LeaderQuestion | bytes) -> list[dict[str, Any]]:
        connection = Connection(JetStreamSettings(url=world.nats.url, name=world.name, replicas=1))
        await connection.open()
        try:
            calls = JetStreamCalls(connection)
            bodies = [each if isinstance(each, bytes) else msgspec.msgpack.encode(each) for each in asked]
            answers = await asyncio.gather(*(calls.ask("reads.a", body, timeout_s=30) for body in bodies))
            return [json.loads(msgspec.msgpack.decode(each, type=LeaderAnswer).body) for each in answers]
        finally:
            await connection.close()

    customer = json.dumps({"name": "x", **BY}).encode()
    item = json.dumps({"uid": UIDS[0]}).encode()
    found = asyncio.run(
        ask_all(
            LeaderQuestion("get_terminal_item", item, "1.2.3.4", token),
            LeaderQuestion("get_terminal_item", item, "1.2.3.4", ""),
            LeaderQuestion("get_terminal_item", item, "1.2.3.4", "x" * 300),
            LeaderQuestion("create_customer", customer, "1.2.3.4", token),
            LeaderQuestion("/object/api/v1/object/add", customer, "1.2.3.4", token, "POST"),
            LeaderQuestion("get_terminal_item", b'{"action": "create_customer"}', "1.2.3.4", token),
            b"\x93",
            b"",
            *(LeaderQuestion("get_terminal_list", b"{}", "1.2.3.4", token) for _ in range(100)),
        )
    )
    codes = [each["code"] for each in found]
    assert codes[:3] == [200, 10402, 10402]
    assert all(code != 200 for code in codes[3:8])
    assert codes[8:] == [200] * 100
    assert world.a.call("get_customer_list")["data"] == []


@pytest.mark.timeout(300)
def test_live_frames_come_from_a_replica(world: World) -> None:
    world.fill()
    with replica_of(world) as b:
        connection = socket.create_connection(("127.0.0.1", world.tcp), timeout=30)
        lines = connection.makefile("rb")

        def tell(**fields: Any) -> dict[str, Any]:
            connection.sendall(json.dumps(fields).encode() + b"\n")
            return json.loads(lines.readline())

        good = {"Authorization": f"Bearer {world.token}"}
        refused = tell(action="subscribe", kinds=["event"], **good)
        assert refused["reason"]["code"] == "replica_tells_of"
        assert tell(action="subscribe", kinds=["grid", "mosaic"])["code"] == 200
        terminal = Terminal(world.a.mqtt, UIDS[1])
        terminal.report(T=42)
        told = ""
        while not ("42" in told and UIDS[1] in told and '"mosaic"' in told):  # or the socket's time is over
            told += lines.readline().decode()
        terminal.close()
        connection.close()
        assert b.process.poll() is None


@pytest.mark.timeout(300)
def test_reads_go_on_when_the_leader_dies_and_a_stopped_replica_says_how_old_it_is(world: World) -> None:
    world.fill()
    b = world.start_replica()
    try:
        expected = ask(world.a, "get_grid_list", {"terminal_id": UIDS[0], **SPAN}, token=world.token).body

        b.process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        terminal = Terminal(world.a.mqtt, UIDS[0])
        terminal.report(T=1, late=1)
        terminal.close()
        position = ask(world.a, "update_customer", {"uid": "nobody"}, token=world.token).headers[POSITION]
        written_s = time.monotonic()
        wait_for(lambda: time.monotonic() - stopped_s > 4, "it is stopped for a while")
        b.process.send_signal(signal.SIGCONT)
        first = ask(b, "get_grid_list", {"terminal_id": UIDS[0], **SPAN}, token=world.token)
        answered_s = time.monotonic()
        if first.body == expected:  # it hasn't the report yet, and says that it may not have what is so old
            assert first.age_s > answered_s - written_s - 1.5
        later = ask(b, "get_last_grid", {"terminal_id": UIDS[0]}, token=world.token, position=position)
        assert later.envelope["result"]["data"][0]["payload"]["late"] == 1
        expected = ask(world.a, "get_grid_list", {"terminal_id": UIDS[0], **SPAN}, token=world.token).body

        found: list[tuple[str, bytes]] = []
        is_over = threading.Event()

        def read() -> None:
            while not is_over.is_set():
                try:
                    answered = ask(b, "get_grid_list", {"terminal_id": UIDS[0], **SPAN}, token=world.token)
                except (OSError, http.client.HTTPException):  # it takes over: its ports change hands
                    found.append(("none", b""))
                    time.sleep(0.01)  # a refused connection costs nothing: not to fill the list alone
                    continue
                found.append(("replica" if FRESHNESS in answered.headers else "other", answered.body))

        reading = threading.Thread(target=read)
        reading.start()
        try:
            world.a.kill()
            lost = wait_for(
                lambda: (refused := ask(b, "get_terminal_list", {}, token=world.token)).status == 503 and refused,
                "what only the leader knows is refused",
            )
            assert lost.envelope["reason"]["code"] in ("replica_leader_silent", "replica_without_leader")
            b.wait_leading()
        finally:
            is_over.set()
            reading.join(60)
        by_replica = [body for who, body in found if who == "replica"]
        assert len(by_replica) >= 10
        assert set(by_replica) == {expected}
        after = [body for who, body in found if who == "other" and b'"code":200' in body]
        assert all(body == expected for body in after)
        made = ask(b, "create_customer", {"name": "after", **BY}, token=world.token)
        assert made.envelope["code"] == 200
        assert POSITION in made.headers
    finally:
        b.kill()
