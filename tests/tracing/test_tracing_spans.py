"""Spans of a message, a command and a request, as a collector gets them over OTLP."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import paho.mqtt.client as paho
import pytest

from running import Platform, wait_for
from trace_collector import Collector, attributes_of, collector

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
_LIMIT_S = 60


@pytest.fixture(scope="module")
def there() -> Iterator[Collector]:
    with collector() as server:
        yield server


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, there: Collector) -> Iterator[Platform]:
    """One that traces what names a trace, and nothing else."""
    environment = {
        "TERRAZZO_TRACING__ENDPOINT": there.url,
        "TERRAZZO_TRACING__SAMPLE": "0",
        "TERRAZZO_TRACING__SERVICE_NAME": "plant",
        "TERRAZZO_TRACING__ATTRIBUTES": '{ "deployment.environment.name" = "test" }',
        "TERRAZZO_TRACING__HEADERS": '{ Authorization = "Bearer of-the-collector" }',
    }
    with Platform(tmp_path_factory.mktemp("traced") / "data", env=environment) as running:
        running.login().add_terminal("t1", running.add_config())
        yield running


@pytest.fixture
def terminal(platform: Platform) -> Iterator[paho.Client]:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "t1", protocol=paho.MQTTv5)
    client.username_pw_set("u-t1", "pin-t1")
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    wait_for(client.is_connected, "the terminal logs in", timeout_s=_LIMIT_S)
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


def ask(platform: Platform, traceparent: str, action: str, **fields: Any) -> Any:
    """A request that names a trace."""
    headers = {
        "Authorization": f"Bearer {platform.token}",
        "Content-Type": "application/json",
        "traceparent": traceparent,
    }
    body = json.dumps({"action": action, **fields}).encode()
    request = urllib.request.Request(f"{platform.url}/apiproxy/api", body, headers)
    with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
        return json.load(answer)


def publish(client: paho.Client, payload: str, traceparent: str = "", **more: Any) -> None:
    properties = paho.Properties(paho.PacketTypes.PUBLISH)
    if traceparent:
        properties.UserProperty = [("unit", "1"), ("traceparent", traceparent)]
    for name, value in more.items():
        setattr(properties, name, value)
    channel = "n" if more else "r"
    client.publish(f"g/t1/{channel}", payload, qos=1, properties=properties).wait_for_publish(_LIMIT_S)


def the_one(there: Collector, name: str, **attributes: Any) -> Any:
    found = wait_for(lambda: there.named(name, **attributes), f"a span {name}", timeout_s=_LIMIT_S)
    assert len(found) == 1, found
    return found[0]


def metric(platform: Platform, line: str) -> float:
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=_LIMIT_S) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(each for each in lines if each.startswith(f"{line} ")).split()[-1])


def test_a_message_from_publish_to_puback(platform: Platform, there: Collector, terminal: paho.Client) -> None:
    publish(terminal, '{"T": 1}')
    publish(terminal, '{"T": 2}', NOT_SAMPLED)
    publish(terminal, '{"T": 3}', "00-nonsense")
    publish(terminal, '{"T": 4.25}', SAMPLED)
    span = the_one(there, "mqtt.publish")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    known = attributes_of(span)
    assert (known["messaging.destination.name"], known["messaging.message.body.size"]) == ("g/t1/r", 11)
    parts = there.children(span)
    assert [each.name for each in parts] == ["decode and map", "commit", "acknowledge"]
    assert span.start_time_unix_nano == parts[0].start_time_unix_nano
    for before, after in pairwise(parts):
        assert before.start_time_unix_nano <= before.end_time_unix_nano == after.start_time_unix_nano
    assert parts[-1].end_time_unix_nano == span.end_time_unix_nano
    assert parts[1].end_time_unix_nano > parts[1].start_time_unix_nano, "a commit takes time"


def test_a_request_in_its_caller_s_trace(platform: Platform, there: Collector) -> None:
    for _ in range(3):  # the same bytes again and again
        ask(platform, SAMPLED, "get_terminal_item", uid="t1")
    found = wait_for(lambda: len(there.named("get_terminal_item")) == 3 and there.named("get_terminal_item"), "spans")
    assert {each.trace_id.hex() for each in found} == {TRACE}
    assert {attributes_of(each)["terrazzo.code"] for each in found} == {200}
    ask(platform, SAMPLED, "get_terminal_item", uid="nobody")
    wait_for(lambda: there.named("get_terminal_item", terrazzo__code=10404), "the refusal's span", timeout_s=_LIMIT_S)
    refused = the_one(there, "get_terminal_item", terrazzo__code=10404)
    assert refused.status.message == "code 10404"
    ask(platform, NOT_SAMPLED, "get_terminal_list")
    ask(platform, "", "get_terminal_list")
    ask(platform, SAMPLED, "get_session")
    the_one(there, "get_session")
    assert there.named("get_terminal_list") == []


def test_a_command_from_request_to_answer(platform: Platform, there: Collector, terminal: paho.Client) -> None:
    received: list[Any] = []
    terminal.on_message = lambda client, data, message: received.append(message)
    terminal.subscribe("p2p/t1", 1)
    answer = ask(platform, SAMPLED, "publish_terminal_command", terminal_id="t1", command="Diag", value="")
    assert answer["code"] == 200
    wait_for(lambda: received, "the command", timeout_s=_LIMIT_S)
    properties = received[0].properties
    named = dict(properties.UserProperty)["traceparent"]
    publish(terminal, '{"Result": "ok"}', named, CorrelationData=properties.CorrelationData)
    span = the_one(there, "command")
    request = the_one(there, "publish_terminal_command")
    assert (span.trace_id.hex(), span.parent_span_id) == (TRACE, request.span_id)
    assert named == f"00-{TRACE}-{span.span_id.hex()}-01"
    assert attributes_of(span)["terrazzo.command.state"] == "answered"
    parts = [each.name for each in there.children(span) if each.name != "mqtt.publish"]
    assert parts[:2] == ["journal", "wait for the terminal"]
    assert parts[-1] == "answer"
    assert set(parts) <= {"journal", "wait for the terminal", "publish", "answer"}
    assert the_one(there, "mqtt.publish", messaging__destination__name="g/t1/n").parent_span_id == span.span_id


def test_of_whom_spans_are(platform: Platform, there: Collector) -> None:
    ask(platform, SAMPLED, "ping")
    the_one(there, "ping")
    assert there.resource["service.name"] == "plant"
    assert there.resource["deployment.environment.name"] == "test"
    assert there.headers[-1]["authorization"] == "Bearer of-the-collector"


def test_what_the_collector_does_not_take_is_counted(platform: Platform, there: Collector) -> None:
    sent = 'terrazzo_trace_spans_total{result="sent"}'
    failed = 'terrazzo_trace_spans_total{result="failed"}'
    wait_for(lambda: metric(platform, sent) == len(there.spans), "what was sent is counted", timeout_s=_LIMIT_S)
    there.status = 400
    try:
        ask(platform, SAMPLED, "get_login_options")
        wait_for(lambda: metric(platform, failed) == 1, "the failure", timeout_s=_LIMIT_S)
    finally:
        there.status = 200
    assert metric(platform, 'terrazzo_trace_spans_total{result="dropped"}') == 0
    assert there.named("get_login_options") == []
