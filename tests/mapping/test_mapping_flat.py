"""However many objects there are, a message takes the interpreter the same steps: nothing is looked through.

Steps are counted, not timed: those of decoding, shaping, sealing and encoding what a commit writes.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_group import CommitGroup, IngestStats, Recorder
from terrazzo.ingest.report_tag import make_tag
from terrazzo.mapping.catalogue import ObjectSpec, RetainerSpec
from terrazzo.mapping.engine import MappingEngine
from terrazzo_adapters.rocksdb.batch import SeriesCatalogue, encode_batch
from terrazzo_broker.hooks import Inbound

ROWS: list[Any] = [
    ["T", "", "", "STA", "$AdapterID-1.t", "x * 0.1"],
    ["RUN", "", "", "STA", "$AdapterID-1.run", ""],
    ["D", "", "", "FUNC", "", "T - 20"],
    ["AVG", "", "", "STT", "Changed", "600", "", {"fn": "avg", "of": "T"}],
    ["HOT", "Too hot", "热", "EVNT", "$AdapterID-1.t", "", "x > 900"],
]
NOW_US = 1_700_000_000_000_000
REPORTING = 10  # terminals
MESSAGES = 20  # of each, in a group


class Plant:
    """Objects with a terminal each, of which the same few report; what a commit of theirs takes."""

    def __init__(self, objects: int, rows: list[Any]) -> None:
        self.engine = MappingEngine()
        self.engine.catalogue.put_mapping(1, rows)
        for number in range(objects):
            spec = ObjectSpec(id=number + 1, company_id=1, mapping_id=1, terminals=(f"t{number}",))
            self.engine.catalogue.put_object(spec)
        everybody = tuple(range(1, objects + 1))
        script = (("RUN", "Stopped", "停", "0", "1"),)
        self.engine.catalogue.put_retainer(
            RetainerSpec(id=1, uid="r", objects=everybody, script=script, is_active=True)
        )
        for number in range(objects):
            assert len(self.engine.catalogue.plans(f"t{number}")) == 1
        self.store = SeriesCatalogue(
            {f"g/t{number}/r": number + 1 for number in range(objects)}, objects + 1, 0, {}, set(), {}
        )
        self.tags = [
            make_tag(_topic(number), trace=Trace(), seal=None) for number in range(0, objects, objects // REPORTING)
        ]
        self.recorder = Recorder(IngestStats(), clock_ahead_s=60, mapper=self.engine_as_shaper())
        self.now_us = NOW_US

    def engine_as_shaper(self) -> Any:
        engine = self.engine
        return SimpleNamespace(
            plans=engine.catalogue.plans,
            shape=engine.shape,
            begin=engine.begin,
            rows_of=engine.rows_of,
            keep_up=engine.keep_up,
        )

    def commit(self, value: int) -> int:
        """A group of reports, as far as what is written; the steps that it took."""
        arrivals = [Arrival(_batch(tag, value, self.now_us), 0) for tag in self.tags]
        self.now_us += 1_000_000
        group = CommitGroup()

        def work() -> None:
            for arrival in arrivals:
                assert self.recorder.record(arrival, group, float("inf"))
            self.engine.seal()
            self.store.accept(encode_batch(group.all_records(), self.store, lambda slot: 0), 0.0)

        steps = steps_of(work)
        assert len(group.mosaic) == REPORTING * MESSAGES
        return steps


def _topic(number: int) -> ReportTopic:
    terminal = Terminal(
        id=number, uid=f"t{number}", name="", company_id=1, type="Other", mode="pwd", username="u", pin="p"
    )
    return ReportTopic(f"g/t{number}/r", terminal, "r")


def _batch(tag: Any, value: int, now_us: int) -> Any:
    bodies = [json.dumps({"t": value + number, "run": number % 2}).encode() for number in range(MESSAGES)]
    return SimpleNamespace(messages=[Inbound(tag, body) for body in bodies], arrived_us=now_us)


def steps_of(work: Callable[[], None]) -> int:
    """How many instructions of the interpreter a call executes."""
    count = 0

    def step(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "opcode"
        return step

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    gc.disable()  # what others do at a collection would count too
    sys.settrace(enter)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.parametrize("value", [0, 890])
def test_a_message_takes_the_same_steps_among_many_objects(value: int) -> None:
    few, many = Plant(REPORTING, ROWS), Plant(500 * REPORTING, ROWS)
    for plant in (few, many):
        plant.commit(100)  # series, windows and states are made
    steps = few.commit(value)
    assert steps == many.commit(value)
    assert steps > 100 * REPORTING * MESSAGES, "it counts"


def test_it_counts_what_grows() -> None:
    assert steps_of(lambda: sum(1 for _ in range(1_000))) > 5 * steps_of(lambda: sum(1 for _ in range(100)))  # type: ignore[arg-type]
