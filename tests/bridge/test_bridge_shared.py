"""Several connections of one shared subscription: each message comes over one of them, and none is lost by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from bridge_rig import Peer, bridge_toml, metric, start_platform, stored, wait_connected

from running import Mosquitto, Platform, wait_for

BRIDGES = ("first", "second")


def bridges(remote: Mosquitto, protocol: str) -> str:
    shared = [{"filter": "$share/terrazzo/g/#", "remote_prefix": "plant/7/"}]
    url = f"mqtt://127.0.0.1:{remote.port}"
    return "".join(bridge_toml(url, name=name, in_=shared, protocol=protocol) for name in BRIDGES)


def numbers(platform: Platform) -> list[int]:
    return sorted(each["n"] for each in stored(platform))


def payloads(first: int, end: int) -> list[str]:
    return [f'{{"n": {number}}}' for number in range(first, end)]


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
def test_each_message_comes_once_and_a_kill_loses_none(tmp_path: Path, remote: Mosquitto, protocol: str) -> None:
    with start_platform(tmp_path, bridges(remote, protocol)) as platform, Peer(remote.port) as there:
        for name in BRIDGES:
            wait_connected(platform, name)
        there.publish_all("plant/7/g/t1/r", payloads(0, 100))
        wait_for(lambda: len(stored(platform)) >= 100, "all are stored")
        assert numbers(platform) == list(range(100))  # none of them twice
        assert sum(metric(platform, "received", name) for name in BRIDGES) == 100
        assert all(metric(platform, "received", name) for name in BRIDGES)
        there.publish_all("plant/7/g/t1/r", payloads(100, 500))
        platform.kill()
        there.publish_all("plant/7/g/t1/r", payloads(500, 600))
        with platform.again() as second:
            second.login()
            wait_for(lambda: set(numbers(second)) >= set(range(600)), "each is stored")
