"""``kill -9`` under load: what was acknowledged is delivered, at QoS 2 exactly once; all state is found again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_process import BrokerProcess, wait_until
from stateful_peer import Peer, Publisher

ROUNDS = 20
ONLINE, OFFLINE = "online/t", "offline/t"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """The process that runs now is the last one."""
    running = [BrokerProcess(tmp_path / "data")]
    yield running
    running[-1].process.kill()
    running[-1].process.communicate()


def promised(publishers: list[Publisher], topic: str) -> set[bytes]:
    return {payload for each in publishers for payload in each.acknowledged & each.by_topic[topic]}


def missing(receiver: Peer, publishers: list[Publisher], topic: str) -> set[bytes]:
    return promised(publishers, topic) - set(receiver.received)


def test_twenty_kills_under_load(brokers: list[BrokerProcess]) -> None:
    chance = random.Random(20)
    online, offline = Peer("online"), Peer("offline")
    publishers = [Publisher(f"publisher-{qos}", qos=qos, topics=[ONLINE, OFFLINE]) for qos in (1, 2)]
    for peer, topic_filter in ((online, "online/#"), (offline, "offline/#")):
        peer.connect(brokers[-1].port).subscribe(topic_filter, 2)
        wait_until(lambda: peer.subscribed, "SUBACK")  # noqa: B023
        assert not peer.session_present
    offline.leave()

    for number in range(ROUNDS):
        broker = brokers[-1]
        mortal = Peer(f"mortal-{number}", will=("online/will", b"will %d" % number)).connect(broker.port, clean=True)
        newcomer = Peer(f"newcomer-{number}").connect(broker.port)
        newcomer.subscribe("some/+", 1)
        newcomer.publish(f"keep/{number}", b"%d" % number, 1, retain=True)
        for each in publishers:
            each.go(broker.port)
        before = sum(len(each.acknowledged) for each in publishers)
        enough = before + chance.randint(20, 600)
        wait_until(lambda: sum(len(each.acknowledged) for each in publishers) >= enough, "load")  # noqa: B023
        wait_until(lambda: newcomer.subscribed and newcomer.acknowledged, "SUBACK and PUBACK")  # noqa: B023
        broker.kill()
        for each in publishers:
            each.stop()
        for peer in (online, mortal, newcomer, *publishers):
            peer.leave(goodbye=False)

        brokers.append(broker.again())
        if number % 2:  # once more, in the middle of what has waited
            got = offline.received.total()
            offline.connect(brokers[-1].port)
            wait_until(lambda: offline.received.total() > got, "first deliveries")  # noqa: B023
            brokers[-1].kill()
            offline.leave(goodbye=False)
            brokers.append(brokers[-1].again())
        port = brokers[-1].port
        online.connect(port)
        offline.connect(port)
        newcomer.connect(port)
        assert online.session_present
        assert offline.session_present
        assert newcomer.session_present
        wait_until(lambda: not missing(online, publishers, ONLINE), f"delivery, round {number}")
        wait_until(lambda: not missing(offline, publishers, OFFLINE), f"delivery, round {number}")
        wait_until(lambda: online.received[b"will %d" % number], f"will of round {number}")  # noqa: B023
        offline.ping()
        offline.leave()
        newcomer.leave()

    port = brokers[-1].port
    for each in publishers:
        each.connect(port)
    wait_until(lambda: not any(each.unfinished for each in publishers), "end of all exchanges")
    offline.connect(port)
    wait_until(lambda: not missing(offline, publishers, OFFLINE), "the last deliveries")
    wait_until(lambda: not missing(online, publishers, ONLINE), "the last deliveries")
    exactly = publishers[1]
    assert exactly.acknowledged == exactly.by_topic[ONLINE] | exactly.by_topic[OFFLINE]
    for receiver, topic in ((online, ONLINE), (offline, OFFLINE)):
        receiver.ping()
        counts = {payload: receiver.received[payload] for payload in exactly.by_topic[topic]}
        assert set(counts.values()) == {1}, {payload: count for payload, count in counts.items() if count != 1}
    latecomer = Peer("latecomer").connect(port, clean=True)
    latecomer.subscribe("keep/#", 1)
    wait_until(lambda: len(latecomer.retained) == ROUNDS, "retained messages")
    assert latecomer.retained == {f"keep/{number}": b"%d" % number for number in range(ROUNDS)}
    for peer in (online, offline, latecomer, *publishers):
        peer.leave()
