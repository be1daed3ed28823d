"""The four paths of the messenger, each row of its table: parameters, shapes, what providers say; a whole platform."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from messenger_rig import Provider

from mail_server import MailBox, MailServer
from running import Platform

EMAIL = {"EmailSubject": "Alarm", "EmailContent": "Tank 7 is full", "EmailFile": ""}
ANDROID = {
    "Body": {"Ticker": "t", "Title": "Alarm", "Text": "Tank 7", "Remark": ""},
    "AfterOpen": "go_app",
    "Url": "",
    "DesText": "d",
}
IOS = {
    "APS": {"AlertTitle": "Alarm", "AlertSubtitle": "", "AlertBody": "Tank 7"},
    "Extra": {"id": 5, "type": "alert"},
    "DesText": "",
}
AUTHORS = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
WECHAT = {name: {"value": name, "color": "#173177"} for name in ("first", "keyword1", "keyword2", "remark")}
FIELDS = {"code", "msg", "info", "svc_code", "svc_ext", "svc_msg", "result"}

CONFIG = """
[messenger]
allow_private = ["127.0.0.0/8"]

[[messenger.project]]
id = 1
name = "plant"
per_minute = 0
email = {{ host = "127.0.0.1", port = {mail}, sender = "plant@example.com", tls = "off" }}

[messenger.project.sms]
url = "{url}"
variant = "b"
body = '{{"to": "{{recipients}}", "text": "{{msgdata}}", "on": "{{equipment_name}}"}}'
code_field = "code"
message_field = "msg"
success = ["0"]

[messenger.project.android]
url = "{url}"
body = '''{{
 "to": "{{recipients}}", "title": "{{Body.Title}}", "open": "{{AfterOpen}}", "id": "{{id}}", "type": "{{type}}"
}}'''

[messenger.project.ios]
url = "{url}"
body = '{{"to": "{{recipients}}", "aps": "{{APS}}", "id": "{{Extra.id}}"}}'

[messenger.project.wechat]
url = "{url}"
per_recipient = true
body = '{{"touser": "{{recipient}}", "data": "{{data_msg}}"}}'
"""


@dataclass
class World:
    platform: Platform
    box: MailBox
    provider: Provider
    object_id: int

    def send(self, name: str, data: Any, *, files: Any = None) -> dict[str, Any]:
        """The answer to a form with its field ``data``."""
        parts = [("data", (None, json.dumps(data))), *(files or [])]
        headers = {"Authorization": f"Bearer {self.platform.token}"}
        answer = requests.post(f"{self.platform.url}/api/send/{name}", files=parts, headers=headers, timeout=30)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found.keys() - {"reason"} == FIELDS
        return found

    def sent(self) -> list[Any]:
        """The bodies that the provider got since the last look."""
        bodies = [json.loads(body) for _, body in self.provider.requests]
        self.provider.requests.clear()
        return bodies


@contextmanager
def outside(box: MailBox, provider: Provider) -> Iterator[int]:
    """A mail server and a provider on a loop of their own; the mail server's port."""
    loop, ready, port = asyncio.new_event_loop(), threading.Event(), 0

    async def serve(stop: asyncio.Event) -> None:
        nonlocal port
        async with MailServer(box) as server, provider.running():
            port = server.port
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=[serve(stop)])
    thread.start()
    assert ready.wait(10)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def add_object(platform: Platform) -> int:
    """An object with a terminal and a mapping; its id."""
    platform.add_terminal("T7", platform.add_config())
    rows = [["L", "Level", "L", "STA", "$AdapterID-1.L", "", ""]]
    mapping = platform.call("create_mapping", name="tank", script=rows, **AUTHORS)["uid"]
    return int(platform.call("create_object", name="Tank 7", mapping_id=mapping, terminal_list=["T7"], **AUTHORS)["id"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, box, provider = tmp_path_factory.mktemp("paths"), MailBox(), Provider()
    with outside(box, provider) as port:
        config = folder / "terrazzo.toml"
        config.write_text(CONFIG.format(mail=port, url=provider.url))
        with Platform(folder / "data", arguments=("--config", str(config))) as platform:
            platform.login()
            object_id = add_object(platform)
            yield World(platform, box, provider, object_id)


def test_send_email(world: World) -> None:
    data = {
        "project_id": 1,
        "email_group": EMAIL,
        "send_user_group": ["a@example.com"],
        "object_id": world.object_id,
    }
    files = [("files", ("report.csv", b"1;2", "text/csv"))]
    answer = world.send("send-email", data, files=files)
    assert (answer["code"], answer["svc_code"]) == (200, "250"), answer
    result = answer["result"]
    assert result.keys() == {"class_id", "project_id", "object_id", "value", "created", "is_available", "id"}
    assert (result["class_id"], result["project_id"], result["object_id"]) == ("plant", 1, world.object_id)
    assert result["value"]["request"]["send_user_group"] == ["a@example.com"]
    recipients, mail = world.box.taken[-1]
    assert (recipients, mail["Subject"]) == (["a@example.com"], "Alarm")
    assert result["value"]["response"] == [mail["Message-ID"]]
    _, attachment = mail.iter_parts()
    assert (attachment.get_filename(), attachment.get_payload(decode=True)) == ("report.csv", b"1;2")


def test_an_email_takes_uploaded_files(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.platform.token}"}
    upload = requests.post(
        f"{world.platform.url}/object/api/v1/file/upload",
        files={"file": ("note.txt", b"of the platform", "text/plain")},
        headers=headers,
        timeout=30,
    ).json()
    assert upload["code"] == 200, upload
    data = {"project_id": 1, "send_user_group": ["a@example.com"], "object_id": world.object_id}
    group = {**EMAIL, "EmailFile": [upload["result"]["url"]]}
    assert world.send("send-email", {**data, "email_group": group})["code"] == 200
    _, attachment = world.box.taken[-1][1].iter_parts()
    assert attachment.get_payload(decode=True) == b"of the platform"
    answer = world.send("send-email", {**data, "email_group": {**EMAIL, "EmailFile": "0" * 32}})
    assert (answer["code"], answer["info"]) == (500, f"email_group: EmailFile: no file {'0' * 32}")
    named = [upload["result"]["url"]] * 50 + ["0" * 32]  # which isn't looked up any more
    answer = world.send("send-email", {**data, "email_group": {**EMAIL, "EmailFile": named}})
    assert (answer["code"], answer["info"]) == (500, "email_group: EmailFile: more than 50 files")


def test_send_sms(world: World) -> None:
    group = {"msgdata": "full", "equipment_id": "7", "equipment_name": "Tank 7", "datetime": "2026-01-01 00:00:00"}
    data = {"project_id": 1, "sms_group": group, "send_user_group": ["+49 1", 862], "object_id": world.object_id}
    answer = world.send("send-sms", data)
    assert (answer["code"], answer["svc_code"], answer["svc_msg"], answer["result"]) == (200, "0", "taken", "")
    assert world.sent() == [{"to": ["+49 1", "862"], "text": "full", "on": "Tank 7"}]
    answer = world.send("send-sms", {**data, "sms_group": {"msgdata": "full"}})
    assert answer["info"] == "sms_group: equipment_id: is required; equipment_name: is required; datetime: is required"


@pytest.mark.parametrize("path", ["send-app-push", "send-sms"])  # the second is the samples' address
def test_send_app_push(world: World, path: str) -> None:
    data = {
        "project_id": 1,
        "android_msg_group": ANDROID,
        "send_android_user_group": ["token-a"],
        "ios_msg_group": IOS,
        "send_ios_user_group": ["token-i"],
        "id": 5,
        "object_id": world.object_id,
    }
    answer = world.send(path, data)
    assert (answer["code"], answer["result"]) == (200, ""), answer
    assert world.sent() == [
        {"to": ["token-a"], "title": "Alarm", "open": "go_app", "id": 5, "type": "alert"},
        {"to": ["token-i"], "aps": IOS["APS"], "id": 5},
    ]


def test_attributes_of_a_push_that_have_defaults_and_empty_ones(world: World) -> None:
    android = {"Body": dict.fromkeys(("Ticker", "Title", "Text", "Remark"), ""), "Url": "", "DesText": ""}
    ios = {"APS": IOS["APS"], "Extra": {"id": ""}, "DesText": ""}
    devices = {"send_android_user_group": ["a"], "send_ios_user_group": ["i"]}
    answer = world.send("send-app-push", {"android_msg_group": android, "ios_msg_group": ios, **devices})
    assert answer["code"] == 200, answer
    to_android, _ = world.sent()
    assert (to_android["open"], to_android["type"]) == ("go_app", "alert")
    listed = world.platform.call("get_message_list", where_and=[["channel", "=", "ios"]])["data"]
    assert listed[0]["content"]["Extra"] == {"id": "", "type": "alert"}


@pytest.mark.parametrize("path", ["send-wechat", "send-sms"])
def test_send_wechat(world: World, path: str) -> None:
    data = {"project_id": 1, "object_id": world.object_id, "open_ids": ["o-1", "o-2"], "data_msg": WECHAT}
    answer = world.send(path, data)
    assert (answer["code"], answer["result"]) == (200, ""), answer
    sent = world.sent()
    assert sorted(each["touser"] for each in sent) == ["o-1", "o-2"]
    assert all(each["data"] == WECHAT for each in sent)


def test_what_a_provider_says_of_a_failure(world: World) -> None:
    world.provider.answers.append((200, {"code": 17, "msg": "no credit"}))
    group = {"msgdata": "x", "equipment_id": "7", "equipment_name": "T", "datetime": "now"}
    answer = world.send("send-sms", {"project_id": 1, "sms_group": group, "send_user_group": ["+1"]})
    assert (answer["code"], answer["svc_code"], answer["svc_msg"], answer["result"]) == (500, "17", "no credit", {})
    assert "not sent" in answer["info"]
    world.sent()
    listed = world.platform.call("get_message_list", where_and=[["uid", "=", answer["svc_ext"]]])["data"]
    assert [(each["state"], each["svc_code"], each["channel"]) for each in listed] == [("failed", "17", "sms")]
    assert listed[0]["response"]["status"] == 200
    audit = world.platform.call("get_audit_list", entity="message")["data"]
    assert {each["action"] for each in audit} == {"send"}


GROUPS = {
    "android_msg_group": (ANDROID, "Body Body.Ticker Body.Title Body.Text Body.Remark Url DesText"),
    "ios_msg_group": (IOS, "APS APS.AlertTitle APS.AlertSubtitle APS.AlertBody Extra Extra.id DesText"),
}
"""The groups of a push, and their attributes without those that have defaults."""


def incomplete_pushes() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Pushes of which one attribute is missing, and why they are refused."""
    for field, (whole, attributes) in GROUPS.items():
        for attribute in attributes.split():
            group = json.loads(json.dumps(whole))
            outer, _, inner = attribute.rpartition(".")
            del (group[outer] if outer else group)[inner]
            place = f"in {outer}: object" if outer else "object"
            yield "send-app-push", {field: group}, f"{field}: {place} missing required field {inner}"


BAD = [
    ("send-email", {}, "project_id: is required; email_group: is required; send_user_group: is required; object_id"),
    (
        "send-email",
        {"email_group": {"EmailSubject": "", "EmailContent": "x"}},
        "email_group: in EmailSubject: expected str",
    ),
    ("send-email", {"email_group": "{"}, "email_group: not valid JSON"),
    ("send-email", {"send_user_group": ["a@x", "b c@x"]}, "send_user_group: entry 2: 'b c@x' is not an e-mail address"),
    ("send-email", {"send_user_group": ["a@x\r\nBcc: b@x"]}, "send_user_group: entry 1"),
    ("send-email", {"send_user_group": []}, "send_user_group: expected at least one recipient"),
    ("send-email", {"project_id": 7}, "project_id: no messenger project 7"),
    ("send-email", {"object_id": 999}, "object_id: no record 999"),
    ("send-sms", {"project_id": 1}, "sms_group: is required"),
    ("send-app-push", {"project_id": 1}, "send_android_user_group: names no device"),
    ("send-app-push", {"send_ios_user_group": ["x"]}, "ios_msg_group: is required"),
    (
        "send-app-push",
        {"ios_msg_group": {"APS": {}}},
        "ios_msg_group: in APS: object missing required field",
    ),
    ("send-wechat", {"open_ids": ["x"]}, "data_msg: is required"),
    *incomplete_pushes(),
]


@pytest.mark.parametrize(("path", "data", "info"), BAD, ids=[info for *_, info in BAD])
def test_bad_parameters_are_named(world: World, path: str, data: dict[str, Any], info: str) -> None:
    full = {"project_id": 1, "email_group": EMAIL, "send_user_group": ["a@x"], "object_id": world.object_id}
    answer = world.send(path, {**full, **data} if path == "send-email" and data else data)
    assert answer["code"] == 500
    assert answer["info"].startswith(info), answer["info"]


def test_files_that_are_too_large(world: World) -> None:
    data = {"project_id": 1, "email_group": EMAIL, "send_user_group": ["a@x"], "object_id": world.object_id}
    parts = [("data", (None, json.dumps(data))), ("files", ("big.bin", bytes(5 * 2**20 + 1)))]
    headers = {"Authorization": f"Bearer {world.platform.token}"}
    url = f"{world.platform.url}/api/send/send-email"
    answer = requests.post(url, files=parts, headers=headers, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (200, 500)
    assert "more than 5242880 bytes together" in answer.json()["info"]
    parts[1] = ("files", ("big.bin", bytes(7 * 2**20)))
    assert requests.post(url, files=parts, headers=headers, timeout=30).status_code == 413


def test_what_was_sent_is_listed_newest_first(world: World) -> None:
    group = {"msgdata": "x", "equipment_id": "7", "equipment_name": "T", "datetime": "now"}
    data = {"project_id": 1, "sms_group": group, "send_user_group": ["+1"]}
    sent = [world.send("send-sms", data)["svc_ext"] for _ in range(2)]
    world.sent()
    listed = world.platform.call("get_message_list", page_size=100)
    assert listed["total_records"] == len(listed["data"])
    assert [each["uid"] for each in listed["data"][:2]] == sent[::-1]
    assert {(each["channel"], each["state"]) for each in listed["data"][:2]} == {("sms", "sent")}
