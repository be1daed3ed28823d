"""The lease: taken when its holder was silent for long enough in front of whoever looked all the while."""

from __future__ import annotations

import msgspec
import pytest

from terrazzo.ports.stream import LogUnavailable, RecordChanged, Revision
from terrazzo.replication.lease import Lease, LeaseLost, LeaseRecord, LeaseWatch

HELD = msgspec.json.encode(LeaseRecord("a", "r", 3))


def looks(*seen: tuple[float, int | None]) -> list[bool]:
    """What a watch of 3 s says at each time to a revision; None: it could not be read."""
    watch, found = LeaseWatch(3.0), []
    for now_s, revision in seen:
        if revision is None:
            watch.forget()
        else:
            found.append(watch.may_take(Revision(HELD, revision), now_s))
    return found


def test_a_silent_holder_loses_it_after_the_lease() -> None:
    assert looks((10, 1), (11, 1), (12, 1), (12.9, 1), (13, 1)) == [False, False, False, False, True]


def test_a_beat_begins_it_anew() -> None:
    assert looks((10, 1), (11, 1), (12, 2), (13, 2), (14, 2), (15, 2)) == [False] * 5 + [True]


def test_time_in_which_nobody_could_look_does_not_count() -> None:
    assert looks((10, 1), (11, 1), (12, None), (20, 1), (21, 1), (22, 1), (23, 1)) == [False] * 5 + [True]
    assert looks((10, 1), (11, 1), (13, 1), (14, 1), (15, 1), (16, 1)) == [False] * 5 + [True]


def test_nobodys_is_taken_at_once() -> None:
    free = msgspec.json.encode(LeaseRecord("a", "r", 3, is_free=True))
    assert LeaseWatch(3.0).may_take(None, 0)
    assert LeaseWatch(3.0).may_take(Revision(free, 9), 0)


def test_what_is_given_back_for_a_successor_is_left_to_it_for_as_long_as_a_lease() -> None:
    given = Revision(msgspec.json.encode(LeaseRecord("a", "r", 3, is_free=True, successor="b")), 9)
    assert LeaseWatch(3.0, "b").may_take(given, 0)
    other = LeaseWatch(3.0, "c")
    assert [other.may_take(given, now_s) for now_s in (0, 1, 2, 3)] == [False, False, False, True]


class Kept:
    """Records in memory, of which an answer may be lost after the write."""

    def __init__(self) -> None:
        self.found: Revision | None = None
        self.loses_answer = False

    async def get(self, key: str) -> Revision | None:
        return self.found

    async def put(self, key: str, value: bytes, *, revision: int) -> int:
        if revision != (self.found.revision if self.found else 0):
            raise RecordChanged(key)
        self.found = Revision(value, revision + 1)
        if self.loses_answer:
            raise LogUnavailable("lost")
        return revision + 1

    async def delete(self, key: str) -> None:
        self.found = None

    async def all(self) -> dict[str, bytes]:
        return {}


async def test_each_leader_has_a_later_epoch_and_the_former_one_finds_out() -> None:
    kept = Kept()
    first, second = Lease(kept, node="a", run="1"), Lease(kept, node="b", run="2")
    assert await first.take(await first.look())
    await first.renew()
    before = await second.look()
    await first.renew()
    assert not await second.take(before)
    assert await second.take(await second.look())
    assert (first.epoch, second.epoch) == (1, 2)
    with pytest.raises(LeaseLost, match="the node 'b' leads now"):
        await first.renew()
    await second.give_back()
    assert await first.take(await first.look())
    assert first.epoch == 3


async def test_a_renewal_without_an_answer_is_found_again() -> None:
    kept = Kept()
    lease = Lease(kept, node="a", run="1")
    await lease.take(None)
    kept.loses_answer = True
    with pytest.raises(LogUnavailable):
        await lease.renew()
    kept.loses_answer = False
    await lease.renew()
    await lease.renew()
    kept.found = None
    with pytest.raises(LeaseLost, match="the lease is gone"):
        await lease.renew()
