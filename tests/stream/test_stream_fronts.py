"""Fronts as processes around a real log, a leader and a real PostgreSQL: what terminals are told there is true."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_stream_takeover import NodeProcess, ask_cluster, environment

from durability.test_acknowledged_is_stored import Publisher, stored_numbers
from mqtt_bytes import field, frame, login, publish
from nats_servers import NatsServer, NatsServers, running_nats
from postgresql_server import PostgreSQL
from running import Platform, wait_for

UIDS = ("fr-1", "fr-2", "fr-3")


class FrontProcess(Platform):
    """A front, which is there when terminals can connect."""


class Cluster:
    """A leader and fronts on one machine."""

    def __init__(self, folder: Path, database: str, nats: NatsServer | NatsServers, name: str) -> None:
        self.folder, self.database, self.nats, self.name = folder, database, nats, name
        self.started: dict[str, Platform] = {}

    def environment(self, node: str, **more: str) -> dict[str, str]:
        shared = environment(node, self.database, self.nats)
        own = {"TERRAZZO_CLUSTER__NAME": self.name, "TERRAZZO_STREAM__REPLICAS": str(self.nats.count)}
        return {**shared, **own, "TERRAZZO_STREAM__IN_GIB": "0.1", **more}

    def node(self, name: str) -> NodeProcess:
        before = self.started.get(name)
        node = NodeProcess(self.folder / name, env=self.environment(name), ports=before.ports if before else ())
        self.started[name] = node
        return node

    def front(self, name: str, **more: str) -> FrontProcess:
        before = self.started.get(name)
        env = self.environment(name, TERRAZZO_CLUSTER__ROLE="front", **more)
        front = FrontProcess(self.folder / name, env=env, ports=before.ports if before else ())
        self.started[name] = front
        return front

    def end(self) -> None:
        for each in self.started.values():
            each.kill()


@contextmanager
def cluster(folder: Path, postgresql: PostgreSQL, nats: NatsServer | NatsServers, name: str) -> Iterator[Cluster]:
    found = Cluster(folder, postgresql.migrated_database(), nats, name)
    try:
        yield found
    finally:
        found.end()


class Load:
    """Publishers at ports of fronts that go on by themselves until a process dies; and what they were promised."""

    def __init__(self, uids: tuple[str, ...]) -> None:
        self.promised: dict[str, set[int]] = {uid: set() for uid in uids}
        self.next = dict.fromkeys(uids, 0)

    def start(self, ports: dict[str, int], *, most: int = 300) -> list[Publisher]:
        publishers = [Publisher(port, uid, self.next[uid]) for uid, port in ports.items()]
        wait_for(lambda: all(len(each.acknowledged) >= most for each in publishers), "a load under way", timeout_s=90)
        return publishers

    def ended(self, publishers: list[Publisher]) -> None:
        for each in publishers:
            each.thread.join(60)
            assert not each.thread.is_alive()
            self.promised[each.uid] |= each.acknowledged
            self.next[each.uid] = each.next

    def check(self, leader: NodeProcess) -> None:
        """Each acknowledged number is stored, none twice, and each terminal's in the order of its sending."""
        for uid, promised in self.promised.items():
            numbers: list[int] = []

            def has_all(uid: str = uid, promised: set[int] = promised) -> bool:
                """Read twice alike: while more comes in, pages that are read one by one overlap."""
                nonlocal numbers
                before = numbers
                try:
                    numbers = stored_numbers(leader, uid)
                except AssertionError:  # more has come between two pages
                    numbers = []
                return numbers == before and promised <= set(numbers)

            wait_for(has_all, f"all that was acknowledged of {uid} is stored", timeout_s=120)
            assert len(numbers) == len(set(numbers)), "stored twice"
            assert sorted(numbers, reverse=True) == numbers, "out of order"


@pytest.mark.timeout(400)
def test_what_fronts_acknowledge_is_stored_once_whoever_dies(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    with cluster(tmp_path, postgresql, nats_server, "fronts") as found:
        leader = found.node("a").wait_leading()
        leader.login()
        config = leader.add_config()
        for uid in UIDS:
            leader.add_terminal(uid, config)
        first, second = found.front("f1"), found.front("f2")
        load = Load(UIDS)
        ports = {UIDS[0]: first.mqtt, UIDS[1]: second.mqtt, UIDS[2]: first.mqtt}

        publishers = load.start(ports)
        first.kill()
        second.kill()
        load.ended(publishers)
        load.check(leader)

        first, second = found.front("f1"), found.front("f2")
        publishers = load.start(ports)
        leader.kill()
        wait_for(lambda: all(len(each.acknowledged) >= 600 for each in publishers), "fronts go on", timeout_s=90)
        leader = found.node("a").wait_leading()
        leader.login()
        first.kill()
        assert second.stop(timeout_s=60) == 0
        load.ended(publishers)
        load.check(leader)


class Terminal:
    """A terminal of MQTT 3.1.1 that takes commands, and acknowledges them when a test says so."""

    def __init__(self, port: int, uid: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.sendall(login(uid, f"u-{uid}", f"pin-{uid}"))
        assert self._read() == (0x20, b"\0\0")
        self._socket.sendall(frame(0x82, b"\0\1", field(f"p2p/{uid}"), b"\1"))
        assert self._read() == (0x90, b"\0\1\1")

    def _read(self) -> tuple[int, bytes]:
        head = self._exactly(2)
        assert head[1] < 128
        return head[0], self._exactly(head[1])

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self._socket.recv(count - len(found))
            if not piece:
                raise ConnectionError
            found += piece
        return found

    def command(self) -> tuple[bytes, bytes]:
        """The next command: its packet identifier and its payload."""
        first, rest = self._read()
        assert first & 0xF6 == 0x32, first
        start = 2 + int.from_bytes(rest[:2], "big")
        return rest[start : start + 2], rest[start + 2 :]

    def acknowledge(self, identifier: bytes) -> None:
        self._socket.sendall(b"\x40\x02" + identifier)

    def subscribe(self, topic_filter: str) -> int:
        """Its answer to a subscription."""
        self._socket.sendall(frame(0x82, b"\0\2", field(topic_filter), b"\1"))
        return self._read()[1][2]

    def close(self) -> None:
        self._socket.close()


@pytest.mark.timeout(400)
def test_commands_reach_terminals_at_fronts_and_say_what_became_of_them(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    uid = "fr-c"

    def states() -> list[str]:
        return [each["state"] for each in leader.call("get_command_list", terminal_id=uid)["data"]][::-1]

    def status() -> dict[str, Any]:
        return leader.call("get_terminal_status", terminal_id=uid)

    def give(number: int) -> None:
        leader.call("publish_terminal_command", terminal_id=uid, command="Set", value=str(number))

    with cluster(tmp_path, postgresql, nats_server, "fronts-commands") as found:
        leader = found.node("a").wait_leading()
        leader.login()
        leader.add_terminal(uid, leader.add_config())
        front = found.front("f1")
        give(1)
        assert states() == ["queued"]

        terminal = Terminal(front.mqtt, uid)
        identifier, payload = terminal.command()
        assert b"1" in payload
        wait_for(lambda: states() == ["sent"], "sent when the front has written it")
        assert status()["online"]
        terminal.acknowledge(identifier)
        wait_for(lambda: states() == ["delivered"], "delivered with the PUBACK")
        assert terminal.subscribe("g/#") == 0x80
        assert terminal.subscribe(f"g/{uid}/r") == 1

        give(2)
        identifier, _ = terminal.command()
        wait_for(lambda: states() == ["delivered", "sent"], "sent")
        leader.kill()
        leader = found.node("a").wait_leading()
        leader.login()
        wait_for(lambda: status()["online"], "the front names who is connected", timeout_s=60)
        terminal.acknowledge(identifier)
        wait_for(lambda: states() == ["delivered", "delivered"], "delivered, though another start had sent it")
        give(3)
        assert b"3" in (taken := terminal.command())[1], "the second one isn't sent again"
        wait_for(lambda: states()[-1] == "sent", "sent")

        front.kill()
        terminal.close()
        wait_for(lambda: not status()["online"], "a dead front's terminals are away", timeout_s=60)
        assert "the front f1 is gone" in str(status())
        wait_for(lambda: states()[-1] == "queued", "lost with the connection: it waits")
        other = found.front("f2")
        again = Terminal(other.mqtt, uid)
        assert again.command()[1] == taken[1]
        again.close()
        wait_for(lambda: not status()["online"], "away again", timeout_s=60)
        shown = json.loads(ask_cluster(leader, "status", "--json"))
        assert {each["node"]: each["state"] for each in shown["fronts"]} == {"f1": "ended", "f2": "serves"}
        assert shown["servers"] == [{"name": "n0", "state": "leads", "lag": 0}]
        assert (shown["reports"]["leader"], shown["reports"]["limit_bytes"]) == ("n0", int(0.1 * 2**30))
        assert shown["reports"]["last"] > 0
        shows_all = lambda: json.loads(ask_cluster(leader, "status", "--json"))["reports"]["behind"] == 0  # noqa: E731
        wait_for(shows_all, "all that fronts have taken is shown as stored", timeout_s=60)
        assert other.stop(timeout_s=60) == 0


def connect_5(port: int, uid: str) -> socket.socket:
    """A connection of MQTT 5.0 that is accepted."""
    opened = socket.create_connection(("127.0.0.1", port), 60)
    opened.sendall(login(uid, f"u-{uid}", f"pin-{uid}", protocol=5))
    head = opened.recv(4)
    assert (head[0], head[3]) == (0x20, 0), head
    rest = head[1] - 2
    while rest:
        rest -= len(opened.recv(rest))
    return opened


@pytest.mark.timeout(400)
def test_a_client_id_is_connected_once_among_all_fronts(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    uid = "fr-t"
    with cluster(tmp_path, postgresql, nats_server, "fronts-takeover") as found:
        leader = found.node("a").wait_leading()
        leader.login()
        leader.add_terminal(uid, leader.add_config())
        first, second = found.front("f1"), found.front("f2")

        before = connect_5(first.mqtt, uid)
        earlier = connect_5(first.mqtt, uid)  # at the same front
        assert before.recv(100)[2] == 0x8E
        earlier.sendall(publish(f"g/{uid}/r", b'{"n":6}', packet_id=2, protocol=5))
        assert earlier.recv(4) == b"\x40\x02\0\2"
        later = connect_5(second.mqtt, uid)
        told = earlier.recv(100)
        assert (told[0], told[2]) == (0xE0, 0x8E), "it was told before the later one was let in"
        assert earlier.recv(100) == b""
        wait_for(lambda: leader.call("get_terminal_status", terminal_id=uid)["online"], "the later one is there")

        second.process.send_signal(signal.SIGSTOP)
        back = connect_5(first.mqtt, uid)  # when the lease of the front that says nothing is over
        second.process.send_signal(signal.SIGCONT)
        assert second.process.wait(60) == 1, "it was declared dead"
        assert "was declared dead" in second.log.read_text()
        back.sendall(publish(f"g/{uid}/r", b'{"n":7}', packet_id=3, protocol=5))
        assert back.recv(4) == b"\x40\x02\0\3"
        wait_for(lambda: stored_numbers(leader, uid) == [7, 6], "stored", timeout_s=60)
        for each in (before, earlier, later, back):
            each.close()


@pytest.mark.timeout(400)
def test_while_the_log_is_away_nothing_is_acknowledged_and_nothing_lost(tmp_path: Path, postgresql: PostgreSQL) -> None:
    uid = "fr-l"
    with running_nats(tmp_path / "nats") as (nats,), cluster(tmp_path, postgresql, nats, "fronts-away") as found:
        leader = found.node("a").wait_leading()
        leader.login()
        leader.add_terminal(uid, leader.add_config())
        front = found.front("f1")
        terminal = connect_5(front.mqtt, uid)
        nats.signal(signal.SIGSTOP)
        terminal.sendall(b"".join(publish(f"g/{uid}/r", b'{"n":%d}' % n, packet_id=n, protocol=5) for n in (1, 2)))
        terminal.sendall(publish(f"g/{uid}/r", b"{oops", packet_id=3, protocol=5))
        wait_for(lambda: "ingest" in front.unready_parts(), "the front says so", timeout_s=60)
        terminal.settimeout(1)
        with pytest.raises(TimeoutError):
            terminal.recv(1)
        refused = socket.create_connection(("127.0.0.1", front.mqtt), 60)
        refused.sendall(login(uid, f"u-{uid}", f"pin-{uid}", protocol=5))
        assert refused.recv(4)[:1] in (b"\x20", b""), "it isn't known where else it is connected"
        nats.signal(signal.SIGCONT)
        terminal.settimeout(60)
        answers = b""
        while len(answers) < 13:
            answers += terminal.recv(100)
        assert answers[:8] == b"\x40\x02\0\1\x40\x02\0\2"
        assert answers[8] == 0x40
        assert answers[10:13] == b"\0\3\x99"
        wait_for(lambda: stored_numbers(leader, uid) == [2, 1], "stored once", timeout_s=60)
        wait_for(lambda: not front.unready_parts(), "ready again", timeout_s=60)
        rejects = wait_for(lambda: leader.call("get_reject_list", terminal_id=uid)["data"], "kept", timeout_s=60)
        assert [reject["topic"] for reject in rejects] == [f"g/{uid}/r"]
        for each in (terminal, refused):
            each.close()
