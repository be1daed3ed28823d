"""From batches to one commit a group: acknowledged means stored, nothing is dropped, the loop stays free."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import pytest

from support import new_tasks
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import ReportTag, make_tag
from terrazzo.ingest.sealing import Seal
from terrazzo.listeners import Listeners
from terrazzo.ports.store import Record, RecordsRefused, StoreFull, StoreUnavailable
from terrazzo_broker.hooks import Inbound
from waiting import until

TERMINAL = Terminal(id=1, uid="t1", name="t", company_id=1, type="Other", mode="pwd", username="u", pin="pin")
GOOD = b'{"a":1}'
ARRIVED_US = 1_780_000_000_000_000


class Shelf:
    """An in-memory store that can be told to wait or to fail."""

    def __init__(self) -> None:
        self.commits: list[list] = []
        self.open = asyncio.Event()
        self.open.set()
        self.asked = 0  # commits, whether they are done or wait
        self.errors: list[Exception] = []

    async def append(self, records):
        self.asked += 1
        await self.open.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.commits.append(list(records))

    @property
    def records(self) -> list:
        return [record for commit in self.commits for record in commit]


@dataclass
class Valve:
    calls: list[str] = field(default_factory=list)

    def pause_intake(self) -> None:
        self.calls.append("pause")

    def resume_intake(self) -> None:
        self.calls.append("resume")

    def kick(self, client_id: str) -> bool:
        self.calls.append(f"kick {client_id}")
        return True


class Batch:
    """What the broker hands over, noting how it was settled."""

    def __init__(self, *messages: Inbound, arrived_us: int = ARRIVED_US) -> None:
        self.client = SimpleNamespace(client_id="t1", protocol=5, owner="1")
        self.messages = messages
        self.arrived_us = arrived_us
        self.held = 0
        self.settled = asyncio.Event()
        self.refusals: dict[int, int] = {}

    def hold(self) -> None:
        self.held += 1

    def release(self) -> None:
        self.held -= 1

    def settle(self, refusals=None) -> None:
        assert not self.settled.is_set(), "settled twice"
        self.refusals = dict(refusals or {})
        self.settled.set()


def tag(topic: str = "g/t1/r", seal: Seal | None = None) -> ReportTag:
    return make_tag(ReportTopic(topic, TERMINAL, topic.split("/")[2]), trace=Trace(), seal=seal)


def batch_of(*payloads: bytes, on: ReportTag | None = None) -> Batch:
    on = on or tag()
    return Batch(*(Inbound(on, payload) for payload in payloads))


@asynccontextmanager
async def running(shelf: Shelf, valve: Valve | None = None, **options):
    ingest = IngestPipeline(shelf, valve or Valve(), tasks=new_tasks(), **options)
    ingest.start()
    try:
        yield ingest
    finally:
        shelf.open.set()
        await ingest.stop()


async def settled(*batches: Batch) -> None:
    async with asyncio.timeout(10):
        for batch in batches:
            await batch.settled.wait()


async def test_a_batch_becomes_records_and_is_settled():
    shelf, batch = Shelf(), batch_of(b'{"a":1}', b' {"a":2,"Time":1780000000}', b"\x81\xa1a\x03")
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
    assert shelf.records == [
        Record("g/t1/r", ARRIVED_US, b'{"a":1}'),
        Record("g/t1/r", 1_780_000_000_000_000, b'{"a":2,"Time":1780000000}'),
        Record("g/t1/r", ARRIVED_US, b"\x81\xa1a\x03"),
    ]
    assert batch.refusals == {}
    assert ingest.stats.messages == 3
    assert ingest.stats.backlog == ingest.stats.backlog_bytes == 0


async def test_rejects_are_kept_with_their_bytes_and_reason_and_stop_nobody():
    shelf, batch = Shelf(), batch_of(GOOD, b"{oops", GOOD, b"\xff\x00", b'{"Time":"2100-01-01T00:00:00Z"}', GOOD)
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
    assert batch.refusals == {1: 0x99, 3: 0x99, 4: 0x99}
    assert [record.series for record in shelf.records] == ["g/t1/r", "x/t1", "g/t1/r", "x/t1", "x/t1", "g/t1/r"]
    reject = msgspec.msgpack.decode(shelf.records[3].body)
    assert reject == {
        "topic": "g/t1/r",
        "reason": "neither JSON nor a MessagePack map: first byte 0xff",
        "payload": b"\xff\x00",
        "told": {"code": "payload_unknown_format", "parameters": {"byte": "ff"}},
    }
    assert shelf.records[3].time_us == ARRIVED_US
    assert ingest.stats.rejects == {
        "malformed": 2,
        "shape": 0,
        "time": 0,
        "clock_ahead": 1,
        "sealed": 0,
        "decoder": 0,
        "series": 0,
        "front": 0,
    }


async def test_a_clock_that_was_never_set_is_counted():
    shelf, batch = Shelf(), batch_of(b'{"a":1,"Time":"1970-01-01T00:00:09Z"}')
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
    assert shelf.records[0].time_us == ARRIVED_US
    assert ingest.stats.clock_unset == 1


async def test_sealed_payloads_are_stored_open_and_plain_ones_refused():
    seal = Seal(TERMINAL)
    shelf, batch = Shelf(), batch_of(seal.seal(GOOD), GOOD, on=tag(seal=seal))
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
    assert shelf.records[0].body == GOOD
    assert batch.refusals == {1: 0x99}
    assert ingest.stats.rejects["sealed"] == 1


async def test_nothing_is_settled_before_it_is_stored():
    shelf, batch = Shelf(), batch_of(GOOD)
    shelf.open.clear()
    async with running(shelf) as ingest:
        ingest.take(batch)
        await until(lambda: shelf.asked)
        assert not batch.settled.is_set()
        shelf.open.set()
        await settled(batch)


async def test_what_arrives_during_a_commit_shares_the_next_one():
    shelf, batches = Shelf(), [batch_of(GOOD, GOOD) for _ in range(50)]
    shelf.open.clear()
    async with running(shelf) as ingest:
        ingest.take(batches[0])
        await until(lambda: shelf.asked)
        assert ingest.stats.backlog == 2
        for batch in batches[1:]:
            ingest.take(batch)
        shelf.open.set()
        await settled(*batches)
    assert [len(commit) for commit in shelf.commits] == [2, 98]


async def test_records_keep_the_order_of_arrival():
    shelf = Shelf()
    batches = [batch_of(*(f'{{"n":{first + n}}}'.encode() for n in range(10))) for first in range(0, 5000, 10)]
    async with running(shelf, limits=IngestLimits(group_messages=70)) as ingest:
        for batch in batches:
            ingest.take(batch)
            if batch.messages[0].payload[5:6] == b"7":
                await asyncio.sleep(0)  # the intake gets a turn here and there, so that groups differ
        await settled(*batches)
    assert [json.loads(record.body)["n"] for record in shelf.records] == list(range(5000))
    assert max(len(commit) for commit in shelf.commits) <= 79


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreFull("disk full"), ValueError("a bug")])
async def test_a_failing_store_loses_nothing_and_pauses_reading(error):
    shelf, valve, batch = Shelf(), Valve(), batch_of(GOOD)
    shelf.errors = [error, error]
    async with running(shelf, valve) as ingest:
        ingest.take(batch)
        await until(lambda: ingest.stats.store_failures == 1)
        assert valve.calls == ["pause"]
        assert not batch.settled.is_set()
        assert not ingest.is_healthy
        await settled(batch)
        await until(lambda: ingest.is_healthy)
    assert valve.calls == ["pause", "resume"]
    assert shelf.records == [Record("g/t1/r", ARRIVED_US, GOOD)]


class Choosy(Shelf):
    """Takes nothing from before 2010, as a server with a retention does; nor rejects, if told so."""

    takes_rejects = True

    async def append(self, records):
        refused = [
            record
            for record in records
            if record.time_us < 1_262_304_000_000_000 or (record.series == "x/t1" and not self.takes_rejects)
        ]
        await super().append([record for record in records if record not in refused])
        if refused:
            raise RecordsRefused(refused, "older than the retention")


@pytest.mark.parametrize("takes_rejects", [True, False])
async def test_what_the_store_never_takes_is_kept_as_a_reject_and_not_acknowledged(takes_rejects):
    shelf, old = Choosy(), b'{"Time":"2009-01-01T00:00:00Z"}'
    shelf.takes_rejects = takes_rejects
    first, second = batch_of(GOOD, old, b"{oops", old), batch_of(*[GOOD] * 300, old)
    heard: list = []
    async with running(shelf) as ingest:
        ingest.records.listen(heard.extend)
        ingest.take(first)
        ingest.take(second)
        await settled(first, second)
        assert ingest.is_healthy
    assert old not in [record.body for record in heard]
    assert len(heard) == 305
    assert first.refusals == {1: 0x83, 2: 0x99, 3: 0x83}
    assert second.refusals == {300: 0x83}
    assert [record.body for record in shelf.records if record.series == "g/t1/r"] == [GOOD] * 301
    kept = [msgspec.msgpack.decode(record.body) for record in shelf.records if record.series == "x/t1"]
    expected = [b"{oops", old, old, old] if takes_rejects else []
    assert [reject["payload"] for reject in kept] == expected
    assert all(reject["reason"] == "older than the retention" for reject in kept[1:])


@pytest.mark.parametrize("limits", [IngestLimits(messages=100), IngestLimits(bytes=700)])
async def test_reading_pauses_at_the_high_water_mark_and_resumes_at_half(limits):
    shelf, valve, batches = Shelf(), Valve(), [batch_of(*[GOOD] * 10) for _ in range(10)]
    shelf.open.clear()
    async with running(shelf, valve, limits=limits) as ingest:
        for batch in batches[:9]:
            ingest.take(batch)
        assert valve.calls == []
        ingest.take(batches[9])
        assert valve.calls == ["pause"]
        shelf.open.set()
        await settled(*batches)
        await until(lambda: valve.calls == ["pause", "resume"])
    assert len(shelf.records) == 100


async def test_stopping_commits_what_was_taken():
    shelf, batches = Shelf(), [batch_of(*[GOOD] * 10) for _ in range(100)]
    async with running(shelf) as ingest:
        for batch in batches:
            ingest.take(batch)
        await ingest.stop()
        assert all(batch.settled.is_set() for batch in batches)
    assert len(shelf.records) == 1000


async def test_stopping_without_a_store_ends_in_time_and_acknowledges_nothing():
    shelf, batch = Shelf(), batch_of(GOOD)
    shelf.open.clear()
    async with running(shelf) as ingest:
        ingest.take(batch)
        await ingest.stop(timeout_s=0.2)
        assert not batch.settled.is_set()


@pytest.fixture
def no_collections():
    """The garbage collector walks the whole test run's heap; that is not what is measured."""
    gc.disable()
    yield
    gc.enable()


async def test_a_large_backlog_does_not_hold_the_loop(no_collections):
    shelf = Shelf()
    payload = json.dumps({f"p{n}": n / 3 for n in range(10)}).encode()
    seal = Seal(TERMINAL)
    batches = [batch_of(*[payload] * 4000) for _ in range(10)]
    batches += [batch_of(*[seal.seal(payload)] * 2000, on=tag(seal=seal)) for _ in range(2)]
    longest_s = 0.0
    async with running(shelf) as ingest:
        for batch in batches:
            ingest.take(batch)
        while not all(batch.settled.is_set() for batch in batches):
            started_s = time.thread_time()  # of this thread alone, however busy the machine is
            await asyncio.sleep(0)  # a turn of the loop: its length is what is measured
            longest_s = max(longest_s, time.thread_time() - started_s)
    assert longest_s < 0.05  # slices of 5 ms, and one answer to a whole group
    assert ingest.stats.messages == 44_000


async def test_listeners_hear_of_stored_records_and_answers_only():
    shelf, heard, answers = Shelf(), [], []
    answer = Batch(
        Inbound(tag("g/t1/n"), b'{"Result":"ok"}', b"c" * 32),
        Inbound(tag("g/t1/n"), b"{broken", b"c" * 32),
        Inbound(tag("g/t1/n"), b'{"Result":"unasked"}'),
        Inbound(tag("g/t1/n/deeper"), b'{"a":1}', b"c" * 32),
        Inbound(tag("g/t1/r"), b'{"a":1}', b"c" * 32),
    )
    shelf.open.clear()
    async with running(shelf) as ingest:
        ingest.records.listen(heard.extend)
        ingest.answers.listen(answers.append)
        ingest.take(answer)
        await until(lambda: shelf.asked)
        assert heard == answers == []
        shelf.open.set()
        await settled(answer)
        await until(lambda: answers)
    assert heard == shelf.records
    assert [(each.uid, each.correlation, each.body) for each in answers] == [("t1", b"c" * 32, b'{"Result":"ok"}')]


async def test_a_listener_that_fails_stops_nobody():
    shelf, batches = Shelf(), [batch_of(GOOD), batch_of(GOOD)]
    async with running(shelf) as ingest:
        ingest.records.listen(lambda records: records.no_such_method())
        for batch in batches:
            ingest.take(batch)
            await settled(batch)
        assert ingest.is_healthy


async def test_the_last_report_of_a_terminal_is_noted():
    shelf, on = Shelf(), tag()
    async with running(shelf) as ingest:
        batch = batch_of(GOOD, on=on)
        ingest.take(batch)
        await settled(batch)
    assert on.trace.last_telemetry_us == ARRIVED_US


class Mapper:
    """Makes nothing of messages; raises where a test says."""

    has_room, is_dirty = True, False

    def __init__(self) -> None:
        self.wanted = Listeners("wanted")
        self.faults: dict[str, int] = {}

    def _fault(self, where: str) -> None:
        if self.faults.get(where, 0) > 0:
            self.faults[where] -= 1
            raise RuntimeError(f"planted in {where}")

    def plans(self, uid):
        self._fault("plans")
        return ()

    def shape(self, plans, points, time_us, uid, mosaic) -> None: ...

    def lane(self, uid):
        return None

    def rows_of(self, plans):
        return 1

    def begin(self, reports) -> None: ...

    def keep_up(self, plans, count) -> None: ...

    def has_room_of(self, company):
        return True

    def take_records(self):
        return ()

    def seal(self):
        self._fault("seal")
        return {}

    def on_committed(self) -> None:
        self._fault("on_committed")


@pytest.mark.parametrize(("where", "times"), [("plans", 1), ("seal", 1), ("seal", 2), ("on_committed", 1)])
async def test_a_fault_on_the_way_to_the_store_loses_and_doubles_nothing(where: str, times: int):
    shelf, valve, mapper = Shelf(), Valve(), Mapper()
    mapper.faults[where] = times
    batches = [batch_of(b'{"n":%d}' % number) for number in range(20)]
    async with running(shelf, valve, mapper=mapper) as ingest:
        for batch in batches:
            ingest.take(batch)
            await asyncio.sleep(0)
        await settled(*batches)
        assert ingest.stats.backlog == ingest.stats.backlog_bytes == 0
    assert [json.loads(record.body)["n"] for record in shelf.records] == list(range(20))
    assert not any(call.startswith("kick") for call in valve.calls)


async def test_what_never_can_be_committed_is_withheld_and_the_others_go_on():
    shelf, valve, mapper = Shelf(), Valve(), Mapper()
    mapper.faults["seal"] = 3
    first, second = batch_of(GOOD, GOOD), batch_of(GOOD)
    async with running(shelf, valve, mapper=mapper) as ingest:
        ingest.take(first)
        await until(lambda: ingest.stats.withheld == 2, "it is given up")
        assert valve.calls == ["kick t1"], "so that the client sends it again"
        ingest.take(second)
        await settled(second)
        assert ingest.stats.backlog == ingest.stats.backlog_bytes == 0
        assert ingest.taken.intake("1") == (1, len(GOOD), 0, 0), "what was given back was not stored"
    assert not first.settled.is_set(), "acknowledged means stored"
    assert len(shelf.records) == 1


async def test_a_payload_that_breaks_the_decoder_is_kept_as_a_reject(monkeypatch: pytest.MonkeyPatch):
    def decode(body: bytes):
        if b"deep" in body:
            raise RecursionError("too deep")
        return {}

    for name in ("decode", "decode_json"):
        monkeypatch.setattr(f"terrazzo.ingest.commit_group.{name}", decode)
    shelf, batch = Shelf(), batch_of(GOOD, b'{"deep":1}', GOOD)
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
    assert batch.refusals == {1: 0x99}
    assert [record.series for record in shelf.records] == ["g/t1/r", "x/t1", "g/t1/r"]


@pytest.mark.parametrize("header", [{"alg": "\ud800"}, {"alg": "dir", "enc": "\udfff\n"}, {"crit": ["\ud800"]}])
async def test_what_cannot_be_printed_of_a_seal_stands_in_the_reason_as_escapes(header: dict[str, object]):
    protected = base64.urlsafe_b64encode(json.dumps({"enc": "A256GCM", **header}).encode()).rstrip(b"=")
    shelf, broken = Shelf(), batch_of(protected + b"..AAAA.AAAA.AAAA", GOOD, on=tag(seal=Seal(TERMINAL)))
    good = batch_of(GOOD)
    async with running(shelf) as ingest:
        ingest.take(broken)
        ingest.take(good)
        await settled(broken, good)
        assert ingest.stats.withheld == 0
    assert broken.refusals == {0: 0x99, 1: 0x99}
    found = sorted(record.series for record in shelf.records)  # connections take turns, however long a seal takes
    assert found == ["g/t1/r", "x/t1", "x/t1"]
    reason = msgspec.msgpack.decode(shelf.records[0].body)["reason"]
    assert reason.isprintable()
    assert reason.isascii()


async def test_a_batch_that_cannot_be_decoded_is_withheld_and_the_others_go_on():
    shelf, valve, broken, good = Shelf(), Valve(), batch_of(GOOD), batch_of(GOOD)
    broken.arrived_us = None
    async with running(shelf, valve) as ingest:
        ingest.take(broken)
        ingest.take(good)
        await settled(good)
        await until(lambda: ingest.stats.withheld == 1)
        assert valve.calls == ["kick t1"]
        assert ingest.is_healthy
        assert ingest.stats.backlog == ingest.stats.backlog_bytes == 0
    assert not broken.settled.is_set()


async def test_one_that_cannot_be_answered_does_not_keep_it_from_the_others():
    shelf, batches = Shelf(), [batch_of(GOOD), batch_of(GOOD)]
    batches[0].settle = None  # not callable
    async with running(shelf) as ingest:
        for batch in batches:
            ingest.take(batch)
        await settled(batches[1])
        await until(lambda: ingest.stats.backlog == 0)
    assert len(shelf.records) == 2


async def test_a_name_that_grows_in_objects_is_a_reject_whether_it_is_mapped_or_not():
    shelf = Shelf()
    long = json.dumps({"n" * 2_000: {str(n): 0 for n in range(100)}}).encode()
    batch = batch_of(GOOD, long, GOOD)
    async with running(shelf) as ingest:
        ingest.take(batch)
        await settled(batch)
        assert ingest.stats.rejects["shape"] == 1
    assert batch.refusals == {1: 0x99}
    reject = msgspec.msgpack.decode(shelf.records[1].body)
    assert reject["payload"] == long
    assert "a point's name is longer than 1024 characters" in reject["reason"]
