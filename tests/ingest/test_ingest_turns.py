"""Companies and connections take turns in the ingest; within a connection, and within an object, the order holds."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe
from joserfc.jwk import RSAKey
from test_ingest_intake import ARRIVED_US, Batch, Shelf, running, settled, tag

from terrazzo.domain.payload import Reject
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.commit_pace import CommitPace
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.report_tag import ReportTag, Seals, make_tag
from terrazzo.ingest.sealing import Seal
from terrazzo.ingest.turns import Turns
from terrazzo.listeners import Listeners
from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec
from terrazzo.mapping.engine import MappingEngine
from terrazzo.metadata.definitions.registry import check_rsa_key
from terrazzo.ports.store import Record
from terrazzo_broker.hooks import Inbound
from waiting import until


def arrival(client: SimpleNamespace, uid: str = "t", number: int = 0, *, size: int = 100) -> Arrival:
    messages = (Inbound(SimpleNamespace(uid=uid, number=number), b""),)
    return Arrival(SimpleNamespace(client=client, messages=messages, arrived_us=0), size)  # type: ignore[arg-type]


def client(owner: str) -> SimpleNamespace:
    return SimpleNamespace(owner=owner)


def taken(turns: Turns) -> list[Arrival]:
    found = []
    while (lane := turns.head) is not None:
        found.append(lane.arrivals[0])
        turns.finish(lane)
    return found


def test_a_company_with_many_connections_has_no_more_than_its_turn():
    turns = Turns()
    flood = [arrival(client("a"), size=10_000) for _ in range(1_000)]
    for each in flood:
        turns.add(each)
    other = arrival(client("b"))
    turns.add(other)
    order = taken(turns)
    assert order.index(other) <= 4, "after one turn of the other company"
    assert len(order) == 1_001
    assert not turns


def test_a_connection_that_sends_much_is_one_of_its_company():
    turns, flooder = Turns(), client("a")
    for number in range(500):
        turns.add(arrival(flooder, number=number))
    quiet = arrival(client("a"))
    turns.add(quiet)
    assert taken(turns).index(quiet) <= 2


def test_who_took_a_slice_of_time_waits_for_the_others():
    turns = Turns()
    slow, quick = arrival(client("a")), arrival(client("b"))
    turns.add(slow)
    turns.add(quick)
    lane = turns.head
    assert lane is not None
    assert lane.arrivals[0] is slow
    turns.end_turn(lane)
    assert taken(turns) == [quick, slow]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 200_000)), max_size=60), st.data())
def test_within_a_connection_the_order_holds_whatever_waits(given_, data):
    turns = Turns(lambda uid: "shared" if uid == "t0" else None)
    clients = {number: client(str(number % 3)) for number in range(10)}
    sent: dict[int, list[Arrival]] = {number: [] for number in clients}
    for number, (kind, who, size) in enumerate(given_):
        each = arrival(clients[who], f"t{kind}", number, size=size)
        sent[who].append(each)
        turns.add(each)
    seen, held = [], []
    while turns:
        lane = turns.head
        step = data.draw(st.sampled_from(["finish", "hold", "end", "release"]))
        if lane is None or (step == "release" and held):
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
    assert turns.head is None
    assert not turns._ready
    assert all(not each.waiting for each in turns._connections.values())
    assert all(not each.lanes for each in turns._companies.values())


@pytest.mark.parametrize("shares", [False, True])
def test_what_is_kept_of_idle_connections_has_a_bound(monkeypatch: pytest.MonkeyPatch, shares: bool):
    monkeypatch.setattr("terrazzo.ingest.turns._MOST_IDLE", 100)
    turns = Turns((lambda uid: uid) if shares else None)
    waiting = [arrival(client(str(number % 7)), f"w{number}") for number in range(60)]
    for each in waiting[:-1]:
        turns.add(each)
        turns.end_turn(turns.head or pytest.fail("nothing waits"))
    passing = [arrival(client(str(number)), f"p{number}") for number in range(1_000)]
    seen = []
    for each in passing:  # one after the other: each has been decoded when the next comes
        turns.add(each)
        while each not in seen:
            assert turns.head is not None
            seen.append(turns.head.arrivals[0])
            turns.finish(turns.head)
    turns.add(waiting[-1])
    seen += taken(turns)
    assert sorted(map(id, seen)) == sorted(map(id, [*waiting, *passing])), "nothing that waits is forgotten"
    assert len(turns._connections) + len(turns._shared) <= 250
    assert len(turns._companies) <= 250


def test_a_connection_that_has_changed_hands_has_the_turns_of_its_company():
    turns, moving = Turns(), client("a")
    turns.add(arrival(moving))
    taken(turns)
    moving.owner = "b"
    turns.add(arrival(moving))
    assert turns.head is not None
    assert turns.head.owner == "b"


def test_terminals_of_the_same_objects_share_a_lane():
    catalogue = MappingCatalogue()
    for number, terminals in ((5, ("a", "b")), (4, ("b", "c")), (9, ("d",)), (7, ("e", "f"))):
        catalogue.put_object(ObjectSpec(id=number, company_id=1, mapping_id=1, terminals=terminals))
    assert [catalogue.lane(uid) for uid in "abcdefg"] == [4, 4, 4, None, 7, 7, None]
    catalogue.drop_object(4)
    assert [catalogue.lane(uid) for uid in "abcd"] == [5, 5, None, None]


def pem(bits: int) -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=bits)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(scope="module")
def long_key() -> str:
    return pem(4_096)


def sealed_terminal(text: str) -> Terminal:
    names = {"id": 1, "uid": "t1", "name": "t", "company_id": 1, "type": "Other", "mode": "pwd"}
    return Terminal(**names, username="u", pin="pin", rsa_privatekey=text, encryption=True)  # type: ignore[arg-type]


def seal_for(text: str, payload: bytes) -> bytes:
    header = {"alg": "RSA-OAEP-256", "enc": "A256GCM"}
    return jwe.encrypt_compact(header, payload, RSAKey.import_key(text), algorithms=list(header.values())).encode()


@pytest.mark.long_turns("it reads long keys and seals with them itself")
async def test_payloads_that_take_long_to_open_hold_up_nobody_else(long_key: str):
    """Their own order holds, the loop is free, and nothing more is read from whoever sent them."""
    seal = Seal(sealed_terminal(long_key))
    good = seal_for(long_key, b'{"a":1}')
    junk = good[:-40] + b"A" * 40
    on = tag(seal=seal)
    slow = Batch(*[Inbound(on, good if number % 50 == 0 else junk) for number in range(200)])
    shelf, longest_s = Shelf(), 0.0
    async with running(shelf) as ingest:
        ingest.take(slow)
        await until(lambda: slow.held)
        for number in range(20):
            plain = Batch(Inbound(tag("g/t2/r"), b'{"n":%d}' % number))
            plain.client.owner = "2"
            ingest.take(plain)
            await settled(plain)
            assert number > 2 or not slow.settled.is_set(), "it goes past what takes long"  # later: the CPU
        while not slow.settled.is_set():
            started_s = time.thread_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.thread_time() - started_s)
        assert slow.held == 0, "its connection is read again"
    assert longest_s < 0.02
    assert sorted(slow.refusals) == [number for number in range(200) if number % 50]
    of_slow = [record.series for record in shelf.records if "t2" not in record.series]
    assert of_slow == [("g/t1/r" if number % 50 == 0 else "x/t1") for number in range(200)]


@pytest.mark.long_turns("it makes a long key itself")
async def test_what_never_opens_is_slowed_down(long_key: str):
    on = tag(seal=Seal(sealed_terminal(long_key)))
    junk = seal_for(pem(2_048), b'{"a":1}')
    slow = Batch(*[Inbound(on, junk) for _ in range(6 * 64)])
    started_s = time.perf_counter()
    async with running(Shelf()) as ingest:
        ingest.take(slow)
        await settled(slow)
    assert len(slow.refusals) == 6 * 64
    assert time.perf_counter() - started_s > 0.04 + 0.08 + 0.16 + 0.32


@pytest.mark.long_turns("it reads long keys and seals with them itself")
async def test_what_waits_for_its_turn_is_committed_at_the_end(long_key: str):
    on = tag(seal=Seal(sealed_terminal(long_key)))
    good = seal_for(long_key, b'{"a":1}')
    batches = [Batch(*[Inbound(on, good)] * 3) for _ in range(3)]
    shelf = Shelf()
    async with running(shelf) as ingest:
        for batch in batches:
            ingest.take(batch)
        await ingest.stop()
    assert all(batch.settled.is_set() for batch in batches)
    assert len(shelf.records) == 9


class ToldEvents:
    """An engine as the ingest sees it; notes the events of each commit."""

    has_room, is_dirty = True, False

    def __init__(self) -> None:
        rows = [["A", "", "", "STA", "t1.a", ""], ["B", "", "", "STA", "t2.b", ""], ["S", "", "", "FUNC", "", "A + B"]]
        self.engine = MappingEngine()
        self.engine.catalogue.put_mapping(1, [*rows, ["E", "", "", "EVNT", "", "", "S > 10"]])
        self.engine.catalogue.put_object(ObjectSpec(id=1, company_id=1, mapping_id=1, terminals=("t1", "t2")))
        self.plans, self.lane = self.engine.catalogue.plans, self.engine.catalogue.lane
        self.shape, self.begin, self.keep_up = self.engine.shape, self.engine.begin, self.engine.keep_up
        self.rows_of = self.engine.rows_of
        self.take_records = self.engine.take_records
        self.wanted = Listeners("wanted")
        self.events: list[tuple[str, int]] = []

    def seal(self):
        sealed = self.engine.seal()
        self.events += [(each.terminal_id, each.time_us) for each in sealed.effects]
        return {}

    def on_committed(self) -> None: ...

    def has_room_of(self, company):
        return True


def tag_of(uid: str, seal: Seal | None = None) -> ReportTag:
    terminal = msgspec.structs.replace(sealed_terminal(""), uid=uid)
    return make_tag(ReportTopic(f"g/{uid}/r", terminal, "r"), trace=Trace(), seal=seal)


@pytest.mark.long_turns("it reads long keys and seals with them itself")
async def test_an_object_has_the_same_events_when_one_of_its_terminals_is_slowed(long_key: str):
    told = []
    for is_slow in (False, True):
        mapper = ToldEvents()
        tags = tag_of("t1", Seal(sealed_terminal(long_key)) if is_slow else None), tag_of("t2")
        clients = SimpleNamespace(client_id="t1", owner="1"), SimpleNamespace(client_id="t2", owner="1")
        batches: list[Batch] = []
        shelf = Shelf()
        async with running(shelf, mapper=mapper) as ingest:
            for number in range(24):
                which = number % 2
                body = b'{"b":%d}' % (number % 5) if which else b'{"a":%d}' % (7 * (number % 3))
                sealed = seal_for(long_key, body) if is_slow and not which else body
                batches.append(Batch(Inbound(tags[which], sealed), arrived_us=ARRIVED_US + number * 1_000))
                batches[-1].client = clients[which]
                ingest.take(batches[-1])
            await settled(*batches)
        assert not any(batch.refusals for batch in batches)
        told.append(mapper.events)
    assert told[0] == told[1]
    assert len(told[0]) > 2


def test_a_key_is_read_once_though_the_record_changes(long_key: str):
    seals = Seals()
    terminal = sealed_terminal(long_key)
    first = seals.of(terminal)
    assert first is not None
    assert first.is_slow
    assert first._open_key is None, "reading it takes long, and is done where payloads are opened"
    assert first.open(seal_for(long_key, b"x")) == b"x"
    second = seals.of(sealed_terminal(long_key))
    assert second is not None
    assert second is not first
    assert second._open_key is first._open_key is not None
    with pytest.raises(Reject, match="rsa_privatekey cannot be read"):
        Seal(sealed_terminal("no key")).open(b"a.b.c.d.e")


@pytest.mark.parametrize("bits", [1_024, 4_104])
def test_a_new_key_has_neither_too_few_bits_nor_too_many(bits: int, long_key: str):
    check_rsa_key(long_key)
    with pytest.raises(ValueError, match=f"expected a key of 2048 to 4096 bits, got {bits}"):
        check_rsa_key(pem(bits))


class Costly:
    """A mapper that takes its time for each message, and makes much of it."""

    def __init__(self, *, seconds: float = 0.0, size: int = 0) -> None:
        self.wanted = Listeners("groups to commit")
        self.has_room, self.is_dirty = True, False
        self.kept_up = 0
        self.crowded: set[str] = set()
        self._seconds = seconds
        self._record = Record("m/1", ARRIVED_US, b"x" * size)

    def plans(self, uid):
        return ("plan",) if uid == "t1" else ()

    def lane(self, uid):
        return None

    def rows_of(self, plans):
        return 1000

    def begin(self, reports):
        pass

    def shape(self, plans, points, time_us, uid, mosaic):
        until_s = time.perf_counter() + self._seconds
        while time.perf_counter() < until_s:
            pass
        mosaic.append(self._record)

    def keep_up(self, plans, count):
        self.kept_up += count

    def has_room_of(self, company):
        return company not in self.crowded

    def take_records(self):
        return ()

    def seal(self):
        return {}

    def on_committed(self):
        pass


async def test_messages_that_take_long_to_map_hold_the_loop_no_longer_than_a_slice():
    mapper, longest_s = Costly(seconds=0.003), 0.0
    slow = Batch(*[Inbound(tag(), b'{"a":1}')] * 200)
    async with running(Shelf(), mapper=mapper) as ingest:
        ingest.take(slow)
        while not slow.settled.is_set():
            began_s = time.thread_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.thread_time() - began_s)
    assert longest_s < 0.05, "200 of them take 600 ms"
    assert mapper.kept_up == 200


async def test_what_is_made_of_messages_counts_in_a_commit():
    limits = IngestLimits(group_bytes=1_000_000)
    shelf, mapper = Shelf(), Costly(seconds=0.001, size=100_000)
    large = Batch(*[Inbound(tag(), b'{"a":1}')] * 100)
    async with running(shelf, mapper=mapper, limits=limits) as ingest:
        ingest.take(large)
        await settled(large)
    sizes = [sum(len(record.body) for record in commit) for commit in shelf.commits]
    assert sum(sizes) >= 10_000_000
    assert max(sizes) < 1_000_000 + 10 * 100_000, "and a slice of time"
    assert [record for record in shelf.records if record.series != "m/1"] == [
        Record("g/t1/r", ARRIVED_US, b'{"a":1}')
    ] * 100


@given(st.lists(st.tuples(st.integers(0, 10_000_000), st.floats(0.0, 5.0)), max_size=50))
def test_a_commit_may_hold_something_and_no_more_than_the_most(commits):
    pace = CommitPace(8_000_000)
    for size, seconds in commits:
        pace.note(size, seconds)
        assert 256 * 1024 <= pace.allowed <= 8_000_000


def test_a_slow_disk_has_smaller_commits_and_a_distant_server_has_not():
    disk, server = CommitPace(8_000_000), CommitPace(8_000_000)
    assert disk.allowed == 8_000_000, "as long as nothing is known"
    for size in (1_000, 4_000_000) * 10:
        disk.note(size, 0.002 + size / 20e6)
        server.note(size, 0.080 + size / 1e9)
    assert disk.allowed == pytest.approx(0.025 * 20e6, rel=0.2)
    assert server.allowed == 8_000_000
    for _ in range(50):
        disk.note(500_000, 0.002 + 500_000 / 500e6)
    assert disk.allowed == 8_000_000, "it has become fast"


async def test_a_company_whose_events_the_database_is_behind_with_waits_and_no_other_does():
    shelf, mapper = Shelf(), Costly()
    mapper.crowded.add("1")
    crowded = [Batch(Inbound(tag(), b'{"n":%d}' % number)) for number in range(3)]
    others = [Batch(Inbound(tag("g/t2/r"), b'{"n":1}')) for _ in range(20)]
    async with running(shelf, mapper=mapper) as ingest:
        for batch in crowded:
            ingest.take(batch)
        assert all(batch.held == 1 for batch in crowded), "its connections aren't read"
        for batch in others:
            batch.client.owner = "2"
            ingest.take(batch)
            await settled(batch)
            mapper.wanted.tell()
        assert not any(batch.settled.is_set() for batch in crowded)
        mapper.crowded.clear()
        mapper.wanted.tell()
        await settled(*crowded)
        assert all(batch.held == 0 for batch in crowded)
    assert [json.loads(each.body)["n"] for each in shelf.records if each.series == "g/t1/r"] == [0, 1, 2]
