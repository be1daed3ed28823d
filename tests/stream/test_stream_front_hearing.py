"""Terminals at different fronts, and at the leader, hear each other: real processes, and clients of paho."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from test_stream_fronts import Cluster, cluster
from test_stream_takeover import NodeProcess

from durability.test_acknowledged_is_stored import stored_numbers
from nats_servers import NatsServer, NatsServers
from postgresql_server import PostgreSQL
from running import PASSWORD, Platform, wait_for


class Hearing:
    """A terminal of MQTT 5.0 that notes what it is sent."""

    def __init__(self, at: Platform, uid: str) -> None:
        self.heard: list[tuple[str, bytes, int, bool]] = []
        self._subscribed = threading.Event()
        self.codes: list[int] = []
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5)
        self.client.username_pw_set(f"u-{uid}", f"pin-{uid}")
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        self.client.connect("127.0.0.1", at.mqtt)
        self.client.loop_start()
        wait_for(self.client.is_connected, f"{uid} is connected", timeout_s=60)

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        self.heard.append((message.topic, message.payload, message.qos, message.retain))

    def _on_subscribe(
        self, _client: object, _data: object, _mid: int, codes: list[paho.ReasonCode], *_: object
    ) -> None:
        self.codes = [code.value for code in codes]
        self._subscribed.set()

    def subscribe(self, pattern: str, qos: int = 2) -> int:
        """The reason code of the SUBACK."""
        self._subscribed.clear()
        self.client.subscribe(pattern, qos)
        assert self._subscribed.wait(60)
        return self.codes[0]

    def publish(self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False) -> None:
        """Returns when it is acknowledged."""
        self.client.publish(topic, payload, qos, retain).wait_for_publish(60)

    def numbers(self) -> list[bytes]:
        return [payload for _, payload, _, _ in self.heard]

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class Stand:
    """A cluster with terminals that may hear all of their company."""

    def __init__(self, found: Cluster) -> None:
        self.cluster = found
        self.leader: NodeProcess = found.node("a").wait_leading()
        self.leader.login()
        self.config = self.leader.add_config()
        self.clients: list[Hearing] = []

    def terminal(self, uid: str, at: Platform, *, is_new: bool = True) -> Hearing:
        if is_new:
            self.leader.add_terminal(uid, self.config, topic="pub:r,a,v,p,i,n;sub:g/#")
        made = Hearing(at, uid)
        self.clients.append(made)
        return made

    def known(self, at: Platform, filters: int) -> None:
        """Waits until a node knows of so many filters at others."""
        wait_for(lambda: figure(at, "terrazzo_peers_filters") == filters, f"{filters} filters are known", timeout_s=60)


def figure(at: Platform, name: str) -> float:
    """A figure of ``/metrics``."""
    with urllib.request.urlopen(f"{at.url}/metrics", timeout=10) as answer:
        (line,) = [line for line in answer.read().decode().splitlines() if line.startswith(name + " ")]
    return float(line.rpartition(" ")[2])


def wait_sessions(at: Platform, sessions: int, filters: int) -> None:
    """Waits until a node queues for so many sessions, with so many filters: a moment after their SUBACK elsewhere."""
    expected = (sessions, filters)
    names = ("terrazzo_sessions_known", "terrazzo_sessions_filters")
    what = f"{sessions} sessions with {filters} filters are known"
    wait_for(lambda: tuple(figure(at, name) for name in names) == expected, what, timeout_s=60)


@contextmanager
def stand(folder: Path, postgresql: PostgreSQL, nats: NatsServer | NatsServers, name: str) -> Iterator[Stand]:
    with cluster(folder, postgresql, nats, name) as found:
        made = Stand(found)
        try:
            yield made
        finally:
            for each in made.clients:
                each.end()


@pytest.mark.timeout(400)
def test_terminals_hear_each_other_wherever_they_are_connected(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    with stand(tmp_path, postgresql, nats_server, "fronts-hearing") as found:
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        telling = found.terminal("fh-t", first)
        hearing, at_leader = found.terminal("fh-h", second), found.terminal("fh-l", found.leader)
        assert hearing.subscribe("g/+/r") == 2
        assert at_leader.subscribe("g/fh-t/#", 1) == 1
        found.known(first, 2)
        for qos in (0, 1, 2):
            telling.publish("g/fh-t/r", b'{"n":%d}' % qos, qos)
        wait_for(lambda: len(hearing.heard) == 3, "all three are heard at the other front", timeout_s=60)
        assert hearing.heard == [("g/fh-t/r", b'{"n":%d}' % qos, qos, False) for qos in (0, 1, 2)]
        wait_for(lambda: len(at_leader.heard) == 3, "and at the leader", timeout_s=60)
        assert [qos for _, _, qos, _ in at_leader.heard] == [0, 1, 1]
        wait_for(lambda: stored_numbers(found.leader, "fh-t") == [2, 1, 0], "stored once", timeout_s=60)
        found.known(second, 1)
        at_leader.publish("g/fh-l/r", b'{"n":7}')
        wait_for(lambda: len(hearing.heard) == 4, "the leader's terminals are heard at fronts", timeout_s=60)
        assert telling.heard == []

        second.kill()  # its record goes on for a while
        telling.publish("g/fh-t/r", b'{"n":3}')
        wait_for(lambda: at_leader.numbers()[-1] == b'{"n":3}', "the others go on", timeout_s=60)
        second = found.cluster.front("f2")
        again = found.terminal("fh-h2", second)
        assert (again.subscribe("g/+/r"), again.subscribe("g/+/a")) == (2, 2)
        found.known(first, 3)
        telling.publish("g/fh-t/r", b'{"n":4}')
        wait_for(lambda: again.numbers() == [b'{"n":4}'], "a start of the same name", timeout_s=60)


@pytest.mark.timeout(400)
def test_what_terminals_say_stays_with_their_company(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    with stand(tmp_path, postgresql, nats_server, "fronts-companies") as found:
        other = found.leader.call("create_company", name="Other Works")
        permission = {"role": "admin", "permission_company_id": str(other["id"])}
        found.leader.call("create_user", username="stranger", password=PASSWORD, **permission)
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        found.leader.login("stranger")
        own = found.leader.add_config("theirs")
        for uid in ("fo-o", "fo-p"):
            found.leader.add_terminal(uid, own, topic="pub:r;sub:g/#")
        found.leader.login()
        stranger, theirs = (found.terminal(uid, at, is_new=False) for uid, at in (("fo-o", second), ("fo-p", first)))
        telling, hearing = found.terminal("fo-t", first), found.terminal("fo-h", second)
        assert (stranger.subscribe("g/#"), hearing.subscribe("g/#")) == (2, 2)
        found.known(first, 2)
        telling.publish("g/fo-t/r", b'{"n":1}')
        theirs.publish("g/fo-p/r", b'{"n":2}')
        wait_for(lambda: hearing.numbers() == [b'{"n":1}'], "heard by its own company", timeout_s=60)
        wait_for(lambda: stranger.numbers() == [b'{"n":2}'], "and by none else", timeout_s=60)
        assert figure(second, "terrazzo_peers_received_total") == 2


@pytest.mark.timeout(400)
def test_a_message_goes_to_one_member_of_a_shared_subscription_in_the_cluster(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer
) -> None:
    count = 60
    with stand(tmp_path, postgresql, nats_server, "fronts-shared") as found:
        first, second = found.cluster.front("f1"), found.cluster.front("f2")
        telling = found.terminal("fs-t", first)
        members = [found.terminal(f"fs-{n}", at) for n, at in enumerate((first, second, second, found.leader))]
        for each in members:
            assert each.subscribe("$share/pool/g/+/r", 1) == 1
        found.known(first, 2)

        def tell(start: int) -> None:
            for number in range(start, start + count):
                telling.publish("g/fs-t/r", b'{"n":%d}' % number)

        def heard() -> list[bytes]:
            return [payload for each in members for payload in each.numbers()]

        tell(0)
        wait_for(lambda: len(heard()) >= count, "each message is heard", timeout_s=60)
        wait_for(lambda: len(stored_numbers(found.leader, "fs-t")) == count, "stored", timeout_s=60)
        assert sorted(heard()) == sorted(b'{"n":%d}' % number for number in range(count)), "each by one member"
        assert all(each.heard for each in members), [len(each.heard) for each in members]
        second.kill()
        tell(count)
        wait_for(lambda: len(heard()) >= 2 * count, "what waited for the dead front others get", timeout_s=60)
        assert sorted(heard()) == sorted(b'{"n":%d}' % number for number in range(2 * count))


@pytest.mark.timeout(400)
def test_what_is_retained_at_one_node_all_have(tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer) -> None:
    with stand(tmp_path, postgresql, nats_server, "fronts-retained") as found:
        first = found.cluster.front("f1")
        at_leader, telling = found.terminal("fr-l", found.leader), found.terminal("fr-t", first)
        telling.publish("g/fr-t/r", b'{"n":1}', retain=True)
        at_leader.publish("g/fr-l/v", b'{"n":2}', retain=True)
        telling.publish("g/fr-t/a", b'{"n":3}', retain=True)
        telling.publish("g/fr-t/a", b"", retain=True)
        second = found.cluster.front("f2")  # that starts later
        kept = [("g/fr-l/v", b'{"n":2}', 1, True), ("g/fr-t/r", b'{"n":1}', 1, True)]
        hearing = found.terminal("fr-h", second)
        hearing.subscribe("g/#")
        wait_for(lambda: len(hearing.heard) == 2, "a front that starts has them", timeout_s=60)
        assert sorted(hearing.heard) == kept
        at_leader.subscribe("g/+/r")
        wait_for(lambda: at_leader.heard == kept[1:], "and the leader", timeout_s=60)

        found.leader.kill()
        found.leader = found.cluster.node("a").wait_leading()
        found.leader.login()
        again = found.terminal("fr-a", found.leader)
        again.subscribe("g/#")
        wait_for(lambda: len(again.heard) == 2, "another start of the leader", timeout_s=60)
        assert sorted(again.heard) == kept
        found.leader.call("delete_terminal", uid="fr-t")

        def left() -> list[str]:
            late = Hearing(second, "fr-h")
            late.subscribe("g/#")
            late.publish("g/fr-h/i", b'{"n":9}')  # what comes first is what was retained
            wait_for(lambda: late.heard and late.heard[-1][0] == "g/fr-h/i", "heard", timeout_s=60)
            late.end()
            return [topic for topic, _, _, retain in late.heard if retain]

        wait_for(lambda: left() == ["g/fr-l/v"], "what a deleted terminal has left is ended everywhere", timeout_s=60)
