"""Where a campaign's terminals stand is known after any changes as if one had looked at all of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.campaigns.item import ENDED, Item, ItemState, Terms, UpgradeNotice
from terrazzo.domain.campaigns.places import ItemPlaces
from terrazzo.domain.command import CommandState

TERMS = Terms(unit="LUA", version="3", retries=1, timeout_us=50)
STEPS = st.sampled_from(
    ["give", "sent", "delivered", "failed", "old version", "version", "ok", "not ok", "download", "reconnect", "recall"]
)


def step(item: Item, name: str, now_us: int) -> None:
    more = {"terms": TERMS, "now_us": now_us}
    match name:
        case "give" if item.is_waiting:
            item.give(f"{item.terminal_id} {now_us}")
        case "sent" | "delivered" | "failed":
            item.on_step(item.command_uid, CommandState(name), "why", **more)
        case "old version" | "version":
            item.on_version("3" if name == "version" else "2", **more)
        case "ok" | "not ok":
            item.on_notice(UpgradeNotice(name == "ok", ""), **more)
        case "download":
            item.on_download(**more)
        case "reconnect":
            item.on_reconnect()
        case "recall" if item.state is ItemState.PENDING and item.command_uid:
            item.recall("paused")


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), STEPS, st.integers(0, 40)), max_size=60),
)
def test_as_if_all_were_looked_at(waves: list[int], steps: list[tuple[int, str, int]]) -> None:
    items = [Item(terminal_id=f"t{number}", wave=wave) for number, wave in enumerate(waves)]
    places, now_us = ItemPlaces(), 0
    places.add(items)
    assert not places.is_dirty
    for number, name, passed_us in steps:
        now_us += passed_us
        step(items[number % len(items)], name, now_us)
        if number == 5:
            due = {each.terminal_id for each in items if each.deadline_us is not None and each.deadline_us <= now_us}
            late = places.overdue(now_us, 10)
            assert {each.terminal_id for each in late} == due
            for each in late:
                each.check_time(terms=TERMS, now_us=now_us)
        assert +places.counts == Counter(each.state for each in items)
        assert places.open_wave == min((each.wave for each in items if each.state not in ENDED), default=None)
        unsent = {each.terminal_id for each in items if each.state is ItemState.PENDING and each.command_uid}
        assert set(places.unsent) == unsent
        assert places.is_still == (not unsent and all(each.state in (*ENDED, ItemState.PENDING) for each in items))
        for wave in (1, 3):
            waiting = list(places.waiting(wave))
            assert [each.wave for each in waiting] == sorted(each.wave for each in waiting)
            assert {each.terminal_id for each in waiting} == {
                each.terminal_id for each in items if each.is_waiting and each.wave <= wave
            }


def test_what_has_changed_is_taken_to_be_stored_once_some_at_a_time() -> None:
    items = [Item(terminal_id=f"t{number}", wave=1) for number in range(5)]
    places = ItemPlaces()
    places.add(items)
    for item in items[:3]:
        item.give("c")
        item.on_step("c", CommandState.SENT, "", terms=TERMS, now_us=1)
    assert [each.terminal_id for each in places.take_dirty(2)] == ["t0", "t1"]
    items[0].on_reconnect()
    assert places.is_dirty
    assert [each.terminal_id for each in places.take_dirty(2)] == ["t2"]
    assert not places.is_dirty
    items[0].on_version("2", terms=TERMS, now_us=2)
    assert [each.terminal_id for each in places.take_dirty(2)] == ["t0"]


def test_a_deadline_that_was_put_off_is_looked_at_again_and_some_at_a_time() -> None:
    items = [Item(terminal_id=f"t{number}", wave=1) for number in range(3)]
    places = ItemPlaces()
    places.add(items)
    for item in items:
        item.give("c")
        item.on_step("c", CommandState.DELIVERED, "", terms=TERMS, now_us=0)
    items[0].on_download(terms=TERMS, now_us=30)
    assert places.overdue(49, 10) == []
    assert {each.terminal_id for each in places.overdue(50, 1) + places.overdue(50, 1)} == {"t1", "t2"}
    assert places.overdue(79, 10) == []
    assert places.overdue(80, 10) == [items[0]]
