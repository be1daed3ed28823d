"""Control rows and requests in, by every door; topic and exact bytes out, at paho clients (section 2, Pusher)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwe
from joserfc.jwk import OctKey
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pusher_stand import DOORS, HTTP, Stand, with_tcp

from running import wait_for

WIRE = [
    # command, value in the request, terminal, payload
    ("SP", "", "push-5", b'{"Act":"Control","SP1":21.5}'),
    ("SP", "19", "push-5", b'{"Act":"Control","SP1":19}'),
    ("SP", "on", "push-5", b'{"Act":"Control","SP1":"on"}'),
    ("MODE", "", "push-4", b'{"Act":"Control","mode.kind":"auto"}'),
    ("MODE", "手动", "push-4", '{"Act":"Control","mode.kind":"手动"}'.encode()),
    ("NAMED", "0.50", "push-5", b'{"Act":"Control","Valve":0.50}'),
    ("OTHER", "", "push-x", b'{"Act":"Control","Out":0}'),
    ("RAW", "3", "push-5", b'{"Act":"Control","Buzz":3}'),
    ("Reboot", "", "push-5", b'{"Act":"Reboot"}'),
    ("Reboot", "now", "push-5", b'{"Act":"Reboot"}'),
    ("Diag", "", "push-4", b'{"Act":"Diag"}'),
    (
        "AXUpgrade",
        "",
        "push-4",
        b'{"Act":"AXUpgrade","Unit":"LUA","URL":"ftp://files.example:2121/lua-2.bin","User":"up","Pwd":"s@cret"}',
    ),
    (
        "AXUpgrade",
        "MCU",
        "push-4",
        f'{{"Act":"AXUpgrade","Unit":"MCU","URL":"{HTTP}","User":"","Pwd":""}}'.encode(),
    ),
]

NOTHING = [
    ("SP", {"project_id": "idle"}, "project_id: project .* is not started"),
    ("SP", {"project_id": 987}, "project_id: no record 987"),
    ("SP", {"object_id": "bare"}, "object_id: object .* has no control script"),
    ("SP", {"object_id": 987}, "object_id: no record 987"),
    ("NONE", {}, "command: 'NONE' is not in the object's control script"),
    ("AXUpgrade", {"value": "EEPROM"}, "value: expected LUA or MCU"),
    ("SP", {"value": "x" * 65}, "value: longer than 64 characters"),
]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with with_tcp(tmp_path_factory.mktemp("pusher") / "data") as platform:
        made = Stand(platform)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("command", "value", "uid", "payload"), WIRE)
def test_a_row_and_a_request_become_these_bytes(
    stand: Stand, door: str, command: str, value: str, uid: str, payload: bytes
) -> None:
    listener = stand.listeners[uid]
    before = {each: len(other.messages) for each, other in stand.listeners.items()}
    answer = stand.push(door, object_id=stand.object_id, command=command, value=value)
    assert answer["code"] == 200, answer
    message = listener.next(before[uid] + 1)
    assert (message.topic, message.payload, message.qos, message.retain) == (f"p2p/{uid}", payload, 1, False)
    if uid == "push-5":
        assert message.properties.ResponseTopic == f"g/{uid}/n"
        assert len(message.properties.CorrelationData) == 32
    assert {each: len(other.messages) for each, other in stand.listeners.items()} == before | {uid: before[uid] + 1}


@pytest.mark.parametrize("door", DOORS)
def test_a_sealed_terminals_command_is_sealed(stand: Stand, door: str) -> None:
    listener = stand.listeners["push-s"]
    count = len(listener.messages)
    assert stand.push(door, object_id=stand.object_id, command="SEALED", value="7")["code"] == 200
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"push-s").derive(b"pin-push-s")
    opened = jwe.decrypt_compact(
        listener.next(count + 1).payload, OctKey.import_key(key), algorithms=["dir", "A256GCM"]
    )
    assert opened.plaintext == b'{"Act":"Control","SP":7}'


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("command", "more", "reason"), NOTHING)
def test_what_is_not_sent_says_why(stand: Stand, door: str, command: str, more: dict[str, Any], reason: str) -> None:
    before = {uid: len(listener.messages) for uid, listener in stand.listeners.items()}
    journaled = stand.platform.call("get_command_list")["total_records"]
    request = {"object_id": stand.object_id, "command": command, **more}
    if request.get("project_id") == "idle":
        request["project_id"] = stand.platform.call("create_project", name="idle")["id"]
    if request["object_id"] == "bare":
        request["object_id"] = stand.bare_id
    answer = stand.push(door, **request)
    expected = {500} if door == "component" or "record" not in reason else {10404}
    assert answer["code"] in (expected | ({10401} if reason.startswith("value") and door != "component" else set()))
    assert re.search(reason, answer["info"]), answer
    assert stand.platform.call("get_command_list")["total_records"] == journaled
    assert {uid: len(listener.messages) for uid, listener in stand.listeners.items()} == before


@pytest.mark.parametrize("missing", ["project_id", "object_id", "command"])
def test_the_path_requires_project_object_and_command(stand: Stand, missing: str) -> None:
    """Rule 8 of section 2 "Pusher"."""
    journaled = stand.platform.call("get_command_list")["total_records"]
    whole = {"project_id": 1, "object_id": stand.object_id, "command": "SP", "value": "1"}
    for request in ({**whole, missing: None}, {name: value for name, value in whole.items() if name != missing}):
        answer = stand.post_to_path(request)
        assert (answer["code"], answer["info"].split(":")[0]) == (500, missing), answer
    assert stand.platform.call("get_command_list")["total_records"] == journaled


def test_one_that_can_not_be_sent_keeps_the_others_back(stand: Stand) -> None:
    journaled = stand.platform.call("get_command_list")["total_records"]
    publishes = [
        {"object_id": stand.object_id, "command": "SP", "value": "1"},
        {"object_id": stand.object_id, "command": "AXUpgrade", "value": "EEPROM"},
    ]
    answer = stand.platform.ask("publish_object_commnad_plus", publishes=publishes)
    assert (answer["code"], answer["info"]) == (10401, "value: expected LUA or MCU for AXUpgrade")
    assert stand.platform.call("get_command_list")["total_records"] == journaled


def test_a_command_for_one_that_is_away_waits_and_says_so(stand: Stand) -> None:
    assert stand.push("component", object_id=stand.object_id, command="AWAY", value="5")["code"] == 200
    (record,) = stand.platform.call("get_command_list", terminal_id="push-away")["data"]
    assert (record["state"], record["sent"], record["delivered"]) == ("queued", None, None)
    assert (record["command"], record["value"], record["object_id"]) == ("AWAY", "5", str(stand.object_id))


def test_delivered_is_not_answered(stand: Stand) -> None:
    listener = stand.listeners["push-5"]
    count = len(listener.messages)
    key = {"idempotency_key": "order-1"}
    for door in ("http", "component"):
        assert stand.push(door, object_id=stand.object_id, command="SP", value="8", **key)["code"] == 200
    message = listener.next(count + 1)

    def state() -> str:
        return str(stand.platform.call("get_command_list", terminal_id="push-5", page_size=1)["data"][0]["state"])

    wait_for(lambda: state() == "delivered", "delivered")
    assert len(listener.messages) == count + 1, "the second request with the key sends nothing"
    answer = paho_properties(message.properties.CorrelationData)
    listener.client.publish(message.properties.ResponseTopic, b'{"Result":"ok"}', 1, properties=answer)
    wait_for(lambda: state() == "answered", "answered")


def paho_properties(correlation: bytes) -> Any:
    properties = Properties(PacketTypes.PUBLISH)
    properties.CorrelationData = correlation
    return properties
