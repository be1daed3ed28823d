"""A company whose bytes make commits long rests between them while others report; nobody's order changes."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from test_ingest_intake import ARRIVED_US, Batch, Shelf, running, settled, tag
from test_ingest_turns import Costly

from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.backlog import Backlog, Share
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.disk_turns import DiskTurns
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.rooms import Rooms
from terrazzo.ingest.turns import Turns
from terrazzo.ports.store import Record
from terrazzo_broker.hooks import Inbound


def share(owner: str, *, stored_s: float = float("-inf"), messages: int = 0) -> Share:
    made = Share(owner)
    made.stored_s, made.taken = stored_s, messages
    return made


def test_who_made_a_commit_long_rests_as_long_and_nobody_else():
    turns, large, small = DiskTurns(), share("a", messages=5), share("b", stored_s=99.5)
    turns.note({large: 900_000, small: 100}, 0.1, [large, small], 100.0)
    assert turns.is_resting("a")
    assert not turns.is_resting("b")
    assert turns.next_s is not None
    assert 100.09 < turns.next_s <= 100.1
    turns.end(100.05)
    assert turns.is_resting("a")
    turns.begin({small: 100}, 0.001, [large, small], 100.06)
    turns.note({small: 100}, 0.001, [large, small], 100.07)
    assert turns.is_resting("a"), "others' commits change nothing about it"
    turns.end(100.11)
    assert not turns.is_resting("a")
    assert turns.next_s is None
    assert turns.rests == 1


def test_what_is_under_way_is_not_followed_by_more_of_it():
    turns, large, small = DiskTurns(), share("a", messages=5), share("b", messages=1)
    turns.begin({large: 900_000}, 0.1, [large, small], 100.0)
    assert turns.is_resting("a")
    turns.note({large: 900_000}, 0.01, [large, small], 100.01)
    assert not turns.is_resting("a"), "it was quick"
    turns.begin({large: 900_000}, 0.1, [large, small], 101.0)
    turns.end(101.7)
    assert not turns.is_resting("a"), "nothing was heard of it"
    assert turns.rests == 0


def test_a_rest_does_not_end_while_a_commit_with_bytes_of_before_it_is_under_way():
    turns, large, small = DiskTurns(), share("a", messages=5), share("b", messages=1)
    turns.note({large: 900_000}, 0.1, [large, small], 100.0)
    turns.begin({large: 900_000, small: 100}, 0.02, [large, small], 100.0)  # its length is not known yet
    turns.end(100.11)
    assert turns.is_resting("a")
    assert not turns.is_resting("b")
    turns.note({large: 900_000, small: 100}, 0.1, [large, small], 100.12)
    turns.end(100.2)
    assert turns.is_resting("a")
    turns.end(100.23)
    assert not turns.is_resting("a")


def test_nobody_rests_for_a_short_commit_or_where_nobody_else_reports():
    turns, large, small, former = DiskTurns(), share("a"), share("b", messages=1), share("c", stored_s=98.0)
    turns.note({large: 900_000}, 0.02, [large, small], 100.0)
    turns.note({large: 900_000}, 0.2, [large, former], 100.0)
    turns.note({}, 0.2, [large, small], 100.0)
    assert turns.next_s is None
    assert turns.rests == 0


def test_rests_are_bounded_and_shared_by_bytes():
    turns, first, second = DiskTurns(), share("a", messages=1), share("b", messages=1)
    turns.note({first: 3, second: 1}, 0.2, [first, second], 0.0)
    assert turns.is_resting("a")
    turns.end(0.06)
    assert not turns.is_resting("b"), "a quarter of it"
    turns.note({first: 1}, 60.0, [first, second], 10.0)
    turns.end(10.6)
    assert not turns.is_resting("a"), "a disk that stood still is not paid for"


async def test_who_waits_for_a_commit_that_was_quicker_than_expected_goes_on_at_its_end():
    pending, woken = Turns(), []
    rooms, taken = Rooms(pending, None, lambda: woken.append(True)), Backlog()
    batches = []
    for owner in ("1", "2"):
        batches.append(Batch(Inbound(tag(), b"{}")))
        batches[-1].client.owner = owner
        taken[owner].taken += 1
    group = CommitGroup(arrivals=[Arrival(batches[0], 900_000, taken["1"])])
    rooms.on_commit(group, 0.1, taken)
    pending.add(Arrival(batches[0], 2, taken["1"]))
    lane = pending.head
    assert lane is not None
    assert not rooms.has_room_of(lane.owner)
    rooms.have_wait(lane)
    assert pending.head is None
    rooms.on_committed(group, 0.001, taken)
    assert pending.head is lane, "nobody else would ever let it go on"
    assert woken


class SlowShelf(Shelf):
    """Takes a tenth of a second for large commits, as a disk does."""

    async def append(self, records):
        if sum(len(record.body) for record in records) > 100_000:
            await asyncio.sleep(0.1)
        await super().append(records)


async def test_others_have_commits_without_the_bytes_of_a_company_whose_are_many():
    shelf, order = SlowShelf(), b'{"n":%d,"x":"' + b"x" * 200_000 + b'"}'
    async with running(shelf, limits=IngestLimits(group_bytes=256 * 1024)) as ingest:
        large = given = [Batch(Inbound(tag(), order % number)) for number in range(7)]
        while not large[-1].settled.is_set():
            small = Batch(Inbound(tag("g/t2/r"), b'{"n":1}'))
            small.client.owner = "2"
            ingest.take(small)
            await settled(small)
            waiting, given = given, []
            for batch in waiting:
                ingest.take(batch)
        assert ingest.stats.disk_rests > 0
        assert all(batch.held == 0 for batch in large)
    whose = [{record.series for record in commit} for commit in shelf.commits]
    first = next(number for number, names in enumerate(whose) if "g/t1/r" in names)
    later = whose[first + 1 :]  # the first large commit shows how long they are; one more is made up meanwhile
    assert not any("g/t1/r" in one and "g/t1/r" in other for one, other in pairwise(later))
    numbers = [each.body[:6] for each in shelf.records if each.series == "g/t1/r"]
    assert numbers == [b'{"n":%d' % number for number in range(7)], "its own order holds"


async def test_a_company_alone_never_rests():
    shelf = SlowShelf()
    async with running(shelf) as ingest:
        for number in range(3):
            batch = Batch(Inbound(tag(), b'{"n":%d,"x":"' % number + b"x" * 200_000 + b'"}'))
            ingest.take(batch)
            await settled(batch)
        assert ingest.stats.disk_rests == 0


async def test_what_rests_is_stored_at_the_end():
    shelf = SlowShelf()
    async with running(shelf) as ingest:
        large = [Batch(Inbound(tag(), b'{"x":"' + b"x" * 200_000 + b'"}')) for _ in range(8)]
        small = Batch(Inbound(tag("g/t2/r"), b'{"n":1}'))
        small.client.owner = "2"
        for batch in (small, *large):
            ingest.take(batch)
        await settled(small)
    assert all(batch.settled.is_set() for batch in large)


async def test_one_message_that_becomes_much_fills_a_commit_and_others_come_next():
    limits = IngestLimits(group_bytes=256 * 1024)
    shelf, mapper = Shelf(), Costly(size=400_000)
    large = Batch(*[Inbound(tag(), b'{"a":1}')] * 5)
    small = Batch(Inbound(tag("g/t2/r"), b'{"n":1}'))
    small.client.owner = "2"
    async with running(shelf, mapper=mapper, limits=limits) as ingest:
        ingest.take(large)
        ingest.take(small)
        await settled(large, small)
    made = [sum(record.series == "m/1" for record in commit) for commit in shelf.commits]
    assert max(made) == 1, "five of them would be two megabytes"
    of_small = Record("g/t2/r", ARRIVED_US, b'{"n":1}')
    where = next(number for number, commit in enumerate(shelf.commits) if of_small in commit)
    assert where <= 1, "what is left of the arrival has no turn before it"
