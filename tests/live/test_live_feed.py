"""The ring of a feed: everything in order, or a gap with the exact number of what is missing."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import new_tasks
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.live.feed import Feed, Subscription
from terrazzo.live.frame_sender import FrameSender
from terrazzo.live.frames import FrameEntry, as_line, as_message
from terrazzo.live.hub import REST_S, LiveHub, LiveLimits
from terrazzo.live.selector import Selector
from terrazzo.live.sources import RecordSource
from terrazzo.live.stats import LiveStats
from terrazzo.ports.store import Record

ACTOR = Actor(user_id=1, username="u", company_id=1, role=Role.VIEWER)
EVENTS = Selector(frozenset({"event"}), 1)
NAMES: dict[str, Any] = {"name": "t", "type": "Other", "mode": "pwd", "username": "u", "pin": "p"}


def hub_of(frames: int = 1_000, **limits: int) -> LiveHub:
    return LiveHub(Registry(), started_us=1_000, limits=LiveLimits(frames=frames, **limits))


def subscribe(
    hub: LiveHub, selector: Selector = EVENTS, since: int | None = None, *, keys: str = "", actor: Actor = ACTOR
) -> Subscription:
    feed, alone = hub.open_feed(selector), frozenset(keys)
    made: Any = Subscription(None, 1, actor, feed, seq=hub.seq, keys=alone)  # type: ignore[arg-type]
    if since is not None:
        made.resume(since, first=hub.started_seq, last=hub.seq)
    hub.join(made)
    return made


def publish(hub: LiveHub, *numbers: int) -> None:
    for number in numbers:
        hub.publish("event", company_id=1, data=number)


def read(subscription: Subscription) -> list[dict[str, Any]]:
    """All frames there are."""
    frames = []
    while subscription.is_behind:
        frames += [json.loads(line) for line in subscription.take(as_line, LiveStats()).splitlines()]
    return frames


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 20))
def test_each_frame_comes_once_in_order_or_its_loss_is_counted(bursts: list[int], frames: int) -> None:
    hub = hub_of(frames)
    reader, published, seen, lost = subscribe(hub), 0, [], 0
    last_seq = hub.seq
    for burst in bursts:
        publish(hub, *range(published, published + burst))
        published += burst
        for frame in read(reader):
            if "gap" in frame:
                assert frame["gap"]["since"] == last_seq
                assert frame["gap"]["reason"] == "slow"
                lost += frame["gap"]["lost"]
                last_seq = frame["gap"]["seq"]
                seen += [None] * frame["gap"]["lost"]
            else:
                assert frame["seq"] > last_seq
                last_seq = frame["seq"]
                seen.append(frame["data"])
    assert len(seen) == published
    assert all(found in (None, number) for number, found in enumerate(seen))
    assert lost == sum(max(0, burst - frames) for burst in bursts)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 25))
def test_coming_back_with_a_number_brings_what_came_after_it(before: int, after: int, frames: int) -> None:
    hub = hub_of(frames)
    reader = subscribe(hub)
    publish(hub, *range(before))
    read(reader)
    hub.leave(reader)
    publish(hub, *range(before, before + after))
    again = read(subscribe(hub, since=reader.seq))
    if after > frames:
        gap = again.pop(0)["gap"]
        assert (gap["since"], gap["lost"], gap["reason"]) == (reader.seq, None, "forgotten")
    assert [frame["data"] for frame in again] == list(range(before, before + after))[-frames:]


def test_a_number_from_before_a_restart_and_one_never_given_are_gaps() -> None:
    hub = hub_of()
    publish(hub, 1)
    reader = subscribe(hub)
    publish(hub, 2, 3)
    gap, *frames = read(subscribe(hub, since=999))
    assert gap["gap"] == {"since": 999, "seq": reader.feed.gone_seq, "lost": None, "reason": "restart"}
    assert [frame["data"] for frame in frames] == [2, 3]
    (gap,) = read(subscribe(hub, since=hub.seq + 1))
    assert gap["gap"]["reason"] == "unknown"
    assert read(subscribe(hub, since=hub.seq)) == []


def test_what_happened_while_nobody_had_subscribed_is_a_gap() -> None:
    hub = hub_of()
    keeper = subscribe(hub)
    publish(hub, 1)
    other = Selector(frozenset({"event", "grid"}), 1)
    (gap,) = read(subscribe(hub, other, since=keeper.seq))
    assert gap["gap"] == {"since": keeper.seq, "seq": hub.seq, "lost": None, "reason": "forgotten"}


def test_a_feed_is_kept_for_a_while_and_then_nothing_is_done_any_more() -> None:
    hub = hub_of(resume_s=10)
    assert not hub.is_wanted
    reader = subscribe(hub)
    publish(hub, 1)
    hub.leave(reader)
    hub.end_idle(100.0)
    hub.end_idle(109.0)
    publish(hub, 2)
    assert hub.is_wanted
    assert [frame["data"] for frame in read(subscribe(hub, since=reader.seq))] == [1, 2]
    (back,) = reader.feed.subscriptions
    hub.leave(back)
    hub.end_idle(200.0)
    hub.end_idle(210.0)
    assert not hub.is_wanted
    assert (hub.stats.feeds, hub.stats.bytes_kept, hub.stats.subscriptions) == (0, 0, 0)


def test_all_feeds_together_keep_so_many_bytes() -> None:
    hub = hub_of(bytes=100_000)
    readers = [subscribe(hub, Selector(frozenset({"event"}), 1, object_id=number)) for number in range(20)]
    for _ in range(40):
        for number in range(20):
            hub.publish("event", company_id=1, object_id=number, data="x" * 1_000)
    assert hub.stats.bytes_kept <= 100_000
    assert hub.stats.bytes_kept == sum(reader.feed.size for reader in readers)
    for reader in readers:
        frames = read(reader)
        assert frames[0]["gap"]["lost"] + len(frames) - 1 == 40


def framed_bytes(feed: Feed) -> int:
    return sum(len(entry.framed) for entry in feed._entries)


def test_what_nobody_reads_is_kept_once_and_all_of_it_comes_again() -> None:
    hub = hub_of()
    reader, other = subscribe(hub), subscribe(hub, Selector(frozenset({"event"}), 1, object_id=1))
    for _ in range(10):
        hub.publish("event", company_id=1, object_id=1, data="x" * 10_000)
    read(reader)
    assert len(read(other)) == 10
    read_bytes, feed = hub.stats.bytes_kept, reader.feed
    assert framed_bytes(feed) > 100_000
    hub.leave(reader)
    hub.end_idle(100.0)
    hub.end_idle(101.0)
    assert framed_bytes(feed) == 0, "not even those that the other feed has too: they are made again"
    assert feed.size < 0.6 * other.feed.size
    assert hub.stats.bytes_kept == feed.size + other.feed.size < read_bytes
    hub.publish("event", company_id=1, object_id=1, data="x" * 10_000)
    back = subscribe(hub, since=hub.started_seq)
    assert feed.size == other.feed.size, "what is going to be sent counts as kept twice"
    assert hub.stats.bytes_kept == feed.size + other.feed.size
    assert len(read(back)) == 11
    hub.leave(back)
    hub.leave(other)
    for second in (200.0, 200.0 + 300):
        hub.end_idle(second)
    assert hub.stats.bytes_kept == 0


def test_what_nobody_has_read_for_a_while_keeps_a_part_and_the_longest_idle_gives_it() -> None:
    hub = hub_of(bytes=1_000_000)
    first, second, read_one = (subscribe(hub, Selector(frozenset({"event"}), 1, object_id=n)) for n in range(3))
    theirs = subscribe(hub, Selector(frozenset({"event"}), 2))
    for number in range(3):
        for _ in range(20):
            hub.publish("event", company_id=1, object_id=number, data="x" * 5_000)
    hub.publish("event", company_id=2, data="x" * 100_000)
    for reader in (first, second, theirs):
        hub.leave(reader)
    hub.end_idle(100.0)
    hub.end_idle(100.0 + REST_S - 1)
    assert first.feed.end - first.feed.first == second.feed.end - second.feed.first == 20, "who comes back comes soon"
    for _ in range(2):
        hub.publish("event", company_id=1, object_id=0, data="x" * 100_000)
    hub.end_idle(100.0 + REST_S)
    assert first.feed.size + second.feed.size <= 250_000
    assert first.feed.size > 0
    assert second.feed.end - second.feed.first == 20
    assert read_one.feed.end - read_one.feed.first == 20
    assert theirs.feed.end - theirs.feed.first == 1, "each company has its part"
    assert hub.stats.bytes_kept == sum(each.feed.size for each in (first, second, read_one, theirs))
    gap, *frames = read(subscribe(hub, first.feed.selector, since=hub.started_seq))
    assert gap["gap"]["reason"] == "forgotten"
    assert len(frames) == first.feed.end - first.feed.first


def test_much_that_nobody_reads_goes_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.live.hub._DROPPED", 10)
    hub = hub_of(bytes=50_000)
    readers = [subscribe(hub, Selector(frozenset({"event"}), 1, object_id=number)) for number in range(2)]
    for number in range(100):
        hub.publish("event", company_id=1, object_id=number % 2, data=number)
    for reader in readers:
        hub.leave(reader)
    hub.end_idle(0.0)
    left = []
    for _ in range(10):
        hub.end_idle(float(REST_S))
        left.append(sum(reader.feed.end - reader.feed.first for reader in readers))
    assert left[:3] == [90, 80, 70]
    assert left[-1] == left[-2] > 0
    assert hub.stats.bytes_kept == sum(reader.feed.size for reader in readers) <= 12_500


def test_frames_go_by_age_though_there_is_room() -> None:
    hub = hub_of(frames=100_000, resume_s=60)
    slow, quick = subscribe(hub), subscribe(hub)
    feed = slow.feed
    for second in range(200):
        publish(hub, second)
        if second < 100:
            assert [frame["data"] for frame in read(quick)] == [second]
        hub.drop_old(feed, float(second))
        assert feed.end - feed.first <= 60 + 3, "and what comes between two marks"
        assert feed.end - feed.first >= min(second + 1, 60)
        assert hub.stats.bytes_kept == feed.size > 0
    for reader, missed in ((slow, 200), (quick, 100)):
        gap, *frames = read(reader)
        assert gap["gap"]["reason"] == "slow"
        assert gap["gap"]["lost"] + len(frames) == missed
        assert frames[-1]["data"] == 199
    back = subscribe(hub, since=hub.started_seq + 150)
    assert [frame["data"] for frame in read(back)] == list(range(150, 200))
    for second in (200, 203, 270):
        hub.drop_old(feed, float(second))
    assert (feed.size, hub.stats.bytes_kept, feed.first) == (0, 0, feed.end)
    assert feed._entries == [] or len(feed._entries) < 512
    assert not feed._marks
    publish(hub, 200)
    assert [frame["data"] for frame in read(slow)] == [200]


def test_many_old_frames_go_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.live.feed._DROPPED", 10)
    hub = hub_of(resume_s=60)
    feed = subscribe(hub).feed
    publish(hub, *range(35))
    hub.drop_old(feed, 1.0)
    left = []
    for _ in range(5):
        hub.drop_old(feed, 61.0)
        left.append(feed.end - feed.first)
    assert left == [25, 15, 5, 0, 0]
    assert not feed._marks


async def test_the_sender_drops_what_is_old() -> None:
    hub = hub_of(resume_s=0)
    sender = FrameSender(hub, new_tasks())
    reader = subscribe(hub)
    publish(hub, 1, 2)
    assert hub.stats.bytes_kept > 0
    hub.leave(reader)
    hub.open_feed(Selector(frozenset({"event"}), 2))
    await sender._sweep()
    assert hub.stats.bytes_kept == 0
    await sender.stop()


def test_data_is_encoded_once_for_all_and_only_when_somebody_reads() -> None:
    hub, calls = hub_of(), []
    readers = [subscribe(hub) for _ in range(5)]
    entry = FrameEntry("event", lambda: calls.append(1) or {"a": 1}, size=10)
    hub.append(hub.index.find("event", 1, None, None), [entry])
    assert calls == []
    assert [read(reader)[0]["data"] for reader in readers] == [{"a": 1}] * 5
    assert calls == [1]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 5)), max_size=8), st.integers(1, 7), st.integers(1, 4))
def test_a_commit_of_several_terminals_reaches_each_feed_in_its_order(
    runs: list[tuple[str, int]], frames: int, at_once: int
) -> None:
    """Whether a feed takes one of the terminals or both; what its ring can't hold is a gap."""
    hub, registry = hub_of(frames), Registry()
    for number, uid in enumerate("ab", 1):
        registry.put_terminal(Terminal(**NAMES, id=number, uid=uid, company_id=1))
    source = RecordSource(hub, registry, zone=UTC)
    records = [
        Record(f"g/{uid}/r", 1, b"%d" % number) for number, (uid, count) in enumerate(runs) for _ in range(count)
    ]
    readers = {uids: subscribe(hub, Selector(frozenset({"grid"}), 1, terminal_id=uids)) for uids in ("a", "b", None)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("terrazzo.live.sources._AT_ONCE", at_once)
        source.on_records(records)
    for uid, reader in readers.items():
        due = [record for record in records if uid is None or record.series == f"g/{uid}/r"]
        got = read(reader)
        lost = got.pop(0)["gap"]["lost"] if len(due) > frames else 0
        assert lost == max(0, len(due) - frames)
        assert [frame["data"]["payload"] for frame in got] == [json.loads(record.body) for record in due[lost:]]
        assert [frame["seq"] for frame in got] == sorted(frame["seq"] for frame in got)
    assert hub.stats.frames_published == len(records)
    assert hub.seq == hub.started_seq + len(records)


def test_keys_select_variables_of_mosaic_records() -> None:
    hub = hub_of()
    some, every = (subscribe(hub, Selector(frozenset({"mosaic"}), 1, 7), keys=keys) for keys in ("ab", ""))
    assert some.feed is every.feed, "what a subscription selects is its own; what is kept is kept once"
    for value in ({"a": 1, "c": 2}, {"c": 3}, {"a": None, "b": 4, "c": 5}):
        hub.publish("mosaic", company_id=1, object_id=7, data={"object_id": "7", "time": "t", "value": value})
    assert [frame["data"]["value"] for frame in read(some)] == [{"a": 1}, {"a": None, "b": 4}]
    assert len(read(every)) == 3


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_message_has_the_length_in_its_head(size: int) -> None:
    message = as_message(b"x" * size)
    assert message[0] == 0x81
    short = message[1]
    extra = {126: 2, 127: 8}.get(short, 0)
    assert (int.from_bytes(message[2 : 2 + extra], "big") if extra else short) == size
    assert len(message) == 2 + extra + size


def test_a_ring_that_runs_for_long_stays_short() -> None:
    feed = Feed(EVENTS, seq=0, frames=100)
    for number in range(10_000):
        entry = FrameEntry.of("event", number)
        entry.seq = number + 1
        feed.append([entry])
    assert (feed.first, feed.end, feed.gone_seq) == (9_900, 10_000, 9_900)
    assert len(feed._entries) < 1_000
    assert feed.place_after(9_950) == 9_950
