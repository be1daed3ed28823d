"""A platform behind Debian's RabbitMQ, which asks it who may log in; a bridge brings what terminals report."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bridge_rig import Peer, start_platform, stored, wait_connected

from rabbitmq_server import RabbitMq, documented
from running import Platform, wait_for
from support import free_port

OWN_USER, OWN_PASSWORD = "terrazzo", "the-bridges-own"  # as the documents have it
REFUSED = r"(?i)not authorized|bad user"


class Site(NamedTuple):
    platform: Platform
    rabbit: RabbitMq


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("rabbitmq")
    http = free_port()
    with RabbitMq(folder / "rabbitmq", http=http) as rabbit:
        toml = documented("toml", "RabbitMQ").replace(":1884", f":{rabbit.port}")
        with start_platform(folder, toml, http=http) as platform:
            wait_connected(platform, "rabbitmq")
            yield Site(platform, rabbit)


def terminal_there(site: Site, uid: str, password: str | None = None) -> Peer:
    name = f"u-{uid}"
    return Peer(site.rabbit.port, uid, username=name, password=password or f"pin-{uid}", protocol="3.1.1")


def refusals(site: Site, uid: str) -> set[str]:
    return {each["reason"] for each in site.platform.call("get_terminal_status", terminal_id=uid)["refusals"]}


def test_a_terminal_of_rabbitmq_reports_and_is_stored(site: Site) -> None:
    reports = [{"n": number} for number in range(50)]
    with terminal_there(site, "t1") as terminal:
        terminal.publish_all("g/t1/r", [json.dumps(each) for each in reports])
    wait_for(lambda: len(stored(site.platform)) == len(reports), "stored")
    assert stored(site.platform) == reports


def test_a_wrong_pin_is_refused_there_and_told_here(site: Site) -> None:
    with pytest.raises(AssertionError, match=REFUSED):
        terminal_there(site, "t2", "wrong")
    assert refusals(site, "t2") >= {"wrong_pin"}
    with pytest.raises(AssertionError, match=REFUSED):
        Peer(site.rabbit.port, "nobody", username="u-t1", password="pin-t1", protocol="3.1.1")


def test_a_signed_time_serves_once(site: Site) -> None:
    site.platform.add_terminal("t3", site.platform.add_config("signed"), mode="auto", topic="pub:r;sub:g/t3/#")
    seconds = int(time.time())
    digest = hmac.new(b"pin-t3", f"t3.{seconds}".encode(), hashlib.sha256).hexdigest()
    with terminal_there(site, "t3", f"{seconds}.{digest}") as terminal:
        terminal.publish("g/t3/r", '{"x": 1}')
    with pytest.raises(AssertionError, match=REFUSED):
        terminal_there(site, "t3", f"{seconds}.{digest}")
    assert "replayed" in refusals(site, "t3")


def test_topics_are_those_of_the_record(site: Site) -> None:
    """RabbitMQ ends a connection that publishes where it may not, and grants no subscription."""
    with terminal_there(site, "t2").subscribe("p2p/t2") as terminal:
        with Peer(site.rabbit.port, username=OWN_USER, password=OWN_PASSWORD, protocol="3.1.1") as own:
            own.publish("p2p/t2", "a command")
        assert terminal.wait_for(1) == ["a command"]
        terminal.client.publish("g/t1/r", '{"forged": 1}', qos=1)
        wait_for(lambda: "publish_not_allowed" in refusals(site, "t2"), "refused")
    assert {"forged": 1} not in stored(site.platform)
    with terminal_there(site, "t2") as terminal:
        granted: list[int] = []
        terminal.client.on_subscribe = lambda _c, _d, _m, codes, _p: granted.extend(each.value for each in codes)
        terminal.client.subscribe("g/+/r", 1)
        wait_for(lambda: granted or "subscribe_not_allowed" in refusals(site, "t2"), "answered")
    assert granted in ([], [0x80])


def test_it_is_counted(site: Site) -> None:
    with urllib.request.urlopen(f"{site.platform.url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    allowed = next(line for line in lines if line.startswith("terrazzo_remote_logins_allowed_total "))
    assert float(allowed.rpartition(" ")[2]) >= 1
