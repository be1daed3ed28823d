"""What one company keeps or asks for costs others no frame, and those that publish no time."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import msgspec
import pytest

from open_stores import supervisor
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.errors import Conflict
from terrazzo.live.feed import Subscription
from terrazzo.live.frame_sender import FrameSender, in_turn
from terrazzo.live.frames import End, as_line
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.selector import Selector
from terrazzo.live.stats import LiveStats
from turns_of_loop import longest_turn
from waiting import until

A, B = 1, 2


def hub_of(**limits: int) -> LiveHub:
    return LiveHub(Registry(), started_us=1_000, limits=LiveLimits(**limits))


class Reader:
    """A connection that takes everything at once."""

    framing, is_open, has_room = staticmethod(as_line), True, True

    def __init__(self) -> None:
        self.sink = self
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data

    async def may_go_on(self, subscription: Subscription) -> bool:
        return True

    async def check_all(self) -> None:
        pass

    def end(self, subscription: Subscription, end: End) -> None:
        raise AssertionError(end)

    @property
    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]


def subscribe(
    hub: LiveHub,
    company_id: int,
    kind: str = "event",
    *,
    object_id: int | None = None,
    keys: frozenset[str] = frozenset(),
) -> Subscription:
    actor = Actor(user_id=company_id, username="u", company_id=company_id, role=Role.VIEWER)
    feed = hub.open_feed(Selector(frozenset({kind}), company_id, object_id))
    made = Subscription(Reader(), 1, actor, feed, seq=hub.seq, keys=keys)
    hub.join(made)
    return made


def read(subscription: Subscription) -> list[dict[str, Any]]:
    found = []
    while subscription.is_behind:
        found += [json.loads(line) for line in subscription.take(as_line, LiveStats()).splitlines()]
    return found


def fill(hub: LiveHub, company_id: int, count: int, size: int) -> None:
    for number in range(count):
        hub.publish("event", company_id=company_id, data={"n": number, "x": "x" * size})


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_company_that_keeps_all_there_is_loses_its_own(is_idle: bool) -> None:
    hub = hub_of(bytes=1_000_000)
    greedy, modest = subscribe(hub, A), subscribe(hub, B)
    if is_idle:
        hub.leave(greedy)
    fill(hub, A, 600, 1_000)
    fill(hub, B, 200, 1_000)
    fill(hub, A, 600, 1_000)
    frames = read(modest)
    assert [frame["data"]["n"] for frame in frames] == list(range(200))
    assert hub.stats.bytes_kept <= 1_000_000


def test_of_a_company_its_largest_selection_gives_up() -> None:
    hub = hub_of(bytes=1_000_000)
    large, small = subscribe(hub, A), subscribe(hub, A, "grid")
    hub.publish("grid", company_id=A, data={"n": 0})
    fill(hub, A, 1_000, 1_000)
    assert [frame["data"] for frame in read(small)] == [{"n": 0}]
    assert "gap" in read(large)[0]


def test_without_others_a_company_may_have_everything() -> None:
    hub = hub_of(bytes=1_000_000)
    alone = subscribe(hub, A)
    fill(hub, A, 350, 1_000)
    assert len(read(alone)) == 350


def test_what_is_overwritten_is_freed_at_once() -> None:
    hub = hub_of(frames=5)
    feed = subscribe(hub, A).feed
    fill(hub, A, 100, 1_000)
    assert sum(bool(entry.seq) for entry in feed._entries) == 5


def test_a_company_has_so_many_selections_and_no_other_company_pays_for_them() -> None:
    hub = hub_of(feeds=10)
    kept = subscribe(hub, B, object_id=1)
    hub.leave(kept)
    for number in range(50):  # one after the other, as a client that changes its mind
        hub.leave(subscribe(hub, A, object_id=number))
    assert hub.stats.feeds == 11
    for number in range(100, 110):
        subscribe(hub, A, object_id=number)
    with pytest.raises(Conflict, match=r"your company has 10 different ones \(limits.live_feeds\)"):
        hub.open_feed(Selector(frozenset({"event"}), A, 1))
    assert hub.open_feed(Selector(frozenset({"event"}), B, 1)) is kept.feed, "kept for who comes back"


def test_key_lists_cost_nothing_when_a_record_is_published_and_go_with_their_subscriptions() -> None:
    hub = hub_of()
    keys = [frozenset(f"key {number} {other}" for other in range(100)) for number in range(2_000)]
    many = [subscribe(hub, A, "mosaic", object_id=7, keys=each) for each in keys]
    data = {"object_id": "7", "time": "t", "value": {f"v{number}": 1 for number in range(2_000)}}
    began_s = time.thread_time()
    hub.publish("mosaic", company_id=A, object_id=7, data=data)
    assert time.thread_time() - began_s < 0.02
    assert hub.stats.feeds == 1
    for each in many:
        assert read(each) == []
        hub.leave(each)
    assert not many[0].feed._styles


def test_key_lists_of_a_company_have_a_size_together() -> None:
    hub = hub_of(bytes=160_000)
    keys = frozenset(f"{number:900}" for number in range(9))
    first = subscribe(hub, A, "mosaic", keys=keys)
    with pytest.raises(Conflict, match=r"subscriptions take 10000 bytes \(limits.live_bytes\)"):
        hub.check_keys(A, keys)
    hub.check_keys(B, keys)
    hub.leave(first)
    hub.check_keys(A, keys)


async def test_thousands_of_key_lists_hold_neither_the_loop_nor_another_companys_frames() -> None:
    hub = hub_of()
    sender = FrameSender(hub, supervisor())
    sender.start()
    value = {f"v{number}": number for number in range(2_000)}
    keys = [frozenset([f"v{number}", f"w{number}"]) for number in range(2_000)]
    many = [subscribe(hub, A, "mosaic", object_id=7, keys=each) for each in keys]
    other = subscribe(hub, B)
    async with longest_turn() as turn:
        hub.publish("mosaic", company_id=A, object_id=7, data={"object_id": "7", "time": "t", "value": value})
        await asyncio.sleep(0)
        fill(hub, B, 1, 10)
        await until(lambda: other.connection.sink.data, "the other company's frame")  # type: ignore[attr-defined]
        served = sum(not each.is_behind for each in many)
        await until(lambda: not any(each.is_behind for each in many), "every subscriber's frame")
    await sender.stop()
    assert served < 1_000, "the other company's frame did not wait for all of them"
    assert turn.cpu_s < 0.03
    frames = [each.connection.sink.frames[0] for each in many]  # type: ignore[attr-defined]
    assert [frame["data"]["value"] for frame in frames] == [{f"v{number}": number} for number in range(2_000)]


def test_companies_take_turns() -> None:
    hub = hub_of()
    many = [subscribe(hub, A, object_id=number) for number in range(3)]
    few = [subscribe(hub, B, object_id=9)]
    assert in_turn(many + few) == [many[0], few[0], many[1], many[2]]
    assert in_turn([]) == []


def test_a_selected_record_is_as_it_was_but_for_what_is_left_out() -> None:
    hub = hub_of()
    some, every = (subscribe(hub, A, "mosaic", object_id=7, keys=frozenset(keys)) for keys in ("ab", ""))
    value = {"c": 1, "b": 2**60, "a": 1.0e-7, "ü": "x"}
    hub.publish("mosaic", company_id=A, object_id=7, data={"object_id": "7", "time": "t", "value": value})
    (full,), (part,) = read(every), read(some)
    assert part == {**full, "data": {**full["data"], "value": {"b": 2**60, "a": 1.0e-7}}}
    assert msgspec.json.encode(list(part)) == msgspec.json.encode(list(full))
