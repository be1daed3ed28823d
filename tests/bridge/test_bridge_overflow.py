"""A spool that is full: what goes, what is said, and that memory and disk stay bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bridge_rig import Gate, Peer, bridge_toml, metric, start_platform, stored, terminal

from running import Mosquitto, wait_for

OUT = [{"filter": "g/#"}]


@pytest.mark.parametrize(("overflow", "left"), [("drop_oldest", range(50, 150)), ("drop_newest", range(100))])
def test_the_named_policy(tmp_path: Path, overflow: str, left: range) -> None:
    with Mosquitto(tmp_path / "remote") as remote, Peer(remote.port).subscribe("#") as there:
        gate = Gate(remote.port)  # shut
        url = f"mqtt://127.0.0.1:{gate.port}"
        toml = bridge_toml(url, out=OUT, queue_messages=100, overflow=overflow)
        with start_platform(tmp_path, toml) as platform, terminal(platform) as here:
            for _ in range(5):
                here.publish("g/t1/r", '{"zero": 1}', qos=0)
            here.publish_all("g/t1/r", [json.dumps({"n": number}) for number in range(150)])
            assert metric(platform, "queued") == 100
            assert metric(platform, "dropped") == 55
            assert "the spool is full, messages are dropped" in platform.log.read_text()
            assert platform.log.read_text().count("the spool is full") == 1  # not a line a message
            with gate:
                assert there.wait_for(100) == [json.dumps({"n": number}) for number in left]
                wait_for(lambda: metric(platform, "queued") == 0, "the queue empty")
            assert len(stored(platform)) == 155  # the platform itself has all of them


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    toml = bridge_toml("mqtt://127.0.0.1:1", out=OUT, queue_bytes=100_000)
    with start_platform(tmp_path, toml) as platform, terminal(platform) as here:
        here.publish_all("g/t1/r", [json.dumps({"text": "x" * 10_000})] * 40)
        here.publish("g/t1/r", json.dumps({"text": "x" * 200_000}))  # larger than the whole spool
        assert 80_000 < metric(platform, "queued_bytes") <= 100_000
        assert metric(platform, "queued") == 9
        assert metric(platform, "dropped") == 32
