"""What is traced, and how much of it: samples, bounds and what goes over them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from open_stores import supervisor
from terrazzo.commands import traces
from terrazzo.commands.traces import ANSWER_US, CommandTraces
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.commit_traces import MOST_CHOSEN, MOST_NAMED, CommitTraces
from terrazzo.ports.tracing import Tracing, known_parent
from terrazzo_adapters.opentelemetry import OtelTracer, TracerSettings
from terrazzo_broker.hooks import Inbound
from terrazzo_broker.message import PublishProperties, traceparent_of
from waiting import until

SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
NOT_SAMPLED = SAMPLED[:-2] + "00"


class Kept(SpanExporter):
    """Keeps what it is given; with ``gate`` not before that is set."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.spans: list[ReadableSpan] = []
        self._gate = gate

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._gate is not None:
            self._gate.wait(30)
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing to end."""


def tracer(exporter: SpanExporter, *, most: int = 1_000_000) -> OtelTracer:
    settings = TracerSettings(
        endpoint="http://127.0.0.1:1/", service_name="t", version="1", attributes={}, headers={}, queue_spans=most
    )
    return OtelTracer(settings, exporter)


def begin(made: OtelTracer) -> Any:
    return made.begin("x", 1, kind="server", parent="", attributes={})


async def test_the_queue_is_bounded_and_counts():
    gate, tasks = threading.Event(), supervisor()
    kept = Kept(gate)
    made = tracer(kept, most=16)
    for _ in range(20):
        begin(made).end(2)
    assert (made.stats.sent, made.stats.dropped) == (0, 4)
    made.start(tasks)
    await until(lambda: not made.queue.waiting, "the first are being sent")
    for _ in range(3):
        begin(made).end(2)
    gate.set()
    await until(lambda: made.stats.sent == 19, "all are sent")
    await made.close()
    await tasks.close()
    assert (made.stats.sent, made.stats.dropped, len(kept.spans)) == (19, 4, 19)


async def test_a_collector_that_stands_does_not_hold_up_the_stop():
    gate, tasks = threading.Event(), supervisor()
    made = tracer(Kept(gate), most=100)
    made.start(tasks)
    begin(made).end(2)
    closing = asyncio.ensure_future(made.close())
    done, _ = await asyncio.wait({closing}, timeout=60)
    gate.set()
    await closing
    await tasks.close()
    assert done


@pytest.mark.parametrize(
    "text",
    ["", "00", "nonsense" * 7, SAMPLED.upper(), SAMPLED + "0", "ff" + SAMPLED[2:], "00-" + "0" * 32 + SAMPLED[35:]],
)
def test_what_is_no_trace_is_none(text):
    assert known_parent(text) == ""


def test_a_trace_is_found_among_properties():
    named = PublishProperties(
        content_type="a", correlation_data=b"\x26\x00", user_properties=(("a", "b"), ("traceparent", SAMPLED))
    )
    assert traceparent_of(named.encode()) == SAMPLED
    assert traceparent_of(PublishProperties(user_properties=(("traceparent", "short"),)).encode()) is None
    assert traceparent_of(b"") is None
    odd = PublishProperties(user_properties=(("traceparent", "é" * 27 + "x"),)).encode()
    assert known_parent(traceparent_of(odd) or "") == ""


async def spans_of(
    messages: Sequence[Inbound], *, sample: float, at_once: int = 500
) -> tuple[list[ReadableSpan], CommitTraces]:
    kept = Kept()
    made = tracer(kept)
    commits = CommitTraces(Tracing(made, sample))
    for first in range(0, len(messages), at_once):
        batch: Any = SimpleNamespace(messages=messages[first : first + at_once], arrived_us=10)
        group = CommitGroup(arrivals=[Arrival(batch, 1)])
        commits.on_commit(group, started_us=20, stored_us=30, answered_us=40)
    await made.close()
    return [each for each in kept.spans if each.name == "mqtt.publish"], commits


def message(traceparent: str | None = None) -> Inbound:
    return Inbound(SimpleNamespace(topic="g/t/r", uid="t"), b"{}", None, traceparent)


async def test_a_share_of_messages_is_traced():
    assert len((await spans_of([message()] * 50, sample=1.0))[0]) == 50
    assert len((await spans_of([message()] * 50, sample=0.0))[0]) == 0
    found = len((await spans_of([message()] * 40_000, sample=0.05))[0])
    assert 1_600 < found < 2_400, "2000 on the average, with a deviation of 44"


async def test_of_one_commit_the_share_is_bounded():
    spans, commits = await spans_of([message()] * 1_000, sample=1.0, at_once=1_000)
    assert (len(spans), commits.stats.left_out) == (MOST_CHOSEN, 1_000 - MOST_CHOSEN)
    spans, commits = await spans_of([message(SAMPLED)] * 100, sample=1.0, at_once=100)
    assert (len(spans), commits.stats.left_out) == (MOST_CHOSEN, 100 - MOST_CHOSEN)


async def test_what_names_a_trace_is_traced_within_bounds():
    spans, commits = await spans_of([message(SAMPLED)] * (MOST_NAMED + 5) + [message(NOT_SAMPLED)], sample=0.0)
    assert len(spans) == MOST_NAMED
    assert commits.stats.left_out == 6


async def test_refused_messages_say_so():
    kept = Kept()
    made = tracer(kept)
    batch: Any = SimpleNamespace(messages=[message(SAMPLED)], arrived_us=10)
    arrival = Arrival(batch, 1)
    arrival.refuse(0, 0x99)
    commits = CommitTraces(Tracing(made, 0.0))
    commits.on_commit(CommitGroup(arrivals=[arrival]), started_us=20, stored_us=30, answered_us=40)
    await made.close()
    assert [each.status.description for each in kept.spans if each.name == "mqtt.publish"] == ["refused with 0x99"]


def row(uid: str) -> dict[str, Any]:
    return {"uid": uid, "terminal_id": "t", "command": "Diag", "queued_us": 10}


def step(uid: str, state: CommandState, time_us: int) -> CommandStep:
    return CommandStep(uid=uid, state=state, time_us=time_us)


async def test_commands_that_nobody_answers_end(monkeypatch):
    monkeypatch.setattr(traces, "MOST_OPEN", 3)
    kept = Kept()
    made = tracer(kept)
    commands = CommandTraces(Tracing(made, 1.0))
    for uid in ("a", "b", "c", "d"):
        commands.begin(row(uid), None, 11)
    assert commands.stats.left_out == 1
    assert commands.traceparent_of("d") == ""
    assert known_parent(commands.traceparent_of("a"))
    commands.on_step(step("a", CommandState.SENT, 12))
    commands.on_step(step("a", CommandState.DELIVERED, 13))
    commands.sweep(13 + ANSWER_US)
    assert commands.traceparent_of("a")
    commands.sweep(14 + ANSWER_US)
    assert commands.traceparent_of("a") == ""
    commands.on_step(step("b", CommandState.EXPIRED, 15))
    commands.on_step(step("nobody", CommandState.SENT, 15))
    commands.close()
    await made.close()
    ended = {each.attributes["terrazzo.command.uid"]: each for each in kept.spans if each.name == "command"}
    states = {uid: each.attributes["terrazzo.command.state"] for uid, each in ended.items()}
    assert states == {"a": "delivered", "b": "expired", "c": "queued"}
    assert ended["a"].end_time == 13_000
    assert ended["b"].status.description == "expired"
