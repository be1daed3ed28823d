"""Messages out, to a real Mosquitto: names, qualities of service, order, and nothing lost while anything is down."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge_rig import Gate, Peer, bridge_toml, metric, start_platform, stored, terminal, wait_connected

from running import Mosquitto, Platform, wait_for

OUT = [{"filter": "g/+/r/#", "remote_prefix": "plant/7/"}, {"filter": "#", "local_prefix": "g/t1/a/", "qos": 0}]


@pytest.fixture
def platform(tmp_path: Path, gate: Gate) -> Iterator[Platform]:
    with start_platform(tmp_path, bridge_toml(f"mqtt://127.0.0.1:{gate.port}", out=OUT)) as running:
        wait_connected(running)
        yield running


def numbered(count: int, first: int = 0) -> list[str]:
    return [json.dumps({"n": number}) for number in range(first, first + count)]


def test_topics_get_the_prefix_of_the_first_rule_that_matches(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port).subscribe("#") as there, terminal(platform) as here:
        here.publish("g/t1/r", '{"a": 1}')
        here.publish("g/t1/r/deep/er", '{"a": 2}')
        here.publish("g/t1/a/fire", '{"a": 3}')  # the local prefix goes, no remote one comes
        here.publish("g/t1/v", '{"a": 4}')  # no rule
        here.publish("g/t1/r", '{"a": 5}')
        assert there.wait_for(4) == ['{"a": 1}', '{"a": 2}', '{"a": 3}', '{"a": 5}']
        topics = [each.topic for each in there.messages]
    assert topics == ["plant/7/g/t1/r", "plant/7/g/t1/r/deep/er", "fire", "plant/7/g/t1/r"]


@pytest.mark.parametrize(("qos", "topic", "arrives"), [(0, "r", 0), (1, "r", 1), (2, "r", 1), (2, "a/x", 0)])
def test_quality_of_service_is_the_lower_of_message_and_rule(
    platform: Platform, remote: Mosquitto, qos: int, topic: str, arrives: int
) -> None:
    with Peer(remote.port).subscribe("#", qos=2) as there, terminal(platform) as here:
        here.publish(f"g/t1/{topic}", '{"a": 1}', qos=qos)
        there.wait_for(1)
        assert there.messages[0].qos == arrives


def test_retain_flag_and_properties_travel(platform: Platform, remote: Mosquitto) -> None:
    given: dict[str, Any] = {
        "ContentType": "application/json",
        "CorrelationData": b"\x00c",
        "ResponseTopic": "answers/here",
        "UserProperty": [("a", "1"), ("a", "2")],
        "PayloadFormatIndicator": 1,
        "MessageExpiryInterval": 600,
    }
    with terminal(platform) as here:
        here.publish("g/t1/r", '{"a": 1}', retain=True, **given)
        wait_for(lambda: metric(platform, "sent") == 1, "sent")
    with Peer(remote.port).subscribe("plant/#") as there:
        there.wait_for(1)
        message = there.messages[0]
    assert message.retain
    found = message.properties
    assert (found.ContentType, found.CorrelationData, found.ResponseTopic) == (
        "application/json",
        b"\x00c",
        "answers/here",
    )
    assert found.UserProperty[:2] == [("a", "1"), ("a", "2")]
    assert [name for name, _ in found.UserProperty[2:]] == ["terrazzo-bridge"]
    assert 0 < found.MessageExpiryInterval <= 600


def test_what_is_sent_is_forgotten(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port).subscribe("#") as there, terminal(platform) as here:
        here.publish_all("g/t1/r", numbered(3_000))
        assert there.wait_for(3_000) == numbered(3_000)
        wait_for(lambda: metric(platform, "queued") == 0, "the queue empty")
    assert metric(platform, "sent") == 3_000
    assert metric(platform, "queued_bytes") == 0


def test_messages_wait_in_order_while_the_link_is_down(platform: Platform, remote: Mosquitto, gate: Gate) -> None:
    with Peer(remote.port).subscribe("#") as there, terminal(platform) as here:
        here.publish_all("g/t1/r", numbered(50))
        there.wait_for(50)
        wait_for(lambda: metric(platform, "queued") == 0, "the acknowledgements")
        gate.shut()
        wait_for(lambda: metric(platform, "connected") == 0, "the loss noticed")
        here.publish_all("g/t1/r", numbered(4_000, 50))
        here.publish("g/t1/r", '{"late": 1}', qos=0)
        assert metric(platform, "queued") == 4_001
        assert metric(platform, "queued_bytes") > 4_000 * len("g/t1/r")
        gate.open()
        there.wait_for(4_051)
        assert there.payloads() == [*numbered(4_050), '{"late": 1}']
    assert metric(platform, "connects") == 2


def test_kill_9_during_an_outage_loses_nothing_that_was_acknowledged(
    platform: Platform, remote: Mosquitto, gate: Gate
) -> None:
    gate.shut()
    with terminal(platform) as here:
        here.publish_all("g/t1/r", numbered(2_000))
        platform.kill()
    with platform.again() as second, Peer(remote.port).subscribe("#") as there:
        second.login()
        assert metric(second, "queued") == 2_000
        with terminal(second) as here:
            here.publish_all("g/t1/r", numbered(10, 2_000))
        gate.open()
        assert there.wait_for(2_010) == numbered(2_010)
        assert stored(second) == [{"n": number} for number in range(2_010)]
        wait_for(lambda: metric(second, "queued") == 0, "the queue empty")


def test_kill_9_while_sending_repeats_at_most_what_was_on_the_way(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port).subscribe("#") as there:
        with terminal(platform) as here:
            here.publish_all("g/t1/r", numbered(3_000))
            platform.kill()
        with platform.again() as second:
            wait_for(lambda: set(there.payloads()) >= set(numbered(3_000)), "all of them")
            wait_for(lambda: metric(second, "queued") == 0, "the queue empty")
    first_seen = list(dict.fromkeys(there.payloads()))
    assert first_seen == numbered(3_000)


def test_the_remote_broker_is_killed_and_comes_back(
    platform: Platform, remote: Mosquitto, gate: Gate, tmp_path: Path
) -> None:
    with terminal(platform) as here:
        with Peer(remote.port).subscribe("#") as there:
            here.publish_all("g/t1/r", numbered(10))
            there.wait_for(10)
            wait_for(lambda: metric(platform, "queued") == 0, "the acknowledgements")
        remote.kill()
        wait_for(lambda: metric(platform, "connected") == 0, "the loss noticed")
        here.publish_all("g/t1/r", numbered(100, 10))
        gate.shut()
        with Mosquitto(tmp_path / "remote", port=remote.port), Peer(remote.port).subscribe("#") as there:
            gate.open()
            assert there.wait_for(100) == numbered(100, 10)


def test_a_message_that_expires_while_it_waits_is_not_sent(platform: Platform, remote: Mosquitto, gate: Gate) -> None:
    gate.shut()
    wait_for(lambda: metric(platform, "connected") == 0, "the loss noticed")
    with terminal(platform) as here, Peer(remote.port).subscribe("#") as there:
        here.publish("g/t1/r", '{"old": 1}', MessageExpiryInterval=1)
        here.publish("g/t1/r", '{"new": 1}', MessageExpiryInterval=600)
        due_s = time.time() + 1.1
        wait_for(lambda: time.time() > due_s, "a second to pass")
        gate.open()
        assert there.wait_for(1) == ['{"new": 1}']
    assert metric(platform, "expired") == 1


def test_a_will_crosses_like_a_report(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port).subscribe("#") as there:
        here = terminal(platform, will=("g/t1/r", b'{"gone": 1}'))
        sock = here.client.socket()
        assert sock is not None
        sock.shutdown(socket.SHUT_RDWR)
        assert there.wait_for(1) == ['{"gone": 1}']
        here.close()


def test_stopping_keeps_what_waits(platform: Platform, remote: Mosquitto, gate: Gate) -> None:
    gate.shut()
    with terminal(platform) as here:
        here.publish_all("g/t1/r", numbered(20))
        here.publish("g/t1/r", '{"zero": 1}', qos=0)
        here.publish("g/t1/r", '{"one": 1}')
    assert platform.stop() == 0
    with Peer(remote.port).subscribe("#") as there, platform.again():
        gate.open()
        assert there.wait_for(22) == [*numbered(20), '{"zero": 1}', '{"one": 1}']
