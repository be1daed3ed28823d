"""``kill -9`` under load: what was acknowledged is delivered, at QoS 2 exactly once; all state is found again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_process import BrokerProcess, wait_until
from stateful_peer import Peer, Publisher

from terrazzo_broker.persistence.payloads import MEMORY_BYTES

ROUNDS = 20
ONLINE, OFFLINE = "online/t", "offline/t"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """The process that runs now is the last one."""
    running = [BrokerProcess(tmp_path / "data")]
    yield running
    running[-1].kill()


def kept_payload(number: int) -> bytes:
    """Of a retained message: every other one is so long that it is on disk alone."""
    return b"%d " % number * (1 if number % 2 else MEMORY_BYTES)


class Load:
    """Who publishes, at QoS 1 and 2, and who receives: one that is there, and one that mostly is not."""

    def __init__(self, brokers: list[BrokerProcess]) -> None:
        self.brokers = brokers
        self.online, self.offline = Peer("online"), Peer("offline")
        self.publishers = [Publisher(f"publisher-{qos}", qos=qos, topics=[ONLINE, OFFLINE]) for qos in (1, 2)]

    @property
    def port(self) -> int:
        return self.brokers[-1].port

    @property
    def acknowledged(self) -> int:
        return sum(len(each.acknowledged) for each in self.publishers)

    def begin(self) -> None:
        for peer, topic_filter in ((self.online, "online/#"), (self.offline, "offline/#")):
            peer.connect(self.port).subscribe(topic_filter, 2)
            wait_until(lambda peer=peer: peer.subscribed, "SUBACK")
            assert not peer.session_present
        self.offline.leave()

    def missing(self, receiver: Peer, topic: str) -> set[bytes]:
        """What the broker has promised to deliver and has not."""
        promised = {payload for each in self.publishers for payload in each.acknowledged & each.by_topic[topic]}
        return promised - set(receiver.received)

    def wait_delivered(self, what: str) -> None:
        wait_until(lambda: not self.missing(self.online, ONLINE), what)
        wait_until(lambda: not self.missing(self.offline, OFFLINE), what)

    def kill(self, number: int, *, after: int) -> Peer:
        """Kills the broker when it has acknowledged so many more; a client that came in this round."""
        mortal = Peer(f"mortal-{number}", will=("online/will", b"will %d" % number)).connect(self.port, clean=True)
        newcomer = Peer(f"newcomer-{number}").connect(self.port)
        newcomer.subscribe("some/+", 1)
        newcomer.publish(f"keep/{number}", kept_payload(number), 1, retain=True)
        for each in self.publishers:
            each.go(self.port)
        enough = self.acknowledged + after
        wait_until(lambda: self.acknowledged >= enough, "load")
        wait_until(lambda: newcomer.subscribed and newcomer.acknowledged, "SUBACK and PUBACK")
        self.brokers[-1].kill()
        for each in self.publishers:
            each.stop()
        for peer in (self.online, mortal, newcomer, *self.publishers):
            peer.leave(goodbye=False)
        self.brokers.append(self.brokers[-1].again())
        return newcomer

    def kill_in_delivery(self) -> None:
        """Kills it once more, in the middle of what has waited."""
        got = self.offline.received.total()
        self.offline.connect(self.port)
        wait_until(lambda: self.offline.received.total() > got, "first deliveries")
        self.brokers[-1].kill()
        self.offline.leave(goodbye=False)
        self.brokers.append(self.brokers[-1].again())

    def check_round(self, number: int, newcomer: Peer) -> None:
        for peer in (self.online, self.offline, newcomer):
            peer.connect(self.port)
        assert self.online.session_present
        assert self.offline.session_present
        assert newcomer.session_present
        self.wait_delivered(f"delivery, round {number}")
        wait_until(lambda: self.online.received[b"will %d" % number], f"will of round {number}")
        self.offline.ping()
        self.offline.leave()
        newcomer.leave()

    def end(self) -> None:
        """Lets the publishers finish what they have begun."""
        for each in self.publishers:
            each.connect(self.port)
        wait_until(lambda: not any(each.unfinished for each in self.publishers), "end of all exchanges")
        self.offline.connect(self.port)
        self.wait_delivered("the last deliveries")


def test_twenty_kills_under_load(brokers: list[BrokerProcess]) -> None:
    chance, load = random.Random(20), Load(brokers)
    load.begin()
    for number in range(ROUNDS):
        newcomer = load.kill(number, after=chance.randint(20, 600))
        if number % 2:
            load.kill_in_delivery()
        load.check_round(number, newcomer)
    load.end()
    exactly = load.publishers[1]
    assert exactly.acknowledged == exactly.by_topic[ONLINE] | exactly.by_topic[OFFLINE]
    for receiver, topic in ((load.online, ONLINE), (load.offline, OFFLINE)):
        receiver.ping()
        counts = {payload: receiver.received[payload] for payload in exactly.by_topic[topic]}
        assert set(counts.values()) == {1}, {payload: count for payload, count in counts.items() if count != 1}
    latecomer = Peer("latecomer").connect(load.port, clean=True)
    latecomer.subscribe("keep/#", 1)
    wait_until(lambda: len(latecomer.retained) == ROUNDS, "retained messages")
    assert latecomer.retained == {f"keep/{number}": kept_payload(number) for number in range(ROUNDS)}
    for peer in (load.online, load.offline, latecomer, *load.publishers):
        peer.leave()
