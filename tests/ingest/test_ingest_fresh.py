"""What arrives while nothing waits is decoded in the order of its arrival for a slice of time; then there are turns."""

from __future__ import annotations

import sys
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ingest_intake import ARRIVED_US, Batch, Shelf, running, settled, tag
from test_ingest_turns import Costly, arrival, client

from terrazzo.domain.payload import PointLimits
from terrazzo.domain.report_topic import KnownSeries
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_group import CommitGroup, IngestStats, Recorder
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.turns import Turns
from terrazzo.ports.store import Record
from terrazzo_broker.hooks import Inbound

NEVER_S = float("inf")
BODIES = {
    "plain": b'{"a":1}',
    "empty object": b"{}",
    "its own time": b'{"a":1,"Time":1780000000}',
    "a time of null": b'{"a":1,"Time":null}',
    "a clock that was never set": b'{"a":1,"Time":100}',
    "a clock ahead": b'{"a":1,"Time":"2100-01-01T00:00:00Z"}',
    "a time that is none": b'{"a":1,"Time":true}',
    "nested": b'{"a":{"b":1}}',
    "a brace in a text": b'{"a":"{"}',
    "white space first": b' {"a":1}',
    "MessagePack": b"\x81\xa1a\x03",
    "nothing": b"",
    "broken": b"{oops",
    "an array": b"[1]",
    "a number too large": b'{"a":99999999999999999999999}',
    "not UTF-8": b'{"a":"\xff"}',
    "long": b'{"a":"%s"}' % (b"x" * 500),
}


class Mapper:
    """A mapper that makes a record of each message, except of those whose point ``a`` is 7."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.planned = True

    def plans(self, uid):
        self.seen.append(("plans", uid))
        return ("plan",) if self.planned else None

    def rows_of(self, plans):
        return 1

    def begin(self, reports):
        self.seen.append(("begin", len(reports)))

    def shape(self, plans, points, time_us, uid, mosaic):
        if points.get("a") == 7:
            raise ValueError("seven")
        mosaic.append(Record("m/1", time_us, b"%d" % len(points)))
        self.seen.append(("shape", dict(points), time_us, uid))

    def keep_up(self, plans, count):
        self.seen.append(("keep up", count))


def one(body: bytes, correlation: bytes | None = None) -> Arrival:
    on = tag()
    on.trace.series = KnownSeries({on.series})
    return Arrival(Batch(Inbound(on, body, correlation)), len(body))  # type: ignore[arg-type]


def outcome(body: bytes, *, mapped: bool, is_short: bool, correlation: bytes | None = None) -> Any:
    """All that a recorder leaves behind of one message."""
    stats, mapper = IngestStats(), Mapper()
    limits = PointLimits(name_chars=100, text_chars=100)
    recorder = Recorder(stats, clock_ahead_s=300, mapper=mapper if mapped else None, limits=limits)  # type: ignore[arg-type]
    group, message = CommitGroup(), one(body, correlation)
    went = is_short and recorder.record_plain(message, group)
    if not went:
        assert not group.records
        assert not group.spans
        assert recorder.record(message, group, NEVER_S)
    group.measure()
    spans = [(span.start, span.first) for span in group.spans]
    left = (group.records, group.mosaic, spans, group.messages, group.size, group.made, message.refusals, message.next)
    seen = [each for each in mapper.seen if each[0] not in ("plans", "begin")]
    counted = (stats.rejects, stats.clock_unset, stats.shaping_failures)
    return went, (*left, counted, seen, message.batch.messages[0].tag.trace.last_telemetry_us)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
def test_the_short_way_leads_where_the_long_one_does(body: bytes, mapped: bool):
    assert outcome(body, mapped=mapped, is_short=True)[1] == outcome(body, mapped=mapped, is_short=False)[1]


def test_the_short_way_is_taken_by_what_is_plain_and_by_nothing_else():
    names = ("plain", "empty object", "its own time", "a time of null")
    for name, body in BODIES.items():
        assert outcome(body, mapped=True, is_short=True)[0] is (name in names), name
    assert outcome(BODIES["nested"], mapped=False, is_short=True)[0], "nobody asks what is in it"
    assert not outcome(BODIES["plain"], mapped=True, is_short=True, correlation=b"c")[0]
    assert outcome(b'{"a":7}', mapped=True, is_short=True) == (
        True,
        outcome(b'{"a":7}', mapped=True, is_short=False)[1],
    )


def test_a_series_that_is_not_known_and_plans_that_are_not_made_go_the_long_way():
    mapper = Mapper()
    recorder, group = Recorder(IngestStats(), clock_ahead_s=300, mapper=mapper), CommitGroup()  # type: ignore[arg-type]
    unknown = one(b"{}")
    unknown.batch.messages[0].tag.trace.series = KnownSeries()
    assert not recorder.record_plain(unknown, group)
    mapper.planned = False
    assert not recorder.record_plain(one(b"{}"), group)
    assert group == CommitGroup()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 99_000)), max_size=60),
    st.integers(1, 8),
    st.data(),
)
def test_within_a_connection_the_order_holds_whatever_is_fresh(given_, most_fresh: int, data):
    turns = Turns(lambda uid: "shared" if uid == "t0" else None)
    clients = {number: client(str(number % 3)) for number in range(10)}
    sent: dict[int, list[Arrival]] = {number: [] for number in clients}
    coming, seen, held = list(enumerate(given_)), [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("terrazzo.ingest.turns._MOST_FRESH", most_fresh)
        while coming or turns:
            step = data.draw(st.sampled_from(["add", "fresh", "finish", "hold", "end", "release"]))
            if step == "add" and coming:
                number, (kind, who, size) = coming.pop(0)
                each = arrival(clients[who], f"t{kind}", number, size=size)
                sent[who].append(each)
                turns.add(each)
            elif step == "fresh":
                fresh = turns.take_fresh()
                assert len(fresh) <= most_fresh
                done = data.draw(st.integers(0, len(fresh)))
                seen += fresh[:done]
                turns.sort_in(fresh[done:])
            elif step == "release" or (lane := turns.head) is None:
                if held:
                    turns.release(held.pop())
            elif step == "hold":
                turns.hold(lane)
                held.append(lane)
            elif step == "end":
                turns.end_turn(lane)
            else:
                seen.append(lane.arrivals[0])
                turns.finish(lane)
    for number, whose in sent.items():
        assert [each for each in seen if each.batch.client is clients[number]] == whose
    assert len(seen) == len(given_)


async def test_who_comes_after_a_flood_waits_for_a_slice_of_time_and_then_has_turns():
    mapper, shelf = Costly(seconds=0.001), Shelf()
    flooder = SimpleNamespace(client_id="a", protocol=5, owner="1")
    flood = [Batch(Inbound(tag(), b'{"n":%d}' % number)) for number in range(400)]
    quiet = Batch(Inbound(tag("g/t2/r"), b'{"n":-1}'))
    quiet.client.owner = "2"
    async with running(shelf, mapper=mapper) as ingest:
        for batch in flood:
            batch.client = flooder
            ingest.take(batch)
        ingest.take(quiet)
        await settled(*flood, quiet)
    reports = [record for record in shelf.records if record.series != "m/1"]
    assert [record.body for record in reports if record.body != b'{"n":-1}'] == [b'{"n":%d}' % n for n in range(400)]
    before = next(index for index, record in enumerate(reports) if record.body == b'{"n":-1}')
    assert before < 60, "a slice, and then a turn of the other company"


async def test_what_is_fresh_fills_a_commit_no_more_than_all_else():
    shelf = Shelf()
    shelf.open.clear()
    batches = [Batch(Inbound(tag(), b'{"n":%d}' % number)) for number in range(100)]
    limits = IngestLimits(group_messages=30)
    async with running(shelf, limits=limits) as ingest:
        for batch in batches:
            batch.client = batches[0].client
            ingest.take(batch)
        shelf.open.set()
        await settled(*batches)
        assert ingest.taken.by_owner() == {}
    assert max(map(len, shelf.commits)) <= 30
    assert [record.body for record in shelf.records] == [b'{"n":%d}' % number for number in range(100)]


async def test_what_is_taken_is_counted_by_its_owner_until_it_is_stored():
    shelf = Shelf()
    shelf.open.clear()
    batches = [
        Batch(Inbound(tag(), b'{"n":1}')),
        Batch(*[Inbound(tag(), b'{"nn":1}')] * 2),
        Batch(Inbound(tag(), b"{}")),
    ]
    batches[2].client.owner = "2"
    async with running(shelf) as ingest:
        for batch in batches:
            ingest.take(batch)
        assert ingest.taken.by_owner() == {"1": (23, 3), "2": (2, 1)}
        assert ingest.taken.intake("1") == (0, 0, 3, 23)
        shelf.open.set()
        await settled(*batches)
        assert ingest.taken.by_owner() == {}
        assert ingest.taken.intake("1") == (3, 23, 0, 0)
        assert ingest.taken.intake("2") == (1, 2, 0, 0)
        assert ingest.taken.intake(None) == (4, 25, 0, 0)
        assert ingest.taken.intake("3") == (0, 0, 0, 0)
        assert "3" not in ingest.taken, "whoever asks is not remembered"


async def test_one_report_takes_the_interpreter_few_steps(monkeypatch: pytest.MonkeyPatch):
    """From ``take`` to its acknowledgement, the store not counted, where nothing waits for its turn."""
    monkeypatch.setattr("terrazzo.ingest.pipeline._SLICE_S", 60)  # counting takes a hundred times as long
    shelf, steps = Shelf(), 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal steps
        if "/terrazzo/ingest/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        steps += event == "opcode"
        return trace

    async with running(shelf) as ingest:
        tags = [tag(f"g/t1/r/{number}") for number in range(20)]
        first = [Batch(Inbound(on, b"{}")) for on in tags]
        batches = [Batch(Inbound(on, b'{"a":%d}' % number)) for number in range(10) for on in tags]
        for batch in first:
            ingest.take(batch)
        await settled(*first)
        sys.settrace(trace)
        try:
            for batch in batches:
                ingest.take(batch)
            await settled(*batches)
        finally:
            sys.settrace(None)
    assert len(shelf.records) == 220
    assert shelf.records[-1].time_us == ARRIVED_US
    assert steps / len(batches) < 400
