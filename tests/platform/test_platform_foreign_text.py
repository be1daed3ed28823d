"""Text from outside with a NUL, which PostgreSQL can't keep, is replaced, and nothing stands still because of it; with
escape sequences it steers nobody's terminal."""

from __future__ import annotations

import json
import os
import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from campaigns.campaign_stand import add_firmware, create, terminals
from loaded_process import run_loaded_text
from mqtt_bytes import login, publish
from rules.rule_stand import BY, SECRET, add_rule, report
from running import Platform, wait_for

SHOWN = "a\ufffdb"
ROWS = [
    ["S", "", "", "STA", "$AdapterID-1.s", ""],
    ["SAID", "", "", "EVNT", "$AdapterID-1.s", "", "x != 0"],
]


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"a\0b")

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def platform(tmp_path: Path, each_database: str) -> Iterator[Platform]:
    config = tmp_path / "terrazzo.toml"
    config.write_text('messenger.allow_private = ["127.0.0.0/8"]\n')
    with Platform(tmp_path / "data", arguments=("--config", str(config))) as started:
        yield started.login()


def answer_strangely(platform: Platform) -> None:
    """As a terminal whose answers name commands that nobody has given."""
    properties = Properties(PacketTypes.PUBLISH)
    properties.CorrelationData = bytes(32)
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "m1", protocol=paho.MQTTv5, reconnect_on_failure=False)
    client.username_pw_set("u-m1", "pin-m1")
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    wait_for(client.is_connected, "m1 is connected")
    client.subscribe("p2p/m1", 1)
    sent = client.publish("g/m1/n", b'{"Result": "ok"}', 1, properties=properties)
    sent.wait_for_publish(10)
    command = {"terminal_id": "m1", "command": "AXReboot", "value": "1"}
    platform.call("publish_terminal_command", **command)

    def state() -> str:
        return str(platform.call("get_command_list", terminal_id="m1")["data"][0]["state"])

    wait_for(lambda: state() == "delivered", "the journal of commands goes on")
    client.disconnect()
    client.loop_stop()


def test_it_is_replaced_and_work_goes_on(platform: Platform, provider: str) -> None:
    call, config = platform.call, add_firmware(platform)
    platform.add_terminal("m1", config)
    mapping = call("create_mapping", name="m", script=ROWS, **BY)["uid"]
    item = call("create_object", name="o", mapping_id=mapping, terminal_list=["m1"])["uid"]
    statistics = call("create_statistics", name="s", object_list=[item], script=[["LAST", "last", "S"]])["uid"]
    call("start_statistics", uid=statistics)
    add_rule(platform, kinds=["event"], channel="webhook", url=provider, secret=SECRET, window_s=0)
    campaign = create(platform, config)
    call("start_campaign", uid=campaign)

    report(platform, {"Time": "2026-01-05T10:00:00Z", "s": "a\0b"})
    wait_for(lambda: call("get_event_list")["data"], "the event is there")
    assert [event["value"] for event in call("get_event_list")["data"]] == [SHOWN]
    wait_for(lambda: [each["state"] for each in call("get_message_list")["data"]] == ["sent"], "it is told")
    assert call("get_message_list")["data"][0]["svc_msg"] == SHOWN
    results = {"script_uid": statistics, "type": 1}
    wait_for(lambda: call("get_last_statistics", **results)["data"], "the hour is computed")
    assert call("get_last_statistics", **results)["data"][0]["data"] == SHOWN

    report(platform, {"lua_version": "a\0b"}, topic="g/m1/v")
    wait_for(lambda: terminals(platform, campaign)["m1"]["version"] == SHOWN, "the campaign has heard it")
    call("abort_campaign", uid=campaign)
    answer_strangely(platform)
    report(platform, {"s": 0}, {"s": "again"})
    wait_for(lambda: [each["state"] for each in call("get_message_list")["data"]] == ["sent"] * 2, "messages go on")


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def raw(platform: Platform, action: str, **fields: Any) -> str:
    """The answer of an action as the bytes that a terminal with curl would be sent."""
    asked = urllib.request.Request(
        f"{platform.url}/apiproxy/api",
        data=json.dumps({"action": action, **fields}).encode(),
        headers={"Authorization": f"Bearer {platform.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return str(answer.read().decode())


def test_escape_sequences_of_terminals_and_users_steer_no_terminal(tmp_path: Path) -> None:
    """Labels, values, client ids, topics and user names, in the log, in answers, and in what commands print."""
    with Platform(tmp_path / "data", env={"TERRAZZO_LOGGING__LEVEL": "debug"}) as platform:
        platform.login()
        call = platform.call
        platform.add_terminal("m1", platform.add_config())
        rows = [["S", "", "", "STA", "$AdapterID-1.s", ""]]
        rows += [["SAID", f"error{ESCAPE}", f"error{ESCAPE}", "EVNT", "$AdapterID-1.s", "", "x != 0"]]
        mapping = call("create_mapping", name=f"m{ESCAPE}", script=rows, **BY)["uid"]
        call("create_object", name=f"o{ESCAPE}", mapping_id=mapping, terminal_list=["m1"])
        report(platform, {"s": f"a{ESCAPE}"})
        wait_for(lambda: call("get_event_list")["data"], "the event is there")
        with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
            client.sendall(login("m1", "u-m1", "pin-m1"))
            assert client.recv(4) == b"\x20\x02\x00\x00"
            client.sendall(publish("g/m1/r", f"no JSON {ESCAPE}".encode(), packet_id=1))
            client.sendall(publish(f"g/m2/{ESCAPE}", b"{}", packet_id=2))
            client.recv(64)
        for client_id, name in (("m1", f"u{ESCAPE}"), (f"x{ESCAPE}", "u")):
            with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
                client.sendall(login(client_id, name, f"p{ESCAPE}"))
                client.recv(64)
        assert platform.ask("login", username=f"u{ESCAPE}", password="not the one")["code"] == 10402
        wait_for(lambda: call("get_reject_list")["data"], "the reject is there")
        questions = ("get_event_list", "get_reject_list", "get_object_list", "get_unknown_terminal_list")
        answers = "".join(raw(platform, action) for action in questions)
        assert "owned" in answers
        assert not {"\x1b", "\x07"} & set(answers)
        command = ["-m", "terrazzo", "terminal", "why", "m1", "--data", str(tmp_path / "data")]
        why = run_loaded_text(command, env={**os.environ})
        assert "topic" in why.stdout, why
        log = platform.log.read_text()
        assert "owned" in log
        for text in (log, why.stdout, why.stderr):
            assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
