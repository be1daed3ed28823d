"""What a front tells the leader waits while the log takes nothing: it is bounded, and costs no more for being much."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from terrazzo.domain.report_topic import Trace
from terrazzo.embedded.front_log import FrontLog, FrontLogStats
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_group import CommitGroup, reject_record
from terrazzo.ingest.record_span import RecordSpan
from terrazzo.ingest.report_tag import ReportTag
from terrazzo.ports.store import Record
from terrazzo.replication.front_events import Connected, Disconnected, Fate, FrontEvent, RollBegins, RollEnds
from terrazzo.replication.in_frame import decode_in_frame
from terrazzo_broker.hooks import Client, Inbound

MANY = 20_000  # events; from then on all terminals are named instead


class Log:
    """Takes frames."""

    most_bytes = 1 << 20

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def publish(self, body: bytes, *, message_id: str, last: int | None) -> int:
        self.bodies.append(body)
        return len(self.bodies)

    def events(self) -> list[FrontEvent]:
        found = [event for body in self.bodies for event in decode_in_frame(body).frame.events]
        self.bodies.clear()
        return found


def front_log(log: Any) -> FrontLog:
    return FrontLog(log, node="f", epoch=1, stats=FrontLogStats(), is_held=lambda: True)


def tag_of(channel: str) -> ReportTag:
    """The tag of a terminal's topic."""
    names = {"topic": f"g/t/{channel}", "series": f"g/t/{channel}", "rejects": "x/t"}
    return ReportTag(uid="t", channel=channel, answers=False, trace=Trace(), **names)


def group_of(messages: Sequence[Inbound], records: Sequence[Record]) -> CommitGroup:
    """One batch that was decoded into these records."""
    client = Client("t", None, 5, "", 0, "tcp", 7, 0, owner="1")
    batch = SimpleNamespace(client=client, messages=messages, arrived_us=9)
    arrival = Arrival(cast(Any, batch), 0)
    return CommitGroup(records=list(records), spans=[RecordSpan(0, arrival, 0)], messages=len(messages))


async def test_what_a_group_has_is_in_its_frame_whatever_its_reports_are() -> None:
    log, r, n = Log(), tag_of("r"), tag_of("n")
    kept = [Inbound(r, b"1"), Inbound(r, b"2")]
    others = {
        "another topic": Inbound(n, b"3"),
        "with Correlation Data": Inbound(r, b"4", b"c"),
        "refused": Inbound(r, b"5"),
    }
    for what, other in others.items():
        record = Record(other.tag.series, 9, other.payload)
        if what == "refused":
            record = reject_record(other, "no object", 9)
        records = [Record("g/t/r", 9, b"1"), Record("g/t/r", 9, b"2"), record]
        await front_log(log).keep(group_of([*kept, other], records))
        (frame,) = [decode_in_frame(body).frame for body in log.bodies]
        (batch,) = frame.batches
        assert batch.payloads == [b"1", b"2", other.payload], what
        assert [frame.topics[place].topic for place in batch.topics] == ["g/t/r", "g/t/r", other.tag.topic], what
        assert batch.correlations == ({2: b"c"} if other.correlation_data else {}), what
        assert batch.rejects == ({2: "no object"} if what == "refused" else {}), what
        log.bodies.clear()


def connected(uid: str) -> Connected:
    return Connected(uid, 1, 1, "10.0.0.7", 4711, 5, "tcp", uid, 60)


async def test_while_much_waits_each_event_costs_the_same() -> None:
    log = Log()
    front = front_log(log)
    front.call_roll = lambda: [connected("t1")]
    fates = [Fate(f"t{number}", b"c", "delivered") for number in range(MANY)]
    for fate in fates:
        front.tell(fate)
    began_s = time.process_time()
    for number in range(MANY):
        front.tell(connected(f"t{number}"))
        front.tell(Disconnected(f"t{number}", 1, "it went", 1, 0))
    assert time.process_time() - began_s < 1.0
    await front.flush()
    assert log.events() == [*fates, RollBegins(), connected("t1"), RollEnds()]


async def test_beyond_the_bound_fates_stay_and_all_terminals_are_named() -> None:
    log = Log()
    front = front_log(log)
    front.call_roll = lambda: [connected("t2")]
    fate, late = Fate("t1", b"c", "lost"), Fate("t1", b"d", "lost")
    front.tell(fate)
    for _ in range(MANY + 10):
        front.tell(connected("t1"))
    front.tell(late)
    await front.flush()
    assert log.events() == [fate, late, RollBegins(), connected("t2"), RollEnds()]
    front.tell(connected("t3"))
    await front.flush()
    assert log.events() == [connected("t3")], "from then on each is told again"
