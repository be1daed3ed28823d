"""Rules on a running platform: from a terminal's report to a signed webhook and an SMS; storms, reminders, restarts."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mqtt_bytes import login, publish
from running import Platform, wait_for

ROWS = [
    ["T", "", "", "STA", "$AdapterID-1.t", ""],
    ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
    ["HOT", "Too hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 80"],
]
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
SECRET = "0123456789abcdef"


class Receiver:
    """Takes webhooks and the requests of an SMS provider."""

    def __init__(self) -> None:
        self.hooks: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/sms":
                    outer.texts.append(json.loads(body)["text"])
                else:
                    outer.take(body, dict(self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """As docs/messenger.md tells receivers to check."""
        signed = f"{headers['X-Terrazzo-Timestamp']}.".encode() + body
        expected = "sha256=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(headers["X-Terrazzo-Signature"], expected):
            self.faults.append("signature")
        self.hooks.append(json.loads(body) | {"delivery": headers["X-Terrazzo-Delivery"]})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def platform(tmp_path: Path, receiver: Receiver) -> Iterator[Platform]:
    config = tmp_path / "terrazzo.toml"
    config.write_text(
        'messenger.allow_private = ["127.0.0.0/8"]\n[[messenger.project]]\nid = 1\nname = "plant"\n'
        f'sms = {{ url = "{receiver.url}/sms", body = \'{{"text": "{{msgdata}}"}}\' }}\n'
    )
    with Platform(tmp_path / "data", arguments=("--config", str(config))) as started:
        prepare(started.login())
        yield started


def prepare(platform: Platform) -> None:
    platform.add_terminal("m1", platform.add_config())
    mapping = platform.call("create_mapping", name="m", script=ROWS, **BY)["uid"]
    item = platform.call("create_object", name="Boiler", mapping_id=mapping, terminal_list=["m1"])["uid"]
    script = [["RUN", "On", "开", "1", ""]]
    retainer = platform.call("create_retainer", name="r", description="", object_list=[item], script=script)
    platform.call("start_retainer", uid=retainer["uid"])


def report(platform: Platform, *bodies: dict[str, Any]) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", platform.mqtt)) as client:
        client.sendall(login("m1", "u-m1", "pin-m1"))
        assert client.recv(4) == b"\x20\x02\x00\x00"
        for number, body in enumerate(bodies, 1):
            client.sendall(publish("g/m1/r", json.dumps(body).encode(), packet_id=number))
            assert client.recv(4)[:2] == b"\x40\x02"


def add_rule(platform: Platform, **fields: Any) -> str:
    uid = platform.call("create_rule", name="hot", **fields)["uid"]
    platform.call("start_rule", uid=uid)
    return str(uid)


def test_events_and_labels_are_told(platform: Platform, receiver: Receiver) -> None:
    hook = {"channel": "webhook", "url": f"{receiver.url}/hook", "secret": SECRET, "window_s": 0}
    add_rule(platform, kinds=["event", "opened", "closed"], **hook)
    add_rule(platform, kinds=["event"], codes=["HOT"], channel="sms", recipients=["+1"], window_s=0)
    add_rule(platform, kinds=["event"], codes=["ELSE"], channel="sms", recipients=["+1"])
    report(platform, {"t": 70, "run": 1}, {"t": 90}, {"t": 70, "run": 0})
    wait_for(lambda: sum(hook["count"] for hook in receiver.hooks) == 3, "three webhooks")
    items = [item for hook in receiver.hooks for item in hook["items"]]
    assert sorted((item["kind"], item["code"], item["object"]) for item in items) == [
        ("closed", "RUN", "Boiler"),
        ("event", "HOT", "Boiler"),
        ("opened", "RUN", "Boiler"),
    ]
    assert receiver.faults == []
    wait_for(lambda: receiver.texts, "an SMS")
    assert [text.partition(" at ")[0] for text in receiver.texts] == ["Boiler: Too hot (HOT) = 90"]
    listed = platform.call("get_message_list")["data"]
    assert {each["created_by"] for each in listed} == {0}
    assert SECRET not in str(listed)


def test_a_storm_is_folded(platform: Platform, receiver: Receiver) -> None:
    add_rule(platform, kinds=["event"], channel="sms", recipients=["+1"], window_s=2, template="{value} of {count}")
    report(platform, {"t": 90}, {"t": 70})
    wait_for(lambda: receiver.texts, "the first at once")
    report(platform, *({"t": value} for number in range(5) for value in (91 + number, 70)))
    wait_for(lambda: len(receiver.texts) >= 2, "the others after the window")
    assert receiver.texts == ["90 of 1", "91 of 5 (+4)"]


def test_reminders_until_somebody_acknowledges_also_after_a_restart(platform: Platform, receiver: Receiver) -> None:
    uid = add_rule(
        platform,
        kinds=["event"],
        channel="sms",
        recipients=["+1"],
        window_s=0,
        repeat_s=1,
        repeat_times=100,
        template="hot",
    )
    report(platform, {"t": 90})
    wait_for(lambda: len(receiver.texts) >= 2, "a reminder")
    assert receiver.texts[:2] == ["hot", "Reminder 1: hot"]
    platform.kill()
    again = platform.again().login()
    try:
        before = len(receiver.texts)
        wait_for(lambda: len(receiver.texts) > before, "it goes on")
        event = again.call("get_event_list")["data"][0]
        again.call("acknowledge_event", id=event["id"])
        wait_for(lambda: waiting(again) == 0, "nothing is left to tell")
        count = len(receiver.texts)
        report(again, {"t": 70}, {"t": 95})
        wait_for(lambda: len(receiver.texts) > count, "the next event is told")
        assert receiver.texts.count("hot") == 2, "each event is told once"
        again.call("delete_rule", uid=uid)
    finally:
        again.stop()


def waiting(platform: Platform) -> int:
    """Notices that will still be told, by what the database has."""
    import sqlite3

    with sqlite3.connect(platform.data / "terrazzo.db") as database:
        found = database.execute("SELECT count(*) FROM rule_notice WHERE state <> 'done'").fetchone()
    database.close()
    return int(found[0])


@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"channel": "sms"}, "recipients: is required for sms"),
        ({"channel": "email", "recipients": ["a@x"]}, "project_id: project 1 sends no email"),
        ({"channel": "sms", "recipients": ["+1"], "project_id": 9}, "project_id: no messenger project 9"),
        ({"channel": "webhook", "secret": SECRET}, "url: is required for a webhook"),
        ({"channel": "webhook", "url": "http://x/", "secret": "short"}, "secret: expected at least 16 characters"),
        ({"channel": "webhook", "url": "file:///etc/passwd", "secret": SECRET}, "url: expected http://host/path"),
        ({"channel": "sms", "recipients": ["+1"], "template": "{x.__class__}"}, "template: {x.__class__}: unknown"),
        ({"channel": "sms", "recipients": ["+1"], "quiet_start": "25:00"}, "quiet_start: expected HH:MM"),
        ({"channel": "sms", "recipients": ["+1"], "quiet_start": "22:00"}, "quiet_end: quiet_start and quiet_end go"),
        ({"channel": "sms", "recipients": ["+1"], "repeat_s": 60}, "repeat_times: repeat_s and repeat_times go"),
        ({"channel": "pigeon", "recipients": ["+1"]}, "channel: expected one of email, sms"),
        ({"channel": "sms", "recipients": ["+1"], "kinds": ["rumour"]}, "kinds: expected an array of event, opened"),
    ],
)  # fmt: skip
def test_a_bad_rule_is_refused_by_name(shared: Platform, fields: dict[str, Any], info: str) -> None:
    answer = shared.ask("create_rule", **{"name": "r", "kinds": ["event"], **fields})
    assert answer["code"] == 10401
    assert answer["info"].startswith(info), answer["info"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("rules")
    config = folder / "terrazzo.toml"
    config.write_text('[[messenger.project]]\nid = 1\nname = "p"\nsms = { url = "http://x.example/", body = "{}" }\n')
    with Platform(folder / "data", arguments=("--config", str(config))) as started:
        yield started.login()
