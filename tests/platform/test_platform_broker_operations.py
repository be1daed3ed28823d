"""Operators and the broker: who is connected, who subscribes, ending a connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paho.mqtt.client as mqtt
import pytest

from running import Platform, wait_for

UIDS = ("ops-1", "ops-2")


@pytest.fixture(scope="module", autouse=True)
def terminals(platform: Platform, config_uid: str) -> None:
    for uid in UIDS:
        platform.add_terminal(uid, config_uid)


@contextmanager
def connected(platform: Platform, uid: str, *, clean: bool = True) -> Iterator[mqtt.Client]:
    client = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2,
        uid,
        protocol=mqtt.MQTTv311,
        clean_session=clean,
        reconnect_on_failure=False,
    )
    client.username_pw_set(f"u-{uid}", f"pin-{uid}")
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    wait_for(client.is_connected, f"{uid} connects")
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def test_clients_are_listed_while_they_are_connected(platform: Platform) -> None:
    with connected(platform, "ops-1"), connected(platform, "ops-2"):
        wait_for(lambda: platform.call("get_client_list")["total_records"] == 2, "both are listed")
        first, second = platform.call("get_client_list")["data"]
        assert (first["client_id"], second["client_id"]) == UIDS
        assert (first["protocol"], first["username"], first["address"]) == ("MQTT 3.1.1", "u-ops-1", "127.0.0.1")
        page = platform.call("get_client_list", page_index=2, page_size=1)
        assert [client["client_id"] for client in page["data"]] == ["ops-2"]
        assert platform.call("get_client_list", terminal_id="ops-2")["total_records"] == 1
        assert platform.call("get_broker_status")["counters"]["clients"] == 2
    wait_for(lambda: platform.call("get_client_list")["total_records"] == 0, "none is listed")


def test_subscriptions_of_a_kept_session_stay_listed(platform: Platform) -> None:
    with connected(platform, "ops-1", clean=False) as client:
        client.subscribe([("p2p/ops-1", 1), ("g/ops-1/#", 0)])
        wait_for(lambda: platform.call("get_subscription_list")["total_records"] == 2, "both are listed")
        assert all(each["online"] for each in platform.call("get_subscription_list")["data"])
    wait_for(lambda: not platform.call("get_terminal_status", terminal_id="ops-1")["online"], "gone")
    kept = platform.call("get_subscription_list", terminal_id="ops-1")["data"]
    assert [(each["filter"], each["qos"], each["online"]) for each in kept] == [
        ("g/ops-1/#", 0, False),
        ("p2p/ops-1", 1, False),
    ]


def test_kicking_ends_the_connection_and_says_why(platform: Platform) -> None:
    with connected(platform, "ops-2") as client:
        assert platform.call("kick_client", client_id="ops-2") == {"client_id": "ops-2"}
        wait_for(lambda: not client.is_connected(), "disconnected")
    status = platform.call("get_terminal_status", terminal_id="ops-2")
    assert not status["online"]
    assert "administrative_action" in status["disconnect_reason"]
    again = platform.ask("kick_client", client_id="ops-2")
    assert (again["code"], "client_id" in again["info"]) == (10404, True)


def test_an_unknown_client_is_named(platform: Platform) -> None:
    answer = platform.ask("kick_client", client_id="nobody")
    assert (answer["code"], answer["info"]) == (10404, "client_id: no record 'nobody'")


def test_who_is_too_slow_stands_alone_and_first(platform: Platform) -> None:
    with connected(platform, "ops-1", clean=False) as client:
        client.subscribe([("p2p/ops-1", 1), ("g/ops-2/#", 1)])
        wait_for(lambda: platform.call("get_subscription_list")["total_records"] >= 2, "both are listed")
    wait_for(lambda: not platform.call("get_terminal_status", terminal_id="ops-1")["online"], "gone")
    assert platform.call("get_subscription_list", slow=1)["total_records"] == 0
    platform.call("publish_terminal_command", terminal_id="ops-1", command="Diag", value="")
    with connected(platform, "ops-2") as other:
        other.publish("p2p/ops-2", b"{}", qos=0)
    assert platform.call("get_client_list", slow=1)["total_records"] == 0
