"""The platform on a real InfluxDB: what is acknowledged is read back, an outage of the server included."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from influx_server import InfluxServer
from running import Platform, wait_for

UID = "influx-1"
SPAN = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1000}


@pytest.fixture
def influxd(tmp_path: Path) -> Iterator[InfluxServer]:
    with InfluxServer(tmp_path / "influxdb") as running:
        yield running


@pytest.fixture
def platform(tmp_path: Path, influxd: InfluxServer) -> Iterator[Platform]:
    store = {
        "TERRAZZO_STORE__KIND": "influxdb",
        "TERRAZZO_STORE__URL": influxd.url,
        "TERRAZZO_STORE__DATABASE": "plant",
    }
    with Platform(tmp_path / "data", env=store) as running:
        running.login().add_terminal(UID, running.add_config())
        yield running


class Terminal:
    """Publishes numbers and knows which were acknowledged."""

    def __init__(self, platform: Platform) -> None:
        self._numbers: dict[int, int] = {}  # by packet identifier
        self._answered: list[int] = []
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, UID, reconnect_on_failure=False)
        self.client.username_pw_set(f"u-{UID}", f"pin-{UID}")
        self.client.on_publish = self._on_publish
        self.client.connect("127.0.0.1", platform.mqtt)
        self.client.loop_start()
        wait_for(self.client.is_connected, "connected")

    def publish(self, number: int) -> None:
        info = self.client.publish(f"g/{UID}/r", b'{"n": %d, "s": "x", "deep": {"b": null}}' % number, qos=1)
        self._numbers[info.mid] = number

    @property
    def acknowledged(self) -> set[int]:
        """Without a lock of its own: the client calls ``on_publish`` within one that ``publish`` needs."""
        return {self._numbers[mid] for mid in list(self._answered) if mid in self._numbers}

    def _on_publish(self, _client: object, _data: object, mid: int, _reason: object, _properties: object) -> None:
        self._answered.append(mid)


def stored(platform: Platform) -> list[int]:
    answer = platform.ask("get_grid_list", terminal_id=UID, topic=["r"], **SPAN)
    if answer["code"] != 200:
        return []
    if answer["result"]["total_records"] != len(answer["result"]["data"]):
        return []  # the server counts in a question of its own, and what waited is being sent meanwhile
    return [record["payload"]["n"] for record in answer["result"]["data"]]


def test_acknowledged_reports_survive_an_outage_of_the_server(platform: Platform, influxd: InfluxServer) -> None:
    terminal = Terminal(platform)
    for number in range(100):
        terminal.publish(number)
    wait_for(lambda: len(terminal.acknowledged) == 100, "a hundred acknowledged")
    assert stored(platform) == list(range(99, -1, -1))
    (record,) = platform.call("get_last_grid", terminal_id=UID)["data"]
    assert record["payload"] == {"n": 99, "s": "x", "deep": {"b": None}}

    influxd.kill()
    for number in range(100, 200):
        terminal.publish(number)
    wait_for(lambda: len(terminal.acknowledged) == 200, "spooled, hence acknowledged")
    terminal.client.disconnect()
    terminal.client.loop_stop()
    platform.kill()  # what was acknowledged is on disk, server or no server

    influxd.start()
    with platform.again() as second:
        second.login()
        wait_for(lambda: len(stored(second)) >= 200, "all of it is in the server")
        assert stored(second) == list(range(199, -1, -1))


def metric(platform: Platform, name: str) -> float:
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"terrazzo_store_{name} "))


def test_what_waits_is_counted(influxd: InfluxServer, platform: Platform) -> None:
    names = ("spooled_records_total", "refused_records_total", "spool_batches", "spool_bytes")
    terminal = Terminal(platform)
    terminal.publish(0)
    wait_for(lambda: terminal.acknowledged == {0}, "acknowledged")
    assert [metric(platform, name) for name in names] == [0, 0, 0, 0]
    influxd.kill()
    for number in range(1, 11):
        terminal.publish(number)
    wait_for(lambda: len(terminal.acknowledged) == 11, "spooled, hence acknowledged")
    spooled, refused, batches, size = (metric(platform, name) for name in names)
    assert (spooled, refused) == (10, 0)
    assert batches >= 1
    assert size > 10
    influxd.start()
    wait_for(lambda: metric(platform, "spool_batches") == 0, "sent")
    assert [metric(platform, name) for name in names] == [10, 0, 0, 0]
    terminal.client.disconnect()
    terminal.client.loop_stop()


def test_a_server_that_is_away_is_named(influxd: InfluxServer, platform: Platform) -> None:
    influxd.kill()
    wait_for(lambda: "store" in platform.unready_parts(), "not ready without its store")
    answer = platform.ask("get_last_grid", terminal_id=UID)
    assert answer["code"] == 500
    assert "InfluxDB" in answer["info"]
