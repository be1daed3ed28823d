"""Who holds a client id when two nodes, or two connections of one, want it at the same moment."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from terrazzo.embedded.shared_logins import SharedLogins
from terrazzo.ports.stream import RecordChanged, Revision
from terrazzo.replication.front_events import Connected
from terrazzo.replication.front_lease import FRONT_PREFIX, FrontRecord, decode_front
from terrazzo.replication.holders import Holder, Holders, HolderSilent
from terrazzo.replication.lease import KEY, LeaseRecord
from terrazzo.runtime.fronts.leader import end_older


class Kept:
    """Records in memory. ``reads_wait``, ``writes_wait``: what the next ones wait for; readings have looked before."""

    def __init__(self) -> None:
        self.found: dict[str, Revision] = {}
        self.puts = 0
        self.reads_wait: list[asyncio.Event] = []
        self.writes_wait: list[asyncio.Event] = []

    async def get(self, key: str) -> Revision | None:
        found = self.found.get(key)
        if self.reads_wait:
            await self.reads_wait.pop(0).wait()
        return found

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        if self.writes_wait:
            await self.writes_wait.pop(0).wait()
        before = self.found.get(key)
        if revision != (before.revision if before else 0):
            raise RecordChanged(key)
        self.puts += 1
        self.found[key] = Revision(value, revision + 1)
        return revision + 1

    async def delete(self, key: str) -> None:
        self.found.pop(key, None)

    async def all(self) -> dict[str, bytes]:
        return {}


class Site:
    """Two fronts that answer each other, each with records of client ids of its own view: what one waits for, the other
    doesn't."""

    def __init__(self, *, lease_s: float = 3.0) -> None:
        self.now_s = 100.0
        self.fronts = Kept()
        self.views = {"f1": Kept(), "f2": Kept()}
        self.views["f2"].found = self.views["f1"].found
        self.asked: list[tuple[str, str]] = []
        self.silent: set[str] = set()
        self.holders: dict[str, Holders] = {}
        for node, view in self.views.items():
            self.fronts.found[FRONT_PREFIX + node] = Revision(msgspec.json.encode(FrontRecord(node, "r", 1)), 1)
            self.holders[node] = Holders(
                view, self.fronts, self.end, own=Holder(node, 1), lease_s=lease_s, clock=lambda: self.now_s
            )

    async def end(self, node: str, uid: str, timeout_s: float = 1.0) -> bool:
        if node in self.silent:
            self.now_s += timeout_s
            return False
        self.asked.append((node, uid))
        self.holders[node].let_go(uid)
        return True

    def holding(self, uid: str) -> list[str]:
        return [node for node, each in self.holders.items() if each.holds(uid)]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_it_is_not_two_fronts_when_its_holder_takes_it_again_before_the_other_one_has_written() -> None:
    site = Site()
    first, second = site.holders["f1"], site.holders["f2"]
    await first.take("t")
    site.views["f2"].writes_wait.append(may_write := asyncio.Event())
    taking = asyncio.create_task(second.take("t"))
    await settle()
    assert site.asked == [("f1", "t")], "the first one has ended its connection, and the second one is about to write"
    await first.take("t")  # the terminal was faster, and is back there
    may_write.set()
    await taking
    assert site.holding("t") == ["f2"]
    assert site.asked == [("f1", "t"), ("f1", "t")], "for the connection that came in between, too"


async def test_two_connections_of_one_front_do_not_hide_that_another_front_has_asked() -> None:
    site = Site()
    first = site.holders["f1"]
    await first.take("t")
    site.views["f1"].reads_wait += [one := asyncio.Event(), other := asyncio.Event()]
    earlier, later = asyncio.create_task(first.take("t")), asyncio.create_task(first.take("t"))
    await settle()
    one.set()
    await earlier
    await site.holders["f2"].take("t")  # while the later one still reads that it is the first front's
    other.set()
    await later
    assert site.holding("t") == ["f1"]
    assert site.asked == [("f1", "t"), ("f2", "t")]


async def test_one_that_is_held_is_taken_again_without_a_write() -> None:
    site = Site()
    for _ in range(3):
        await site.holders["f1"].take("t")
    assert site.views["f1"].puts == 1


async def test_a_silent_front_is_dead_after_the_shortest_lease_that_there_is() -> None:
    """That it doesn't answer takes a part of the lease: it is looked at all the while."""
    site = Site(lease_s=1.0)
    await site.holders["f1"].take("t")
    site.silent.add("f1")
    began_s = site.now_s
    await site.holders["f2"].take("t")
    assert site.now_s - began_s <= 1.5
    assert decode_front(site.fronts.found[FRONT_PREFIX + "f1"].value).is_free
    assert site.holders["f2"].holds("t")


class Led(Site):
    """A leader and a front."""

    def __init__(self) -> None:
        super().__init__()
        self.lead(1)
        clients, own = self.views["f1"], Holder("node.a", 1)
        self.leader = Holders(clients, self.fronts, self.end, own=own, lease_s=3.0, clock=lambda: self.now_s)
        self.holders["node.a"] = self.leader

    def lead(self, epoch: int, *, node: str = "a", is_free: bool = False) -> None:
        """The lease is renewed, or another's, or given back."""
        before = self.fronts.found.get(KEY)
        value = msgspec.json.encode(LeaseRecord(node, "r", epoch, is_free=is_free))
        self.fronts.found[KEY] = Revision(value, before.revision + 1 if before else 1)


async def test_a_leader_and_a_front_take_a_client_id_from_each_other() -> None:
    site = Led()
    await site.leader.take("t")
    await site.holders["f1"].take("t")
    assert site.holding("t") == ["f1"]
    await site.leader.take("t")
    assert site.holding("t") == ["node.a"]
    assert site.asked == [("node.a", "t"), ("f1", "t")]


@pytest.mark.parametrize("after", [{"epoch": 2}, {"epoch": 2, "node": "b"}, {"epoch": 1, "is_free": True}])
async def test_a_leader_that_is_no_more_is_not_asked(after: dict[str, object]) -> None:
    site = Led()
    await site.leader.take("t")
    site.silent.add("node.a")
    site.lead(**after)  # type: ignore[arg-type]
    began_s = site.now_s
    await site.holders["f1"].take("t")
    assert site.now_s == began_s


async def test_a_silent_leader_is_waited_for_until_its_lease_is_over() -> None:
    site = Led()
    await site.leader.take("t")
    site.silent.add("node.a")
    began_s = site.now_s
    await site.holders["f1"].take("t")
    assert 3.0 <= site.now_s - began_s <= 4.5


async def test_a_leader_that_lives_and_says_nothing_keeps_what_it_holds() -> None:
    site = Led()
    await site.leader.take("t")

    async def end(_node: str, _uid: str, timeout_s: float) -> bool:
        site.now_s += timeout_s
        site.lead(1)
        return False

    clients, own = site.views["f1"], Holder("f1", 1)
    front = Holders(clients, site.fronts, end, own=own, lease_s=3.0, clock=lambda: site.now_s)
    with pytest.raises(HolderSilent, match="the node a, which leads"):
        await front.take("t")


class Ended:
    """In place of the leader's broker: which of its own connections it ends, and when they were made."""

    def __init__(self) -> None:
        self.uids: list[str] = []
        self.connected_us: dict[str, int] = {}

    def end_taken_over(self, uid: str) -> None:
        self.uids.append(uid)

    def end_older(self, uid: str, time_us: int) -> bool:
        return self.connected_us.get(uid, 0) < time_us


@pytest.mark.parametrize("ahead_us", [-5_000_000, 5_000_000])
async def test_which_connection_is_later_is_what_the_records_say_whatever_the_clocks_do(ahead_us: int) -> None:
    """A front's events come when the terminal may be elsewhere again, and with the time of the front's machine."""
    site, bus = Led(), Ended()
    logins, front = SharedLogins(site.leader, None), site.holders["f1"]  # type: ignore[arg-type]

    def told(claim: int) -> bool:
        event = Connected("t", 1, ahead_us, "10.0.0.7", 4711, 5, "tcp", "t", 60, claim=claim)
        return end_older(bus, logins, event)  # type: ignore[arg-type]

    await front.take("t")
    first = front.claim("t")
    assert told(first), "the leader has no connection of it"
    await site.leader.take("t")
    assert front.claim("t") == 0
    bus.uids.clear()
    assert not told(first), "it came here afterwards"
    assert not told(-1), "the front had let it go before it said that it is there"
    assert bus.uids == []
    site.silent.add("node.a")
    site.lead(2)  # nobody has told the former leader
    await front.take("t")
    assert site.leader.holds("t")
    assert told(front.claim("t"))
    assert bus.uids == ["t"]
    assert not site.leader.holds("t")


def test_a_front_that_does_not_say_is_compared_by_time() -> None:
    bus = Ended()
    bus.connected_us["t"] = 7
    event = Connected("t", 1, 8, "10.0.0.7", 4711, 5, "tcp", "t", 60)
    for logins in (None, SharedLogins(Led().leader, None)):  # type: ignore[arg-type]
        assert end_older(bus, logins, event)  # type: ignore[arg-type]
        assert not end_older(bus, logins, msgspec.structs.replace(event, connected_us=6))  # type: ignore[arg-type]
