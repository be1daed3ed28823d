"""The machine as its super user sees it: the broker's slow ones, bridges that come and go, backups, messages sent."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from browser import OFTEN, Tab, tab_of_administrator
from console_build import build_console
from playwright.sync_api import Browser, Route, expect

from running import Mosquitto, Platform, wait_for
from support import free_port

_SEEN_MS = 40_000  # a bridge tries ever more seldom
_CONFIG = """
command.expiry_s = 2
messenger.allow_private = ["127.0.0.0/8"]
[backup]
target = "{folder}/backups"
every_hours = 1
[[bridge]]
name = "headquarters"
url = "mqtt://127.0.0.1:{port}"
retry_s = 1
out = [{{ filter = "g/+/r" }}]
[[messenger.project]]
id = 1
name = "plant"
sms = {{ url = "{provider}", body = '{{"text": "{{msgdata}}"}}' }}
"""


class Provider(BaseHTTPRequestHandler):
    """Sends no SMS until it is told to."""

    answer = 503

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(Provider.answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/sms"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broker")


@pytest.fixture(scope="module")
def remote() -> int:
    """The port of the broker at the other end of the bridge."""
    return free_port()


@pytest.fixture(scope="module")
def platform(folder: Path, remote: int, provider: str) -> Iterator[Platform]:
    build_console()
    config = folder / "terrazzo.toml"
    config.write_text(_CONFIG.format(folder=folder, port=remote, provider=provider))
    with Platform(folder / "data", arguments=("--config", str(config))) as running:
        config_uid = running.login().add_config()
        running.add_terminal("talks-1", config_uid)
        running.add_terminal("slow-1", config_uid, topic="pub:r;sub:g/talks-1/#")
        yield running


@pytest.fixture(scope="module")
def tab(platform: Platform, browser: Browser) -> Iterator[Tab]:
    with tab_of_administrator(browser, platform.url, OFTEN) as opened:
        yield opened


def test_a_bridge_that_goes_down_says_why_and_comes_back(tab: Tab, folder: Path, remote: int) -> None:
    tab.open("#/broker/bridges")
    row = tab.page.get_by_role("row").filter(has_text="headquarters")
    for _ in range(2):
        expect(row).to_contain_text(re.compile(r"down.*(refused|closed|lost|ended)", re.IGNORECASE), timeout=_SEEN_MS)
        with Mosquitto(folder / "remote", port=remote):
            expect(row.get_by_text("connected", exact=True)).to_be_visible(timeout=_SEEN_MS)
            expect(row.get_by_role("time")).to_have_text(re.compile(r"^\d+ s$"))


def test_a_backup_is_shown_with_its_age_and_size(tab: Tab, platform: Platform, folder: Path) -> None:
    wait_for(lambda: platform.call("get_platform_status")["backup"], "a backup", timeout_s=60)
    tab.open("#/machine")
    card = tab.page.get_by_role("region", name="Backup")
    expect(card.get_by_role("time")).to_have_text(re.compile(r"^\d+ (s|min)$"))
    expect(card).to_contain_text(f"{folder}/backups")
    expect(card).to_contain_text(re.compile(r"\d\.\d MiB"))
    expect(card.get_by_text("failed")).to_have_count(0)


@contextmanager
def connected(platform: Platform, uid: str) -> Iterator[mqtt.Client]:
    """A terminal whose session outlives its connections."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, uid, clean_session=False)
    client.username_pw_set(f"u-{uid}", f"pin-{uid}")
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    try:
        wait_for(client.is_connected, f"{uid} connects")
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def test_a_command_that_nobody_fetched_is_told_of_on_the_overview(tab: Tab, platform: Platform) -> None:
    platform.call("publish_terminal_command", terminal_id="slow-1", command="Rinse", value="7")
    tab.open("#/overview")
    row = tab.page.get_by_role("listitem").filter(has_text="command Rinse for slow-1").filter(has_text="expired")
    expect(row).to_be_visible(timeout=_SEEN_MS)
    expect(tab.page.get_by_role("region", name="Open now")).to_contain_text("1 expired today")
    row.get_by_role("link", name="Open").click()
    expect(tab.page.get_by_role("row").filter(has_text="Rinse = 7")).to_contain_text("expired")


def test_an_event_is_acknowledged_on_the_overview(tab: Tab, platform: Platform) -> None:
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    script = [["HOT", "Too hot", "过热", "EVNT", "$AdapterID-1.t", "", "x > 80"]]
    mapping = platform.call("create_mapping", name="Hot", script=script, **by)["uid"]
    platform.call("create_object", name="Kiln", mapping_id=mapping, terminal_list=["talks-1"], **by)
    with connected(platform, "talks-1") as client:
        client.publish("g/talks-1/r", b'{"t": 99}', qos=1).wait_for_publish(20)
    tab.open("#/overview")
    row = tab.page.get_by_role("region", name="Needs a person").get_by_role("listitem").filter(has_text="Too hot")
    row.get_by_role("button", name="Acknowledge").click()
    expect(tab.page.get_by_role("status").filter(has_text="Acknowledged")).to_be_visible()
    expect(row).to_have_count(0)
    (event,) = platform.call("get_event_list")["data"]
    assert event["state"] == "acknowledged"


def test_how_long_the_disk_lasts_is_told_of_on_the_overview(tab: Tab) -> None:
    def little(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["result"]["disk"] |= {"total_bytes": 100 * 10**9, "free_bytes": 40 * 10**9, "days_left": 12.4}
        route.fulfill(response=answer, json=told)

    tab.page.route("**/get_attention", little)
    tab.open("#/overview")
    tab.page.reload()
    row = tab.page.get_by_role("listitem").filter(has_text="disk")
    expect(row).to_contain_text("40 % free, full in 12 days at this rate")
    row.get_by_role("link", name="Open").click()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Machine")
    tab.page.unroute("**/get_attention")


def test_who_is_too_slow_stands_there_with_what_waits_for_it(tab: Tab, platform: Platform) -> None:
    with connected(platform, "slow-1") as slow:
        slow.subscribe("g/talks-1/n", qos=1)
        wait_for(lambda: platform.call("get_subscription_list")["total_records"], "the subscription")
    tab.open("#/broker/subscriptions")
    tab.page.get_by_role("checkbox", name="Only those that are too slow").check()
    expect(tab.page.get_by_text("Nobody is too slow")).to_be_visible()
    with connected(platform, "talks-1") as talks:
        for _ in range(3):
            talks.publish("g/talks-1/n", b"{}", qos=1).wait_for_publish(20)
    row = tab.page.get_by_role("row").filter(has_text="slow-1")
    expect(row.get_by_role("cell")).to_have_text(["slow-1", "g/talks-1/n", "1", "3", "offline"], timeout=_SEEN_MS)
    with connected(platform, "slow-1"):
        expect(tab.page.get_by_text("Nobody is too slow")).to_be_visible(timeout=_SEEN_MS)


def test_what_was_sent_stands_there_with_what_became_of_it(tab: Tab, platform: Platform) -> None:
    tab.open("#/rules/messages")
    expect(tab.page.get_by_text("Nothing was sent yet")).to_be_visible()
    row = tab.page.get_by_role("row")
    send(platform, "Tank 7 is <b>full</b>")
    waiting = row.filter(has_text="Tank 7 is <b>full</b>")
    expect(waiting).to_contain_text(re.compile(r"SMS.*\+49 1.*waits.*503"), timeout=_SEEN_MS)
    Provider.answer = 200
    send(platform, "Tank 8")
    expect(row.filter(has_text="Tank 8").get_by_text("sent", exact=True)).to_be_visible(timeout=_SEEN_MS)
    tab.page.get_by_role("combobox", name="State").select_option("sent")
    expect(row.filter(has_text="Tank 8")).to_be_visible()


def send(platform: Platform, text: str) -> None:
    """An SMS, which is tried once before this returns."""
    asked = {"project_id": 1, "sms_group": {"msgdata": text}, "send_user_group": ["+49 1"]}
    headers = {"Authorization": f"Bearer {platform.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{platform.url}/api/send/send-sms", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["code"] == (200 if Provider.answer == 200 else 500)
