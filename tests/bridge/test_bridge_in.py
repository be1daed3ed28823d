"""Messages in, from a real Mosquitto: stored like the terminal's own, acknowledged when they are, refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge_rig import Gate, Peer, bridge_toml, metric, start_platform, stored, terminal, wait_connected

from running import Mosquitto, Platform, wait_for

IN = [
    {"filter": "g/#", "remote_prefix": "plant/7/"},
    {"filter": "orders/#", "local_prefix": "from/hq/"},
    {"filter": "loose/#", "qos": 0},
    {"filter": "stats/#", "local_prefix": "$SYS/"},
]


@pytest.fixture(params=["5.0", "3.1.1"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def platform(tmp_path: Path, gate: Gate, protocol: str) -> Iterator[Platform]:
    toml = bridge_toml(f"mqtt://127.0.0.1:{gate.port}", in_=IN, protocol=protocol, client_id="plant-7", company_id=1)
    with start_platform(tmp_path, toml) as running:
        wait_connected(running)
        yield running


def records(count: int, first: int = 0) -> list[dict[str, int]]:
    return [{"n": number} for number in range(first, first + count)]


def publish_records(peer: Peer, topic: str, given: list[dict[str, int]]) -> None:
    peer.publish_all(topic, [json.dumps(each) for each in given])


def test_a_known_terminals_report_is_stored_and_passed_on(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port) as there, terminal(platform, "t2").subscribe("g/#", "from/#") as here:
        publish_records(there, "plant/7/g/t1/r", records(200))
        there.publish("orders/new", "not a report at all")
        here.wait_for(201)
        assert [json.loads(each) for each in here.payloads("g/t1/r")] == records(200)
        assert here.payloads("from/hq/orders/new") == ["not a report at all"]
    wait_for(lambda: metric(platform, "received") == 201, "acknowledged")
    assert stored(platform) == records(200)


def test_the_quality_of_service_is_the_lower_of_message_and_rule(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port) as there, terminal(platform, "t2").subscribe("#", qos=2) as here:
        for qos in (0, 1, 2):
            there.publish("orders/new", str(qos), qos=qos)
            there.publish("loose/end", str(qos), qos=qos)
        here.wait_for(6)
        found = {(each.topic, each.payload.decode()): each.qos for each in here.messages}
    assert [found["from/hq/orders/new", str(qos)] for qos in (0, 1, 2)] == [0, 1, 1]
    assert [found["loose/end", str(qos)] for qos in (0, 1, 2)] == [0, 0, 0]


def test_unknown_terminals_and_foreign_topics_are_refused_and_counted(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port) as there, terminal(platform, "t2").subscribe("#") as here:
        there.publish("plant/7/g/nobody/r", '{"a": 1}')
        there.publish("plant/7/g/t1/zz", '{"a": 1}')  # no channel
        there.publish("plant/7/g", '{"a": 1}')
        there.publish("stats/uptime", "1")  # would land on $SYS
        there.publish("orders/last", "x")
        wait_for(lambda: metric(platform, "refused_here") == 3, "three refusals")
        wait_for(lambda: here.payloads("from/hq/orders/last") == ["x"], "the order, once")
    assert stored(platform) == []
    assert "no terminal 'nobody'" in platform.log.read_text()


def test_an_undecodable_report_is_kept_as_a_reject(platform: Platform, remote: Mosquitto) -> None:
    with Peer(remote.port) as there:
        there.publish("plant/7/g/t1/r", "{not json")
        wait_for(lambda: metric(platform, "received") == 1, "taken")
    span = {"start_time": "2020-01-01 00:00:00", "end_time": "2099-01-01 00:00:00"}
    rejects = platform.call("get_reject_list", terminal_id="t1", **span)
    assert rejects["total_records"] == 1


def test_what_comes_while_the_link_is_down_waits_at_the_remote_broker(
    platform: Platform, remote: Mosquitto, gate: Gate
) -> None:
    gate.shut()
    wait_for(lambda: metric(platform, "connected") == 0, "the loss noticed")
    with Peer(remote.port) as there:
        publish_records(there, "plant/7/g/t1/r", records(90))
    gate.open()
    wait_for(lambda: stored(platform) == records(90), "all stored in order")


def test_what_comes_while_we_are_dead_waits_at_the_remote_broker(
    platform: Platform, remote: Mosquitto, tmp_path: Path
) -> None:
    platform.kill()
    with Peer(remote.port) as there:
        publish_records(there, "plant/7/g/t1/r", records(90))
        with platform.again() as second:
            second.login()
            wait_for(lambda: stored(second) == records(90), "all stored in order")


def test_kill_9_while_receiving_loses_nothing(platform: Platform, remote: Mosquitto) -> None:
    """Mosquitto keeps 1,000 messages for who is away: no more than that are on their way here."""
    with Peer(remote.port) as there:
        publish_records(there, "plant/7/g/t1/r", records(900))
        platform.kill()
        with platform.again() as second:
            second.login()
            wait_for(lambda: seen_by(second) >= set(range(900)), "each of them stored")


def seen_by(platform: Platform) -> set[int]:
    return {each["n"] for each in stored(platform)}


def test_retained_messages_of_the_remote_broker_are_retained_here(tmp_path: Path, remote: Mosquitto) -> None:
    with Peer(remote.port) as there:
        there.publish("orders/standing", "all", retain=True)
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", in_=IN, company_id=1)
    with start_platform(tmp_path, toml) as platform:
        wait_for(lambda: metric(platform, "received") == 1, "it has come")
        with terminal(platform, "t2").subscribe("from/#") as here:
            assert here.wait_for(1) == ["all"]
            assert here.messages[0].retain


def test_properties_come_along(tmp_path: Path, remote: Mosquitto) -> None:
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", in_=IN, company_id=1)
    given: dict[str, Any] = {"ContentType": "text/plain", "CorrelationData": b"c", "UserProperty": [("a", "1")]}
    with start_platform(tmp_path, toml) as platform, Peer(remote.port) as there:
        wait_connected(platform)
        with terminal(platform, "t2").subscribe("from/#") as here:
            there.publish("orders/x", "all", MessageExpiryInterval=500, **given)
            here.wait_for(1)
            found = here.messages[0].properties
    assert (found.ContentType, found.CorrelationData, found.UserProperty) == ("text/plain", b"c", [("a", "1")])
    assert 0 < found.MessageExpiryInterval <= 500
